"""A release: python tools/release.py VERSION

Sets the version and the date in CHANGELOG.md, commits and tags that, and prints the notes: the section of the version.
A later entry of CHANGELOG.md begins a new section, `## NEXT (unreleased)`.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

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
    version = parser.parse_args().version

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout

    if git("status", "--porcelain"):
        sys.exit("release: there are changes that are not committed")
    notes = release(root, version, datetime.datetime.now(tz=datetime.UTC).date())
    git("commit", "-q", "-a", "-m", f"Version {version}")
    git("tag", "-a", f"v{version}", "-m", f"Version {version}\n\n{notes}", "--cleanup=verbatim")
    print(notes, end="")


if __name__ == "__main__":
    main()
