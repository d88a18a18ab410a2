"""`strobe clocks TRACE`: how the clocks of the nodes differed, whether messages agree, and repairing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.cli.options import EXIT_CODES, Parser
from strobe.model.verb import Verb

if TYPE_CHECKING:
    from strobe.store.trace import Trace

_DESCRIPTION = """\
Say how the clock of each node differed from the trace's, and how sure that is; and how many messages and collectives
between nodes are in the wrong order by these clocks: received before they were sent, left before all had come.
`strobe run` has repaired what it found at the end of the run.
"""


def run(words: list[str]) -> int:
    """Parse the command line, and print a line for each node."""
    reader = Parser(prog="strobe clocks", description=_DESCRIPTION, epilog=EXIT_CODES, allow_abbrev=False)
    reader.add_argument("trace", nargs="?", default="last", metavar="TRACE", help="a path, or last (default), last~1")
    what = reader.add_mutually_exclusive_group()
    what.add_argument("--repair", action="store_true", help="move the clocks so that no message arrives too early")
    what.add_argument("--as-measured", action="store_true", help="take a repair back")
    arguments = reader.parse_args(words)

    from strobe.store.node_clocks import REPAIRS
    from strobe.store.trace import open_trace
    from strobe.structure.clock_check import repair

    trace = open_trace(arguments.trace)
    if arguments.as_measured or arguments.repair:
        (trace.path / REPAIRS).unlink(missing_ok=True)
        trace = open_trace(trace.path)
    if arguments.repair:
        repair(trace)
        trace = open_trace(trace.path)
    print("\n".join(_lines(trace)))
    return 0


def _lines(trace: Trace) -> list[str]:
    from strobe.model.units import format_count, format_ns
    from strobe.structure.clock_check import check

    processes, quality = trace.processes.to_pylist(), trace.quality.to_pylist()
    told = {row["process"]: row for row in quality if row["what"] == "clock_error_ns"}
    lines = []
    for name in dict.fromkeys(trace.clocks):
        own = [processes[process] for process, clock in enumerate(trace.clocks) if clock == name]
        ranks = sorted(int(str(each["rank"])) for each in own if each["rank"] is not None)
        who = "1 process" if len(own) == 1 else f"{len(own)} processes"
        who += f", ranks {_ranges(ranks)}" if len(ranks) > 1 else f", rank {ranks[0]}" if ranks else ""
        row = told.get(own[0]["process"])
        said = "clock of the trace" if name in ("", trace.job.node) else "nothing is known of its clock"
        if row is not None:
            error = "unknown" if row["value"] is None else f"at most {format_ns(int(str(row['value'])))}"
            said = f"{row['text']}; error {error}"
        lines.append(f"{own[0]['host'] or name} ({who}): {said}")
    if len(lines) < 2:
        return [*lines, "all processes share one clock"]
    found = check(trace)
    for what, bad, count in (
        ("messages", found.bad_messages, found.messages),
        ("collectives", found.bad_collectives, found.collectives),
    ):
        lines.append(f"{what} between clocks: {format_count(count)}, in the wrong order: {format_count(bad)}")
    if found.bad:
        lines.append(f"the worst is early by {format_ns(found.worst_ns)}")
    repaired = {row["what"]: int(str(row["value"])) for row in quality if row["process"] is None and row["value"]}
    if repaired.get("clock_violations"):
        worst = format_ns(repaired["clock_violations_worst_ns"])
        many = format_count(repaired["clock_violations"])
        lines.append(f"repaired: before, {many} were in the wrong order, the worst by {worst}")
    return lines


def _ranges(numbers: list[int]) -> str:
    """Return numbers in order as `0-3, 8`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


VERB = Verb("clocks", "How the clocks of the nodes differed, and whether messages agree", run)
