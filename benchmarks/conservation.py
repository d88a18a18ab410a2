"""Is anything lost between the files of other tools and the traces that strobe makes of them?

./dev bench conservation FOLDER [--of PRODUCER]

Opens every file below FOLDER, and reads it again with the few plain lines of tests/formats/sources.py. Records in the
file must be those taken, left out and unknown; the sums by name must be equal. Folders directly below FOLDER are the
producers. One line a file, a total by producer.
"""

import argparse
import os
import tempfile
from collections import Counter
from pathlib import Path

import strobe
from strobe.errors import StrobeError
from tests.formats.sources import READERS, differences, format_of, records

_PARTS = (".def", ".evt", ".md", ".cfg")  # of an OTF2 archive, and beside it


def judged(path: Path) -> tuple[str, str]:
    """A word for a file, and what is behind it."""
    try:
        trace = strobe.open(path)
    except StrobeError as error:
        return "refused", str(error).replace(str(path), path.name)[:150]
    name = format_of(trace)
    told = f"{name}: {sum(records(trace))} records"
    read = READERS.get(name)
    if read is None:
        return "unread", told
    try:
        found = differences(trace, read(path))
    except (ArithmeticError, ImportError, LookupError, TypeError, ValueError, AttributeError) as error:
        return "unread", f"{told}; {type(error).__name__}: {str(error)[:80]}"
    return ("DIFFERS", f"{told}; {len(found)}: {'; '.join(found[:3])}") if found else ("equal", told)


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--of", default="", metavar="PRODUCER", help="only the files of this folder")
    options = parser.parse_args()
    totals: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["STROBE_CACHE"] = cache
        for path in sorted(options.folder.rglob("*")):
            producer = path.relative_to(options.folder).parts[0]
            if not path.is_file() or path.suffix in _PARTS or options.of not in ("", producer):
                continue
            word, why = judged(path)
            totals.setdefault(producer, Counter())[word] += 1
            print(f"{word:8} {path.relative_to(options.folder)}: {why}", flush=True)
    for producer, words in sorted(totals.items()):
        print(f"{producer:20} {sum(words.values()):4} files: {', '.join(f'{n} {word}' for word, n in words.items())}")


if __name__ == "__main__":
    main()
