"""Loop tree as text: one line a loop, with its count, its share of the run, and how often it runs."""

from __future__ import annotations

from strobe.model.units import format_count, format_ns, format_share
from strobe.steps.loops.loop_tree import TreeLevel
from strobe.steps.loops.structure import Structure


def tree_text(structure: Structure, *, unicode: bool = True) -> str:
    """Return the tree for a terminal: what the step is and why, then one line a loop."""
    if not structure.levels:
        return f"no loops: {structure.reason}\n"
    times, arrow = ("×", "→") if unicode else ("x", "->")
    lines: list[tuple[str, str, str, str]] = []

    def add(number: int, depth: int) -> None:
        level = structure.levels[number]
        name = "  " * depth + (f"{arrow} " if depth else "") + level.name
        known = "in all" if structure.kept_steps is None else "in detail"
        lines.append((name, _trips(level, times), format_share(level.share), _what(level, known)))
        for child, each in enumerate(structure.levels):
            if each.parent == number:
                add(child, depth + 1)

    for number, level in enumerate(structure.levels):
        if level.parent < 0:
            add(number, 0)
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    tree = [
        f"{name.ljust(widths[0])}  {trips.rjust(widths[1])}  {share.rjust(widths[2])}  {what}".rstrip()
        for name, trips, share, what in lines
    ]
    streams = ", ".join(structure.streams) or structure.stream
    if structure.step is None:
        return "\n".join([f"no step: {structure.reason}; other loops", "", *tree]) + "\n"
    head = f"step: {structure.confidence} confidence, from {streams}; {structure.reason}"
    return "\n".join([head, "", *tree]) + "\n"


def _trips(level: TreeLevel, times: str) -> str:
    """`1 000×`, and within an outer loop what it runs per iteration: `34..41×`."""
    if level.trips is None:
        return f"{format_count(level.count)}{times}"
    low, _, high = level.trips
    return f"{format_count(low)}{times}" if low == high else f"{format_count(low)}..{format_count(high)}{times}"


def _what(level: TreeLevel, known: str) -> str:
    each = f"{format_ns(level.time_ns / level.count)} each" if level.count else ""
    total = f"{format_count(level.count)} {known}, " if level.trips is not None else ""
    return f"{total}{each}; {level.marker}"
