"""The folded flow graph as an SVG picture that needs nothing else: readable in light and in dark surroundings."""

from __future__ import annotations

from collections.abc import Sequence

from strobe.model.units import format_count, format_ns
from strobe.present.flow_graph.layout import Layout, Place, lay_out
from strobe.present.html_parts import escape
from strobe.steps.loops.folded_graph import FlowEdge, FlowNode, Graph

_WIDTH, _HEIGHT = 236, 40  # of a node
_GAP, _BETWEEN = 28, 24  # between rows, between nodes of a row
_LANE = 11
_MARGIN = 20
_BAND = 18  # for the name of a loop, per level
_CHARACTERS = 36  # that fit into a node
_MOST_LANES = 12  # further ones share the last
_COLORS = {
    "data": "#e0a030",
    "compute": "#4a90d9",
    "communication": "#9a6fd0",
    "sync": "#d06a6a",
    "copy": "#3aa899",
    "host": "#6aa84f",
    "other": "#8c95a3",
}
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #1f2733; }
.weak { fill: #5b6675; font-size: 10px; }
.node { fill: #ffffff; stroke: #9aa4b2; }
.edge { fill: none; stroke: #6b7686; }
.back { stroke: #c0603a; }
.rare { stroke-dasharray: 4 3; }
.loop { fill: #0b63c5; fill-opacity: 0.05; stroke: #0b63c5; stroke-opacity: 0.35; }
.page { fill: #f7f8fa; }
@media (prefers-color-scheme: dark) {
  text { fill: #d9dee7; } .weak { fill: #939cab; } .node { fill: #232a35; stroke: #566172; }
  .edge { stroke: #8b97a8; } .back { stroke: #e08a63; } .loop { fill: #6cb2ff; fill-opacity: 0.07; stroke: #6cb2ff; }
  .page { fill: #171c24; }
}
"""


def graph_svg(graph: Graph, levels: Sequence[str], parents: Sequence[int]) -> str:
    """Return the graph as SVG. `levels`: names of the loops, framed around their nodes; `parents`: of the loops."""
    if not graph.nodes:
        return _page(320, 60, ['<text x="20" y="34">no events, no graph</text>'])
    drawing = _Drawing(graph, levels, parents)
    return _page(drawing.width, drawing.height, [*drawing.loops(), *drawing.edges(), *drawing.nodes()])


def _page(width: float, height: float, content: Sequence[str]) -> str:
    marker = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        'markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z" fill="#6b7686"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<style>{_STYLE}</style><defs>{marker}</defs>",
            f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>',
            *content,
            "</svg>\n",
        ]
    )


class _Drawing:
    """The pieces of the picture, from its layout."""

    def __init__(self, graph: Graph, levels: Sequence[str], parents: Sequence[int]) -> None:
        self.graph, self.levels, self.parents = graph, levels, parents
        self.layout: Layout = lay_out(graph)
        self.placed = list(zip(graph.nodes, self.layout.places, strict=True))
        self.depth = max(self._depth(node.level) for node in graph.nodes)
        widest = max(place.columns for place in self.layout.places)
        pad = 10 * (self.depth + 1)
        left, right = (max(lanes.values(), default=0) for lanes in (self.layout.left, self.layout.right))
        self.left = _MARGIN + pad + _LANE * (1 + min(left, _MOST_LANES))
        self.inner = widest * _WIDTH + (widest - 1) * _BETWEEN
        self.width = self.left + self.inner + pad + _LANE * (1 + min(right, _MOST_LANES)) + _MARGIN
        self.top = self._tops()
        self.height = self.top[-1] + _HEIGHT + _MARGIN + 10 * self.depth
        self.most = max((edge.count for edge in graph.edges), default=1)
        self.longest = max(node.time_ns for node in graph.nodes) or 1

    def _around(self, level: int) -> set[int]:
        """Return a loop and those around it."""
        found = set()
        while 0 <= level < len(self.levels):
            found.add(level)
            level = self.parents[level]
        return found

    def _depth(self, level: int) -> int:
        return len(self._around(level))

    def _tops(self) -> list[float]:
        """Top of every row: a loop that begins needs room for its name."""
        rows: list[set[int]] = [set() for _ in range(self.layout.rows)]
        for node, place in self.placed:
            rows[place.row] |= self._around(node.level)
        begun: set[int] = set()
        tops, y = [], float(_MARGIN)
        for loops in rows:
            y += _BAND * len(loops - begun)
            begun |= loops
            tops.append(y)
            y += _HEIGHT + _GAP
        return tops

    def _box(self, place: Place) -> tuple[float, float]:
        used = place.columns * _WIDTH + (place.columns - 1) * _BETWEEN
        return self.left + (self.inner - used) / 2 + place.column * (_WIDTH + _BETWEEN), self.top[place.row]

    def nodes(self) -> list[str]:
        """Boxes with name, count, and time; the bar shows the time relative to that of the longest node."""
        return [self._node(node, *self._box(place)) for node, place in self.placed]

    def _node(self, node: FlowNode, x: float, y: float) -> str:
        color = _COLORS.get(node.group, _COLORS["other"])
        bar = max(2.0, (_WIDTH - 8) * (node.time_ns / self.longest) ** 0.5)  # few nodes take nearly all
        title = escape("\n".join([*node.members[:40], *(["..."] if len(node.members) > 40 else [])]))
        facts = f"{format_count(node.count)}×  {format_ns(node.time_ns)}"
        return (
            f"<g><title>{title}</title>"
            f'<rect class="node" x="{x:.1f}" y="{y:.1f}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="4" height="{_HEIGHT}" rx="2" fill="{color}"/>'
            f'<text x="{x + 10:.1f}" y="{y + 15:.1f}">{escape(_shortened(node.name))}</text>'
            f'<text class="weak" x="{x + 10:.1f}" y="{y + 29:.1f}">{escape(facts)}</text>'
            f'<rect x="{x + 6:.1f}" y="{y + _HEIGHT - 5:.1f}" width="{bar:.1f}" height="3" fill="{color}"/></g>'
        )

    def edges(self) -> list[str]:
        """Lines: the wider the more often; dashed where a path is rare; back edges on the left."""
        return [self._edge(edge) for edge in sorted(self.graph.edges, key=lambda edge: edge.count)]

    def _edge(self, edge: FlowEdge) -> str:
        source, target = self.layout.places[edge.source], self.layout.places[edge.target]
        (x1, y1), (x2, y2) = self._box(source), self._box(target)
        lane = self.layout.left.get(edge)
        if lane is not None:
            path = self._through(x1, y1, x2, y2, self.left - 10 * self.depth - _LANE * min(lane, _MOST_LANES), -1)
        elif (lane := self.layout.right.get(edge)) is not None:
            side = self.left + self.inner + 10 * self.depth + _LANE * min(lane, _MOST_LANES)
            path = self._through(x1 + _WIDTH, y1, x2 + _WIDTH, y2, side, 1)
        else:
            begin, end, top = x1 + _WIDTH / 2, x2 + _WIDTH / 2, y1 + _HEIGHT
            middle = (top + y2) / 2
            path = f"M{begin:.1f} {top:.1f}C{begin:.1f} {middle:.1f} {end:.1f} {middle:.1f} {end:.1f} {y2 - 1:.1f}"
        width = 0.8 + 2.4 * (edge.count / self.most) ** 0.5
        begins, ends = self.graph.nodes[edge.source], self.graph.nodes[edge.target]
        is_rare = edge.count * 20 < min(begins.count, ends.count)
        kind = ("edge back" if edge.back else "edge") + (" rare" if is_rare else "")
        title = f"{begins.name} to {ends.name}: {format_count(edge.count)}x"
        return (
            f'<path class="{kind}" d="{path}" stroke-width="{width:.1f}" marker-end="url(#tip)">'
            f"<title>{escape(title)}, {format_ns(edge.time_ns)}</title></path>"
        )

    def _through(self, x1: float, y1: float, x2: float, y2: float, side: float, sign: int) -> str:
        """From a side of one node through a lane to the same side of another."""
        leave, enter = y1 + _HEIGHT * 0.7, y2 + _HEIGHT * 0.3
        down = 1 if enter > leave else -1
        r = min(8.0, abs(enter - leave) / 2, abs(side - x1), abs(side - x2))
        return (
            f"M{x1:.1f} {leave:.1f}H{side - sign * r:.1f}Q{side:.1f} {leave:.1f} {side:.1f} {leave + down * r:.1f}"
            f"V{enter - down * r:.1f}Q{side:.1f} {enter:.1f} {side - sign * r:.1f} {enter:.1f}H{x2 + sign:.1f}"
        )

    def loops(self) -> list[str]:
        """A frame around the rows of every loop of the tree, from its first to its last node, with its name."""
        drawn = []
        for level, name in enumerate(self.levels):
            rows = [place.row for node, place in self.placed if level in self._around(node.level)]
            if not rows:
                continue
            first, last = min(rows), max(rows)
            deeper = {
                other
                for node, place in self.placed
                if place.row == first
                for other in self._around(node.level)
                if self._depth(other) > self._depth(level)
            }
            pad = 10 * (self.depth + 1 - self._depth(level))
            y = self.top[first] - _BAND * (len(deeper) + 1) + 2
            height = self.top[last] + _HEIGHT + pad / 2 + 4 - y
            x, width = self.left - pad, self.inner + 2 * pad
            drawn.append(
                f'<rect class="loop" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="8"/>'
                f'<text class="weak" x="{x + 8:.1f}" y="{y + 12:.1f}">{escape(name)}</text>'
            )
        return drawn


def _shortened(name: str) -> str:
    """Drop the prefixes of the backward pass, and keep both ends of a name that is still too long."""
    for prefix in ("autograd::engine::evaluate_function: ", "torch::autograd::"):
        name = name.removeprefix(prefix)
    return name if len(name) <= _CHARACTERS else f"{name[: _CHARACTERS // 2 - 1]}…{name[-_CHARACTERS // 2 :]}"
