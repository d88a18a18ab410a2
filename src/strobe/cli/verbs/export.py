"""`strobe export TRACE --to FORMAT`: write a trace, or a part of it, as a file for other tools."""

from __future__ import annotations

from strobe.cli.options import add_options, add_part, part_of, print_path, reading
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = "Write a trace, or a part of it, as a file for other tools."
_OPTIONS = (
    Option("to", "Format to write. Default: the format of the suffix of -o.", default="", metavar="FORMAT"),
    Option("output", "File to write. Default: beside the trace.", also=("-o",), metavar="FILE"),
)


def run(words: list[str]) -> int:
    """Parse the command line and export; the path of the new file goes to stdout."""
    from pathlib import Path

    from strobe.api import exports
    from strobe.api.trace import open_trace

    known = exports.writers()
    formats = "; ".join(f"{each.name}: {each.title}" for each in known.values())
    reader = reading("export", _DESCRIPTION, _OPTIONS, epilog=f"Formats: {formats}.")
    add_part(reader)
    options = {option.name: option for plugin in known.values() for option in plugin.options}
    add_options(reader.add_argument_group("options of formats"), list(options.values()))
    arguments = reader.parse_args(words)
    plugin = exports.format_for(Path(arguments.output) if arguments.output else None, arguments.to)
    trace = part_of(open_trace(arguments.trace), arguments)
    stem = trace.path.name.removesuffix(".strobe")
    path = Path(arguments.output) if arguments.output else trace.path.with_name(stem + plugin.suffixes[0])
    values = vars(arguments)
    given = {name: values[name] for name, option in options.items() if values[name] != option.default}
    for note in trace.export(path, plugin.name, **given):
        talk(note)
    print_path(path)
    return 0


VERB = Verb("export", "Write a trace as a file for another tool", run)
