"""The loops of a process as text for a terminal, and as a flow graph in DOT or SVG."""

from __future__ import annotations

from strobe.model.units import format_count, format_ns, format_share
from strobe.present.aligned import aligned_rows
from strobe.present.flow_graph.dot import graph_dot
from strobe.present.flow_graph.svg import graph_svg
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.loops.loop_tree import TreeLevel
from strobe.steps.loops.structure import Structure, find_structure
from strobe.trace.trace import Trace


class DrawnStructure(Structure):
    """The loops of one process, see `Structure`; what `trace.structure()` returns."""

    def text(self, *, unicode: bool = True) -> str:
        """Return the tree for a terminal: the step and how it was found, then one line per loop."""
        if not self.levels:
            return f"no loops: {self.reason}\n"
        times, arrow = ("×", "→") if unicode else ("x", "->")
        lines: list[tuple[str, str, str, str]] = []

        def add(parent: int, depth: int) -> None:
            for number, level in enumerate(self.levels):
                if max(level.parent, -1) == parent:
                    name = "  " * depth + (f"{arrow} " if depth else "") + level.name
                    lines.append((name, _trips(level, times), format_share(level.share), _what(level)))
                    add(number, depth + 1)

        add(-1, 0)
        streams = ", ".join(self.streams) or self.stream
        head = f"step: {self.confidence} confidence, from {streams}; {self.reason}"
        if self.step is None:
            head = f"no step: {self.reason}; other loops"
        return "\n".join([head, "", *aligned_rows(lines, (False, True, True, False))]) + "\n"

    def to_dot(self) -> str:
        """Return the folded flow graph in the language of Graphviz."""
        return graph_dot(self.graph, self._level_names())

    def to_svg(self) -> str:
        """Return the folded flow graph as a picture that needs no other file."""
        return graph_svg(self.graph, self._level_names(), [level.parent for level in self.levels])

    def _level_names(self) -> tuple[str, ...]:
        return tuple(f"{level.name} {format_count(level.count)}x" for level in self.levels)


def drawn(structure: Structure) -> DrawnStructure:
    """Return the same loops with what draws them."""
    return DrawnStructure(**vars(structure))


def drawn_structure(
    trace: Trace,
    process: int | None = None,
    stream: str = "auto",
    *,
    step_level: str | None = None,
    step_at: str | None = None,
) -> DrawnStructure:
    """Return the loops of a process, with the step that the user asks for: what `trace.structure()` returns."""
    return drawn(find_structure(trace, process, stream, Asked(step_level, step_at)))


def _trips(level: TreeLevel, times: str) -> str:
    """`1 000×`, and within an outer loop what it runs per iteration: `34..41×`."""
    if level.trips is None:
        return f"{format_count(level.count)}{times}"
    low, _, high = level.trips
    return f"{format_count(low)}{times}" if low == high else f"{format_count(low)}..{format_count(high)}{times}"


def _what(level: TreeLevel) -> str:
    timed = level.count if level.in_detail is None else level.in_detail
    each = f"{format_ns(level.time_ns / timed)} each" if timed else ""
    of = "" if timed == level.count else f" of {format_count(timed)} in detail"
    known = "in detail" if timed == level.in_detail == level.count else "in all"
    total = f"{format_count(level.count)} {known}, " if level.trips is not None else ""
    return f"{total}{each}{of}; {level.marker}"
