"""`strobe export TRACE --to FORMAT`: write a trace, or a part of it, as a file that other tools read."""

from __future__ import annotations

import sys

from strobe.cli.options import EXIT_CODES, Parser, add_options, add_part, part_of
from strobe.model.verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from strobe.model.plugins import Format, Option


def run(words: list[str]) -> int:
    """Parse the command line and export; the path of what was made goes to stdout."""
    from pathlib import Path

    from strobe.store import exports
    from strobe.store.trace import open_trace

    known = exports.writers()
    reader = Parser(
        prog="strobe export",
        description=__doc__,
        epilog="Formats: " + "; ".join(f"{each.name}: {each.title}" for each in known.values()) + ". " + EXIT_CODES,
        allow_abbrev=False,
    )
    reader.add_argument("trace", nargs="?", default="last", metavar="TRACE", help="a path, or last (default), last~1")
    reader.add_argument("--to", metavar="FORMAT", default="", help="what to write; else the suffix of -o says it")
    reader.add_argument("-o", "--output", metavar="FILE", help="where to (default: beside the trace)")
    add_part(reader)
    options = _options(known)
    add_options(reader.add_argument_group("options of formats"), list(options.values()))
    arguments = reader.parse_args(words)
    plugin = exports.format_for(Path(arguments.output) if arguments.output else None, arguments.to)
    trace = part_of(open_trace(arguments.trace), arguments)
    stem = trace.path.name.removesuffix(".strobe")
    path = Path(arguments.output) if arguments.output else trace.path.with_name(stem + plugin.suffixes[0])
    given = {name: value for name in options if (value := getattr(arguments, name)) != options[name].default}
    for note in trace.export(path, plugin.name, **given):
        print(f"strobe: {note}", file=sys.stderr)
    print(path)
    return 0


def _options(known: dict[str, Format]) -> dict[str, Option]:
    found: dict[str, Option] = {}
    for plugin in known.values():
        found.update({option.name: option for option in plugin.options})
    return found


VERB = Verb("export", "Write a trace as a file of another tool", run)
