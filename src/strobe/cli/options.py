"""What verbs share: their parsers, options and output. Data goes to stdout, messages to stderr."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence

from strobe.errors import StrobeError, UsageError
from strobe.model import exit_codes
from strobe.model.durations import duration_ns
from strobe.model.option import Option
from strobe.model.private_files import private_opener
from strobe.model.terminal import as_it_is, talk, visible

TYPE_CHECKING = False  # for type checkers; importing `typing` costs more than the rest of this file
if TYPE_CHECKING:
    from typing import TextIO

    from strobe.api.trace import Trace
    from strobe.tables.table import Table


FORMATS = ("table", "json", "csv", "md", "nvprof")
_PIECE = 1 << 15


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all other errors of strobe."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise instead of exiting: the main function ends with exit code 2."""
        raise UsageError(message, do=f"More: {self.prog} --help")


def verbatim(verb: str, description: str, usage: str | None = None, epilog: str | None = None) -> Parser:
    """Return a parser for a verb whose description and epilog keep their line breaks."""
    return Parser(
        prog=f"strobe {verb}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def reading(
    verb: str, description: str | None, options: Sequence[Option] = (), *, trace: bool = True, epilog: str = ""
) -> Parser:
    """Return a parser for a verb that reads traces; `trace`: one that the first word names.

    Its help ends with the exit codes.
    """
    epilog = f"{epilog} {exit_codes.SHORT}".strip()
    result = Parser(prog=f"strobe {verb}", description=description, epilog=epilog, allow_abbrev=False)
    if trace:
        text = "Path of a trace, or last (default), last~1, ..."
        result.add_argument("trace", nargs="?", default="last", metavar="TRACE", help=text)
    add_options(result, options)
    return result


def answering(verb: str, description: str | None) -> Parser:
    """Return a parser for a verb that answers a question to one trace with a table."""
    result = reading(verb, description)
    add_output(result)
    return result


OUTPUT = Option("output", "Write to this file instead of stdout.", also=("-o",), metavar="FILE")
_OUTPUT = (
    Option("format", "Form of the table. Default: table on a terminal, tab-separated text in a pipe.", choices=FORMATS),
    OUTPUT,
)
_ROWS_AND_COLUMNS = (
    Option(
        "where",
        "Keep only rows for which this expression is true: \"calls > 10 and name like 'aten::%'\".",
        metavar="SQL",
    ),
    Option(
        "sort",
        "Sort by this column: numbers from large to small, text from A to Z; COLUMN:asc or COLUMN:desc to choose.",
        metavar="COLUMN",
    ),
    Option("top", "Show only the first N rows (0: all rows).", int, least=0, metavar="N"),
    Option("columns", "Show only these columns, in this order (all: every column).", metavar="A,B,..."),
)


def add_output(target: argparse.ArgumentParser) -> None:
    """Add the options for the form of a table, its rows and its columns."""
    out = target.add_argument_group("output")
    add_options(out, _OUTPUT)
    for form in ("json", "csv"):
        out.add_argument(f"--{form}", dest="format", action="store_const", const=form, help=f"Same as --format {form}.")
    add_options(target.add_argument_group("rows and columns"), _ROWS_AND_COLUMNS)


def add_options(target: argparse._ActionsContainer, options: Sequence[Option]) -> None:
    """Add options to a parser, or to a group of one."""
    for option in options:
        add_option(target, option)


