"""`strobe doctor`: what can be recorded here, what is missing, and the command that repairs it."""

from __future__ import annotations

import os
from itertools import groupby

from strobe.cli.options import add_option, verbatim
from strobe.model.option import Option
from strobe.model.verb import Verb

_DESCRIPTION = """\
Check this machine, this Python and this folder: what can be recorded and viewed, what is missing, and the command that
repairs it. Nothing is changed, and the exit code is 0 whatever is found.
"""
_MARKS = {"ok": "ok", "limited": "LIMITED", "missing": "MISSING", "note": "-"}


def run(words: list[str]) -> int:
    """Print the findings, as a table or as JSON."""
    parser = verbatim("doctor", _DESCRIPTION)
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="Folder for traces. Default: the current one."
    )
    add_option(parser, Option("json", "Print JSON: area, name, state, found, mend.", bool, False))
    arguments = parser.parse_args(words)
    from strobe.record.doctor.checks import examine

    findings = examine(arguments.folder, os.environ)
    if arguments.json:
        import json

        print(json.dumps({"findings": [vars(each) for each in findings]}, indent=2))
        return 0
    from strobe.present.aligned import aligned_rows

    rows = []
    for each in findings:
        rows.append((each.area, (_MARKS[each.state], each.name, each.found)))
        if each.mend:
            rows.append((each.area, ("", "", f"mend: {each.mend}")))
    lines = iter(aligned_rows([cells for _, cells in rows]))
    for area, of_area in groupby(area for area, _ in rows):
        print(area, *(f"  {next(lines)}" for _ in of_area), sep="\n")
    return 0


VERB = Verb("doctor", "What can be recorded and viewed here, what is missing, and how to repair it", run)
