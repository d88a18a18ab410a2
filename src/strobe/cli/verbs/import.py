# ruff: noqa: N999 - the file is named as the verb
"""`strobe import FILE...`: make one trace from files of other tools, for example those of all ranks of a job."""

from __future__ import annotations

from pathlib import Path

from strobe.cli.options import print_path, reading
from strobe.errors import TraceError, UsageError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = "Make one trace from files of other tools, for example those of all ranks of a job."
_OPTIONS = (
    Option("output", "Name of the trace to make. Default: FILE.strobe beside the file.", also=("-o",), metavar="NAME"),
    Option(
        "ranks", "Rank of each file, if the files do not contain it.", int, least=0, items=1 << 20, metavar="A,B,..."
    ),
)


def run(words: list[str]) -> int:
    """Parse the command line and import; the path of the trace goes to stdout."""
    reader = reading("import", _DESCRIPTION, _OPTIONS, trace=False)
    reader.add_argument(
        "files", nargs="+", metavar="FILE", help="Files, folders or archives; give the files of all ranks together."
    )
    arguments = reader.parse_args(words)

    from strobe.api import imports
    from strobe.api.trace import open_trace
    from strobe.present.summary import write_summary
    from strobe.trace.archive import SUFFIX

    paths = [Path(name) for name in arguments.files]
    for path in paths:
        if not path.exists():
            raise TraceError(f"no such file: '{path}'")
    if len(paths) > 1 and arguments.output is None:
        raise UsageError(
            "several files become one trace, which needs a name", do="strobe import a.json b.json -o job.strobe"
        )
    name = arguments.output or str(paths[0]) + SUFFIX
    folder = Path(name if name.endswith(SUFFIX) else name + SUFFIX)
    made = imports.imported(paths, folder, ranks=list(arguments.ranks) if arguments.ranks else None)
    trace = open_trace(made)
    write_summary(trace)
    info = trace.info
    print_path(made)
    talk(f"{info.process_count} processes, {info.location_count} locations, {info.span_count} spans")
    return 0


VERB = Verb("import", "Make a trace from files of other tools", run)
