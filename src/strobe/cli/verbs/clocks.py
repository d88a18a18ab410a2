"""`strobe clocks TRACE`: how the clocks of the nodes differed, whether messages agree, and their repair."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from strobe.cli.options import add_gate, add_options, gated, reading
from strobe.model import exit_codes
from strobe.model.option import Option
from strobe.model.verb import Verb

if TYPE_CHECKING:
    from strobe.api.trace import Trace
    from strobe.ranks.clock_check import Found

_DESCRIPTION = """\
Compare the clock of each node with that of the trace, and print how exact the comparison is. Then count the messages
and collectives between nodes that these clocks put in the wrong order: received before they were sent, or left before
every rank had entered. `strobe run` repairs such clocks at the end of the run.
"""
_OPTIONS = (
    Option("repair", "Adjust the clocks so that no message arrives before it was sent.", bool, False),
    Option("as_measured", "Undo the repair.", bool, False),
)


def run(words: list[str]) -> int:
    """Parse the command line, and print a line for each node."""
    reader = reading("clocks", _DESCRIPTION)
    what = reader.add_mutually_exclusive_group()
    add_options(what, _OPTIONS)
    add_gate(reader, "messages or collectives are in the wrong order")
    arguments = reader.parse_args(words)

    from strobe.api.trace import open_trace
    from strobe.ranks.clock_check import check, repair
    from strobe.trace.clocks.node_clocks import REPAIRS

    trace = open_trace(arguments.trace)
    if arguments.as_measured or arguments.repair:
        (trace.path / REPAIRS).unlink(missing_ok=True)
        trace = open_trace(trace.path)
    if arguments.repair:
        repair(trace)
        trace = open_trace(trace.path)
    nodes = _node_lines(trace)
    if len(nodes) < 2:
        print("\n".join([*nodes, "all processes share one clock"]))
        return exit_codes.OK
    order = check(trace)
    print("\n".join([*nodes, *_order_lines(order), *_repair_lines(trace)]))
    return gated(arguments, bool(order.bad))


def _node_lines(trace: Trace) -> list[str]:
    """Return a line for each clock: its node, its processes, and how it differs from the clock of the trace."""
    from strobe.model.units import format_ns

    ranks_by_process, hosts = trace.processes.integers("rank"), trace.processes.texts("host")
    quality = trace.quality
    rows = zip(
        *(quality.texts("what"), quality.integers("process"), quality.integers("value"), quality.texts("text")),
        strict=True,
    )
    measured = {process: (error_ns, text) for what, process, error_ns, text in rows if what == "clock_error_ns"}
    lines = []
    for name in dict.fromkeys(trace.clocks):
        processes = [process for process, clock in enumerate(trace.clocks) if clock == name]
        ranks = sorted(rank for process in processes if (rank := ranks_by_process[process]) is not None)
        who = "1 process" if len(processes) == 1 else f"{len(processes)} processes"
        who += f", ranks {_ranges(ranks)}" if len(ranks) > 1 else f", rank {ranks[0]}" if ranks else ""
        difference = "clock of the trace" if name in ("", trace.job.node) else "clock not compared"
        if processes[0] in measured:
            error_ns, text = measured[processes[0]]
            difference = f"{text}; error {'unknown' if error_ns is None else f'at most {format_ns(error_ns)}'}"
        lines.append(f"{hosts[processes[0]] or name} ({who}): {difference}")
    return lines


def _order_lines(order: Found) -> list[str]:
    from strobe.model.units import format_count, format_ns

    lines = [
        f"{what} between clocks: {format_count(count)}, in the wrong order: {format_count(bad)}"
        for what, bad, count in (
            ("messages", order.bad_messages, order.messages),
            ("collectives", order.bad_collectives, order.collectives),
        )
    ]
    return [*lines, f"the worst is early by {format_ns(order.worst_ns)}"] if order.bad else lines


def _repair_lines(trace: Trace) -> list[str]:
    from strobe.model.units import format_count, format_ns

    quality = trace.quality
    rows = zip(quality.integers("process"), quality.texts("what"), quality.integers("value"), strict=True)
    of_trace = {what: value for process, what, value in rows if process is None and value}
    if not (violations := of_trace.get("clock_violations")):
        return []
    worst = format_ns(of_trace["clock_violations_worst_ns"])
    return [f"repaired: before, {format_count(violations)} were in the wrong order, the worst by {worst}"]


def _ranges(numbers: list[int]) -> str:
    """Return numbers in order as `0-3, 8`."""
    # Within a run of consecutive numbers, each is as far from its place in the list.
    groups = groupby(enumerate(numbers), key=lambda each: each[1] - each[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


VERB = Verb("clocks", "Compare the clocks of nodes, and check them by messages", run)
