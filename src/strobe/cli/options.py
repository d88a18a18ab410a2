"""What all reading verbs share: their options, and how a table leaves (stdout is data only, talk goes to stderr)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from strobe.errors import RecordError, StrobeError, UsageError

TYPE_CHECKING = False  # for type checkers; importing `typing` costs more than the rest of this file
if TYPE_CHECKING:
    from typing import TextIO, TypedDict

    from strobe.model.plugins import Analysis, Option
    from strobe.store.table import Table
    from strobe.store.trace import Trace

    class Workers(TypedDict):
        """Who answers: see `open_trace`."""

        jobs: int | None
        scheduler: str
        cluster: str
        cluster_options: dict[str, str | int]


FORMATS = ("table", "json", "csv", "md", "nvprof")
_PIECE = 1 << 15
EXIT_CODES = "Exit codes: 0 ok, 1 finding, 2 usage, 3 inconclusive, 4 unreadable input, 5 partial."


class Parser(argparse.ArgumentParser):
    """A parser whose complaints look like all our others."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise instead of leaving: the main function ends with exit code 2."""
        raise UsageError(message, do=f"{self.format_usage().strip()}\n  More: {self.prog} --help")


def verbatim(verb: str, description: str, usage: str | None = None, epilog: str | None = None) -> Parser:
    """Return a parser for a verb whose description and epilog are shown as they are written."""
    return Parser(
        prog=f"strobe {verb}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def parser(verb: str, description: str) -> Parser:
    """Return a parser for a reading verb with the options that all of them have."""
    result = Parser(prog=f"strobe {verb}", description=description, epilog=EXIT_CODES, allow_abbrev=False)
    result.add_argument(
        "trace", nargs="?", default="last", metavar="TRACE", help="a path, or last (default), last~1, ..."
    )
    add_output(result)
    return result


def add_output(target: argparse.ArgumentParser) -> None:
    """Add the options that say how a table leaves, and which part of it."""
    out = target.add_argument_group("output")
    out.add_argument(
        "--format", choices=FORMATS, help="table (terminal), tab-separated text (pipe) unless said otherwise"
    )
    out.add_argument("--json", dest="format", action="store_const", const="json", help="same as --format json")
    out.add_argument("--csv", dest="format", action="store_const", const="csv", help="same as --format csv")
    out.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    rows = target.add_argument_group("rows and columns")
    rows.add_argument(
        "--where", metavar="SQL", help="keep rows for which this holds: \"calls > 10 and name like 'aten::%%'\""
    )
    rows.add_argument(
        "--sort", metavar="COLUMN", help="numbers from large to small; COLUMN:asc or COLUMN:desc to choose"
    )
    rows.add_argument("--top", type=int, metavar="N", help="first N rows; 0 for all")
    rows.add_argument("--columns", metavar="A,B,...", help="only these, in this order")


def program_at(words: Sequence[str], reader: Parser) -> int:
    """Return where the options of a verb end and the program begins: a script, -m, -c, or --."""
    takes_value = {flag for action in reader._actions for flag in action.option_strings if action.nargs is None}
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("--", "-m", "-c") or not word.startswith("-"):
            return at
        at += 2 if word in takes_value else 1
    return len(words)


def check_script(verb: str, program: Sequence[str]) -> None:
    """Refuse what is not there, and what no Python can run: no trace is made of nothing."""
    from strobe.record.launch import is_command

    script = program[0]
    if script in ("--", "-m", "-c") or is_command(script):
        return
    if not os.path.exists(script):
        near = f"{script}.py" if os.path.isfile(f"{script}.py") else "SCRIPT [arguments]"
        raise RecordError(
            f"no such script or command: '{script}'",
            do=f"strobe {verb} {near}; -m MODULE; -- COMMAND, which is a path or on PATH",
            exit_code=2,
        )
    if _is_machine_code(script) or script.endswith(".sh"):
        path = script if "/" in script else f"./{script}"
        raise RecordError(f"'{script}' is no Python script", do=f"To run it: strobe {verb} -- {path}", exit_code=2)


def _is_machine_code(path: str) -> bool:
    """Whether a file is a program for Linux. Pipes (`<(...)`) are not read: they are read once."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:  # Python says what is wrong
        return False


def add_options(target: argparse._ArgumentGroup, options: Sequence[Option]) -> None:
    """Add the options of an analysis to a parser."""
    for option in options:
        flag = "--" + option.name.replace("_", "-")
        # argparse formats help with %, so a percent sign of ours must be doubled.
        text = option.help.replace("%", "%%")
        if option.type is bool:
            target.add_argument(flag, *option.also, dest=option.name, action="store_true", help=text)
            continue
        target.add_argument(
            flag,
            *option.also,
            dest=option.name,
            type=option.type,
            default=option.default,
            choices=option.choices or None,
            help=text,
        )
        for choice in option.choices if option.flags else ():
            target.add_argument(
                "--" + choice, dest=option.name, action="store_const", const=choice, help=argparse.SUPPRESS
            )


def add_part(target: argparse.ArgumentParser) -> None:
    """Add the options that choose a part of a trace."""
    part = target.add_argument_group("a part of it (both ends are in it)")
    part.add_argument("--ranks", metavar="A-B", help="these ranks, with their children")
    part.add_argument("--steps", metavar="A-B", help="these steps of every process")
    part.add_argument("--time", metavar="A-B", help="this stretch since the begin: 1.5s-2s, 10ms-20ms (s if no unit)")


def add_workers(target: argparse.ArgumentParser) -> None:
    """Add the options that say who answers a question to many ranks."""
    workers = target.add_argument_group("who answers (docs/how-to/cluster.md)")
    workers.add_argument(
        "--jobs", type=int, metavar="N", help="processes; default: as many as CPUs for big traces; with --cluster: jobs"
    )
    workers.add_argument("--scheduler", default="", metavar="ADDRESS", help="the workers of this Dask scheduler")
    workers.add_argument("--cluster", default="", metavar="KIND", help="workers started as jobs of a cluster: slurm")
    workers.add_argument(
        "--cluster-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for dask-jobqueue: queue, account, cores, memory, walltime, ...; again for each",
    )


def workers_of(arguments: argparse.Namespace) -> Workers:
    """Return what the options of `add_workers` say, as arguments for `open_trace`."""
    options: dict[str, str | int] = {}
    for each in arguments.cluster_option:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise UsageError(f"--cluster-option: '{each}' is no option", do="--cluster-option queue=short")
        options[key] = int(value) if value.isdecimal() else value
    return {
        "jobs": arguments.jobs,
        "scheduler": arguments.scheduler,
        "cluster": arguments.cluster,
        "cluster_options": options,
    }


def part_of(trace: Trace, arguments: argparse.Namespace) -> Trace:
    """Return the part of a trace that the options of `add_part` say."""
    ranks, steps = _range(arguments.ranks, "--ranks"), _range(arguments.steps, "--steps")
    time_ns = _times(arguments.time)
    if ranks is None and steps is None and time_ns is None:
        return trace
    return trace.part(ranks=ranks, steps=steps, time_ns=time_ns)


def _range(text: str | None, option: str) -> tuple[int, int] | None:
    if text is None:
        return None
    first, dash, last = text.partition("-")
    try:
        found = int(first), int(last if dash else first)
    except ValueError:
        raise UsageError(f"{option}: '{text}' is no range", do=f"{option} 10-20, or {option} 10") from None
    if found[0] > found[1]:
        raise UsageError(f"{option}: {text} ends before it begins")
    return found


def _times(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    import re
    from decimal import Decimal

    match = re.fullmatch(r"([\d.]+)(ns|us|ms|s)?-([\d.]+)(ns|us|ms|s)?", text)
    try:
        if match is None:
            raise ValueError
        unit = match[4] or match[2] or "s"
        sizes = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
        begin, end = (int(Decimal(n) * sizes[u or unit]) for n, u in ((match[1], match[2]), (match[3], match[4])))
    except (ValueError, ArithmeticError):
        raise UsageError(f"--time: '{text}' is no stretch of time", do="--time 1.5s-2s, --time 10ms-20ms") from None
    if begin >= end:
        raise UsageError(f"--time: {text} ends before it begins")
    return begin, end


def answer(verb: str, analysis: Analysis, words: list[str]) -> int:
    """Run an analysis as a verb of the command line."""
    reader = parser(verb, analysis.question)
    add_options(reader.add_argument_group("this verb"), analysis.options)
    add_workers(reader)
    arguments = reader.parse_args(words)
    options = {option.name: getattr(arguments, option.name) for option in analysis.options}
    from strobe.store.trace import open_trace

    with open_trace(arguments.trace, **workers_of(arguments)) as trace:
        return emit(trace.ask(analysis.name, **options), arguments)


def emit_from(arguments: argparse.Namespace, ask: Callable[[Trace], Table]) -> int:
    """Open the trace that the arguments name, ask it, and send the answer where they say."""
    from strobe.store.trace import open_trace

    return emit(ask(open_trace(arguments.trace)), arguments)


def emit(table: Table, arguments: argparse.Namespace, stream: TextIO | None = None) -> int:
    """Filter, sort, cut, and print a table as the options of `add_output` say, on stdout. Return the exit code.

    Another `stream` than stdout is read by people, terminal or not.
    """
    from strobe.present import text

    if table.note:
        text.talk(table.note)
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
            text.talk("; ".join([*about, *([f"{hidden} more rows: --top 0"] if hidden else [])]))
        return 0
    rendered = text.tab_separated(cut) if form is None else text.render(cut, form)
    write(rendered, arguments.output, stream)
    return 0


def write(rendered: str, path: str | None, to: TextIO | None = None) -> None:
    """Write text to a file, or to a stream (stdout); characters that it cannot show are replaced."""
    if path is None:
        to = to or sys.stdout
        encoding = to.encoding or "utf-8"
        shown = rendered.encode(encoding, "replace").decode(encoding)
        # In pieces: an unbuffered stdout (python -u) says nothing when a reader that leaves takes only a part of a long
        # write.
        for at in range(0, len(shown), _PIECE):
            to.write(shown[at : at + _PIECE])
        return
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(rendered)
    except OSError as error:
        raise StrobeError(f"cannot write '{path}': {error.strerror}") from error


def arranged(table: Table, arguments: argparse.Namespace) -> Table:
    """Return the rows and columns of a table that the options of `add_output` choose, in their order."""
    if arguments.where:
        table = table.filter(arguments.where)
    if arguments.sort:
        column, _, order = arguments.sort.partition(":")
        if order not in ("", "asc", "desc"):
            raise UsageError(f"'{arguments.sort}': order is asc or desc")
        table = table.sort(column, descending={"": None, "asc": False, "desc": True}[order])
    if arguments.top:
        if arguments.top < 0:
            raise UsageError("--top counts rows: 0 for all")
        table = table.head(arguments.top)
    if arguments.columns and arguments.columns != "all":
        table = table.select([name.strip() for name in arguments.columns.split(",")])
    return table