def add_option(target: argparse._ActionsContainer, option: Option, *, unread: bool = False) -> None:
    """Add one option. `unread`: keep its text, and None where it is not given: other places may give it, too."""
    short = [name for name in option.also if not name.startswith("--")]
    flags = [*short, option.flag, *(name for name in option.also if name not in short)]
    # argparse formats help with %, so a percent sign of ours must be doubled.
    text = option.help.replace("%", "%%")
    if option.kind == "flag":
        target.add_argument(
            *flags, dest=option.keyword, action="store_true", default=None if unread else False, help=text
        )
        if unread:
            no = f"--no-{option.name}"
            target.add_argument(no, dest=option.keyword, action="store_false", default=None, help=argparse.SUPPRESS)
        return
    if option.default_text:
        text += f" [default: {option.default_text.replace('%', '%%')}]"
    choices = "{" + ",".join(option.choices) + "}" if option.choices else ""
    default: object = None if unread else [] if option.many else option.default
    metavar = option.metavar or choices or ("TIME" if option.unit else option.flag[2:].upper())

    def add(flags: Sequence[str], default: object, help: str) -> None:
        target.add_argument(
            *flags,
            dest=option.keyword,
            action="append" if option.many else "store",
            type=str if unread else _reader(option),
            metavar=metavar,
            required=option.required,
            default=default,
            help=help,
        )

    add(flags, default, text)
    named = "--" + option.name.replace("_", "-")
    if named not in flags:  # Python's name has the unit
        add([named], argparse.SUPPRESS, argparse.SUPPRESS)
    for choice in option.choices if option.flags else ():
        same = f"Same as {option.flag} {choice}."
        target.add_argument("--" + choice, dest=option.keyword, action="store_const", const=choice, help=same)


def _reader(option: Option) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return option.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def add_part(target: argparse.ArgumentParser) -> None:
    """Add the options that choose a part of a trace."""
    add_options(
        target.add_argument_group("part of the trace (both ends are included)"),
        (
            Option("ranks", "These ranks, with their child processes.", parse=_range, metavar="A-B"),
            Option("steps", "These steps of every process.", parse=_range, metavar="A-B"),
            Option(
                "time",
                "This time since the start: 1.5s-2s, 10ms-20ms, 1min-2min. Numbers without a unit are seconds.",
                parse=_times,
                metavar="A-B",
            ),
        ),
    )


def add_gate(target: argparse._ActionsContainer, what: str) -> None:
    """Add the option that makes a verb end with 1 where `what` holds: for scripts and continuous integration."""
    add_option(target, Option("fail_on_findings", f"End with exit code 1 if {what}.", bool, False))


def gated(arguments: argparse.Namespace, found: bool) -> int:
    """Return the exit code of a verb with `add_gate`; `found`: whether there is something to fail on."""
    return exit_codes.FINDINGS if found and arguments.fail_on_findings else exit_codes.OK


def add_workers(target: argparse.ArgumentParser) -> None:
    """Add the options for the workers that answer a question to many ranks."""
    add_options(
        target.add_argument_group("workers (docs/how-to/cluster.md)"),
        (
            Option(
                "jobs",
                "Number of processes, or of jobs with --cluster. Default: one per CPU for large traces.",
                int,
                least=1,
                metavar="N",
            ),
            Option("scheduler", "Use the workers of this Dask scheduler.", default="", metavar="ADDRESS"),
            Option("cluster", "Start workers as jobs of a cluster: slurm.", default="", metavar="KIND"),
            Option(
                "cluster_option",
                "Pass to dask-jobqueue: queue, account, cores, memory, walltime, ... Can be repeated.",
                parse=_key_and_value,
                many=",",
                metavar="KEY=VALUE",
            ),
        ),
    )


def _key_and_value(text: str) -> tuple[str, str | int]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"'{text}' is not KEY=VALUE, for example queue=short")
    return key, int(value) if value.isdecimal() else value


def part_of(trace: Trace, arguments: argparse.Namespace) -> Trace:
    """Return the part of a trace that the options of `add_part` choose."""
    if arguments.ranks is arguments.steps is arguments.time is None:
        return trace
    return trace.part(ranks=arguments.ranks, steps=arguments.steps, time_ns=arguments.time)


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    try:
        ends = int(first), int(last if dash else first)
    except ValueError:
        raise ValueError(f"'{text}' is not a range, such as 10-20 or 10") from None
    if ends[0] > ends[1]:
        raise ValueError(f"{text} ends before it begins")
    return ends


