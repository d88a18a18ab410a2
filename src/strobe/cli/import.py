# ruff: noqa: N999 - the file is named as the verb
"""`strobe import FILE...`: make a trace of other tools' files, several of them one (the ranks of a job)."""

from __future__ import annotations

import sys
from pathlib import Path

from strobe.cli.options import EXIT_CODES, Parser
from strobe.errors import TraceError, UsageError
from strobe.model.verb import Verb


def run(words: list[str]) -> int:
    """Parse the command line and import; the path of the trace goes to stdout."""
    reader = Parser(prog="strobe import", description=__doc__, epilog=EXIT_CODES, allow_abbrev=False)
    reader.add_argument("files", nargs="+", metavar="FILE", help="files, folders or archives; those of ranks together")
    reader.add_argument("-o", "--output", metavar="NAME", help="the trace to make (default: FILE.strobe beside it)")
    reader.add_argument("--ranks", metavar="A,B,...", help="ranks of the files, where they do not tell")
    arguments = reader.parse_args(words)

    from strobe.store import imports
    from strobe.store.archive import SUFFIX
    from strobe.store.trace import open_trace

    paths = [Path(name) for name in arguments.files]
    for path in paths:
        if not path.exists():
            raise TraceError(f"no such file: '{path}'")
    if len(paths) > 1 and arguments.output is None:
        raise UsageError("several files make one trace: name it", do="strobe import a.json b.json -o job.strobe")
    ranks = _ranks(arguments.ranks)
    name = arguments.output or str(paths[0]) + SUFFIX
    folder = Path(name if name.endswith(SUFFIX) else name + SUFFIX)
    made = imports.imported(paths, folder, ranks=ranks)
    trace = open_trace(made)
    print(made)
    info = trace.info
    shown = f"{info.process_count} processes, {info.location_count} locations, {info.span_count} spans"
    print(f"strobe: {shown}", file=sys.stderr)
    return 0


def _ranks(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"'{text}' is no list of ranks", do="One number a file: --ranks 0,1,2,3") from None


VERB = Verb("import", "Make a trace of other tools' files", run)
