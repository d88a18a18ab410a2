"""`strobe doctor`: what can be recorded here, what is missing, and the command that mends it."""

from __future__ import annotations

import os

from strobe.cli.options import verbatim
from strobe.model.verb import Verb

_DESCRIPTION = """\
Look at this machine, this Python and this folder: what can be recorded, what is missing, and the command that mends
it. Nothing is changed, and the exit code is 0 whatever is found.
"""
_MARKS = {"ok": "ok", "limited": "LIMITED", "missing": "MISSING", "note": "-"}


def run(words: list[str]) -> int:
    """Print the findings, as a table or as JSON."""
    parser = verbatim("doctor", _DESCRIPTION)
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="where traces go (here)")
    parser.add_argument("--json", action="store_true", help="as JSON: area, name, state, found, mend")
    arguments = parser.parse_args(words)
    from strobe.record.doctor import examine

    findings = examine(arguments.folder, os.environ)
    if arguments.json:
        import json

        print(json.dumps({"findings": [each.as_row() for each in findings]}, indent=2))
        return 0
    wide = max(len(each.name) for each in findings)
    area = ""
    for each in findings:
        if each.area != area:
            area = each.area
            print(area)
        print(f"  {_MARKS[each.state]:<8} {each.name:<{wide}}  {each.found}")
        if each.mend:
            print(f"  {'':<8} {'':<{wide}}  mend: {each.mend}")
    return 0


VERB = Verb("doctor", "What can be recorded here, what is missing, and how to mend it", run)