def _times(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    unit = last.lstrip("0123456789.")
    try:
        begin_ns, end_ns = duration_ns(first, unit or "s"), duration_ns(last, "s")
    except ValueError:
        raise ValueError(f"'{text}' is not a time span, such as 1.5s-2s or 10ms-20ms") from None
    if begin_ns >= end_ns:
        raise ValueError(f"{text} ends before it begins")
    return begin_ns, end_ns


def chooses_rows(arguments: argparse.Namespace) -> bool:
    """Whether the options of `add_output` ask for rows or columns, which only a table has."""
    return bool(arguments.where or arguments.sort or arguments.top is not None or arguments.columns)


def emit(table: Table, arguments: argparse.Namespace, stream: TextIO | None = None) -> int:
    """Filter, sort, cut, and print a table as the options of `add_output` choose; return the exit code.

    A `stream` other than stdout gets a table for people, whether it is a terminal or not.
    """
    from strobe.present import text

    if table.note:
        talk(table.note)
    table = arranged(table, arguments)
    form = arguments.format or ("table" if stream and arguments.output is None else None)
    stream = stream or sys.stdout
    to_terminal = arguments.output is None and stream.isatty() and form in (None, "table")
    cut = table.head(table.shows) if to_terminal and arguments.top is None and table.shows else table
    if to_terminal:
        text.print_for_people(cut, stream)
        hidden = len(table) - len(cut)
        about = [table.about] if table.about and len(table) else []
        if about or hidden:
            talk("; ".join([*about, *([f"{hidden} more rows: --top 0"] if hidden else [])]))
        return exit_codes.OK
    rendered = text.tab_separated(cut) if form is None else text.render(cut, form)
    write(rendered, arguments.output, stream, data=form in ("json", "csv"))
    return exit_codes.OK


def print_path(path: str | os.PathLike[str]) -> None:
    """Print the path of what was made: exactly, whatever its bytes are, where a program reads it."""
    if sys.stdout.isatty():
        print(path)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(os.fsencode(path) + b"\n")


def page_form(output: str | None) -> tuple[bool, int]:
    """Return whether a page of text may contain box characters, and its width: for a file, or for stdout."""
    from strobe.present.text_page import WIDTH, has_box_characters

    width = shutil.get_terminal_size((WIDTH, 40)).columns if sys.stdout.isatty() else WIDTH
    return output is not None or has_box_characters(sys.stdout), width


def write(rendered: str, path: str | None, to: TextIO | None = None, *, data: bool = False) -> None:
    """Write text to a file, or to a stream (stdout), where characters that it cannot show are replaced.

    `data`: for programs, not for people, as it is unless it goes to a terminal.
    """
    if path is None:
        to = to or sys.stdout
        if data and not to.isatty():
            to = as_it_is(to)
        encoding = to.encoding or "utf-8"
        shown = rendered.encode(encoding, "replace").decode(encoding)
        # In pieces: an unbuffered stdout (python -u) raises no error when a reader leaves during a long write.
        for at in range(0, len(shown), _PIECE):
            to.write(shown[at : at + _PIECE])
        return
    try:
        with open(path, "w", encoding="utf-8", opener=private_opener) as stream:
            stream.write(rendered if data else visible(rendered))
    except OSError as error:
        raise StrobeError(f"cannot write '{path}': {error.strerror}") from error


def arranged(table: Table, arguments: argparse.Namespace) -> Table:
    """Return the rows and columns of a table that the options of `add_output` choose."""
    if arguments.where:
        table = table.filter(arguments.where)
    if arguments.sort:
        column, _, order = arguments.sort.partition(":")
        if order not in ("", "asc", "desc"):
            raise UsageError(f"'{order}' is not an order", do=f"--sort {column}:asc or --sort {column}:desc")
        table = table.sort(column, descending={"": None, "asc": False, "desc": True}[order])
    if arguments.top:
        table = table.head(arguments.top)
    if arguments.columns and arguments.columns != "all":
        table = table.select([name.strip() for name in arguments.columns.split(",")])
    return table
