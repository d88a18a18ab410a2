"""Makes golden traces, and the answers that test_golden.py expects. README.md says when, and what may be changed.

python tests/golden/make.py record NAME...     run the recipes; put the traces into traces/
python tests/golden/make.py answers NAME...    ask everything of traces that have no answers yet
python tests/golden/make.py --texts [NAME...]  write the sentences anew, of all traces or of these
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden import answers
from tests.golden.questions import Answer
from tests.golden.recipes import RECIPES

JOB = Path("/srv/job")  # what a trace may have as its place
# What a trace must not have: where its maker works, and on which machine.
MACHINE = Path("/etc/hostname").read_text().strip()
PRIVATE = re.compile(rb'[ -~]*(/(work|root|home|Users)/|/tmp/(?!nvidia)|"' + re.escape(MACHINE.encode()) + rb'")[ -~]*')


def record(name: str) -> None:
    """Run a recipe in a fresh folder below JOB and pack what it makes."""
    if os.uname().nodename == MACHINE:
        raise SystemExit("the machine's name would be in the trace: unshare --uts, then hostname node1")
    folder = JOB / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "scratch").mkdir(parents=True)
    os.environ |= {
        "HOME": str(folder),
        "TMPDIR": str(folder / "scratch"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    tempfile.tempdir = None
    RECIPES[name](folder)
    made = folder / f"{name}.strobe"
    for path in sorted(made.rglob("*")):
        if path.is_file() and (found := PRIVATE.search(path.read_bytes())):
            raise SystemExit(f"{path} has {found[0]!r}: install Python and strobe in a neutral place")
    answers.TRACES.mkdir(exist_ok=True)
    with tarfile.open(answers.TRACES / f"{name}.tar.xz", "w:xz", preset=9) as packed:
        packed.add(made, made.name, filter=_nobodys)
    shutil.rmtree(folder)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def ask(name: str) -> dict[str, Answer]:
    """Ask a trace everything, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return answers.ask(name, Path(folder))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["record", "answers"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--texts", nargs="*", metavar="NAME", help="write sentences anew, of all traces or of these")
    arguments = parser.parse_args()
    if arguments.texts is not None:
        for name in arguments.texts or answers.names():
            answers.word(name, ask(name))
    for name in arguments.names if arguments.what else ():
        if arguments.what == "record":
            record(name)
        else:
            given = ask(name)
            answers.freeze(name, given)
            answers.word(name, given)


if __name__ == "__main__":
    main()
