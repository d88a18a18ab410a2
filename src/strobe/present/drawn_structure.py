"""The loops of a process with what draws them: as text for a terminal, as a flow graph in DOT or SVG."""

from __future__ import annotations

from strobe.model.units import format_count
from strobe.present.flow_graph.dot import graph_dot
from strobe.present.flow_graph.svg import graph_svg
from strobe.present.loop_tree_text import tree_text
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.loops.structure import Structure, find_structure
from strobe.trace.trace import Trace


class DrawnStructure(Structure):
    """The loops of one process, see `Structure`; what `trace.structure()` returns."""

    def text(self, *, unicode: bool = True) -> str:
        """Return the loop tree for a terminal, with shares of the run's time."""
        return tree_text(self, unicode=unicode)

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
