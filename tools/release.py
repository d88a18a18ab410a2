"""A release: python tools/release.py VERSION [OPTIONS of tools/wheels.py]

Sets the version and the date in CHANGELOG.md, makes the wheels of that into dist/, with notes.md: the section of the
version. Then it commits and tags, and prints the notes. Where a wheel fails, nothing is changed. Without options the
wheels are those of all Pythons, which must be there. A later entry of CHANGELOG.md begins a new section,
`## NEXT (unreleased)`.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

import wheels

VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
UNRELEASED = re.compile(r"^## (\S+) \(unreleased\)\n", re.MULTILINE)


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers. Ends with a message if it is not of the form 1.2.3."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"release: '{version}' is not a version such as 1.2.3")
    return tuple(map(int, version.split(".")))


def release(root: Path, version: str, day: datetime.date) -> str:
    """Write the version and the day into the files below `root`; return the notes."""
    module, changes = root / "src/strobe/__init__.py", root / "CHANGELOG.md"
    code, text = module.read_text(), changes.read_text()
    (before,) = VERSION.findall(code)
    section = UNRELEASED.search(text)
    if section is None:
        sys.exit("release: CHANGELOG.md has no section '## VERSION (unreleased)'")
    if numbers(version) < numbers(before) or f"\n## {version} (2" in text:
        sys.exit(f"release: {version} does not come after {before}")
    module.write_text(VERSION.sub(f'__version__ = "{version}"', code))
    changes.write_text(text[: section.start()] + f"## {version} ({day})\n" + text[section.end() :])
    return text[section.end() :].partition("\n## ")[0].strip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    root = Path(__file__).parents[1]
    chosen, for_wheels = parser.parse_known_args()
    if not any(word.startswith("--pythons") for word in for_wheels):
        for_wheels += ["--pythons", *wheels.PYTHONS]

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout

    if git("status", "--porcelain"):
        sys.exit("release: there are changes that are not committed")
    notes = release(root, chosen.version, datetime.datetime.now(tz=datetime.UTC).date())
    try:
        subprocess.run([sys.executable, root / "tools/wheels.py", *for_wheels], cwd=root, stdout=sys.stderr, check=True)
    except (subprocess.CalledProcessError, KeyboardInterrupt):
        git("checkout", "-q", "--", ".")
        sys.exit("release: not all wheels were made: version and date are as before")
    (root / "dist/notes.md").write_text(notes)
    git("commit", "-q", "-a", "-m", f"Version {chosen.version}")
    git("tag", "-a", f"v{chosen.version}", "-m", f"Version {chosen.version}\n\n{notes}", "--cleanup=verbatim")
    print(notes, end="")


if __name__ == "__main__":
    main()
