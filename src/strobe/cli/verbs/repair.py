"""`strobe repair TRACE`: write a sound copy of a damaged trace."""

from __future__ import annotations

from strobe.cli.options import reading
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
Write a sound copy of a damaged trace, and list what is lost. Damaged blocks are left out, records of killed processes
are recovered, job.json and the tiles are made anew. The trace itself is not changed. Nothing is written if it is sound.
"""
_OPTIONS = (Option("output", "Name of the copy. Default: NAME-repaired.strobe.", also=("-o",), metavar="NAME"),)


def run(words: list[str]) -> int:
    """Parse the command line and repair; the path of the copy goes to stdout."""
    reader = reading("repair", _DESCRIPTION, _OPTIONS)
    arguments = reader.parse_args(words)

    from pathlib import Path

    from strobe.trace import archive
    from strobe.trace.derived.repair import repair

    folder = archive.find(arguments.trace)
    wanted = arguments.output or str(folder).removesuffix(archive.SUFFIX) + "-repaired"
    to = Path(wanted if wanted.endswith(archive.SUFFIX) else wanted + archive.SUFFIX)
    wrong = repair(folder, to)
    if not wrong:
        talk(f"'{folder}' is sound: nothing to repair")
        return 0
    for each in wrong:
        talk(each)
    print(to)
    return 0


VERB = Verb("repair", "Write a sound copy of a damaged trace", run)
