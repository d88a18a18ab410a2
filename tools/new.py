"""./dev new KIND NAME: writes the skeleton of a plug-in, a test for it, and its entry in the docs.

The skeletons are real files in tools/skeletons/KIND/, at the path they get; `skeleton_name` stands for the plug-in's
name, `skeleton_subject` for the folder of an analysis. They pass every check as they are. Comments show what to
replace.
"""

import argparse
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SKELETONS = Path(__file__).with_name("skeletons")
SUBJECTS = sorted(path.parent.name for path in (ROOT / "src/strobe/analyses").glob("*/__init__.py"))
AFTERWARDS = {
    "analysis": "./dev unit -k {name}; then docs/how-to/new-analysis.md",
    "adapter": "./dev record -k {name}; then docs/how-to/new-adapter.md",
    "format": "./dev unit tests/formats -k {name}; then docs/how-to/new-format.md",
    "rule": "./dev unit -k {name}; then docs/how-to/new-rule.md",
    "view": "./dev web; then docs/how-to/new-view.md",
}


def fill(text: str, name: str, subject: str) -> str:
    """Put a plug-in's name into a skeleton: as it is, as words, and as a type's name; and its subject."""
    words = name.replace("_", " ")
    return (
        text.replace("SKELETON_WORDS", words)
        .replace("SkeletonName", words.title().replace(" ", ""))
        .replace("skeleton_name", name)
        .replace("skeleton_subject", subject)
    )


def skeleton(kind: str, name: str, subject: str) -> dict[Path, str]:
    """Every file of a new plug-in, and its text."""
    folder = SKELETONS / kind
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = fill(path.relative_to(folder).as_posix().removesuffix(".txt"), name, subject)
        files[Path(place)] = fill(path.read_text(encoding="utf-8"), name, subject)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev new", description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=sorted(AFTERWARDS))
    parser.add_argument("name", help="small letters, digits and _; the words of docs/glossary.md")
    parser.add_argument("--subject", choices=SUBJECTS, default="program", help="what an analysis is about: its folder")
    options = parser.parse_args()
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", options.name):
        sys.exit(f"./dev new: '{options.name}' is not a name for a plug-in: use small letters, digits and single _")
    files = skeleton(options.kind, options.name, options.subject)
    taken = [str(path) for path in files if (ROOT / path).exists()]
    if taken:
        sys.exit(f"./dev new: {taken[0]} exists already")
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    sys.argv = ["generate.py"]
    sys.path.insert(0, str(ROOT / "tools"))
    runpy.run_path(str(ROOT / "tools/generate.py"), run_name="__main__")
    print(f"Next: {AFTERWARDS[options.kind].format(name=options.name)}")


if __name__ == "__main__":
    main()
