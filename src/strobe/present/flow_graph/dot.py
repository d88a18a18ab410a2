"""The folded flow graph in the language of Graphviz: `strobe structure --dot | dot -Tpng`."""

from __future__ import annotations

from strobe.model.units import format_count, format_ns
from strobe.steps.loops.folded_graph import Graph


def graph_dot(graph: Graph, levels: tuple[str, ...]) -> str:
    """Return the graph as DOT; `levels` are the names of the loops, each a cluster around its nodes."""
    lines = ["digraph structure {", '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica];']
    inside: dict[int, list[str]] = {}
    for number, node in enumerate(graph.nodes):
        label = f"{node.name}\n{format_count(node.count)}x, {format_ns(node.time_ns)}"
        inside.setdefault(node.level, []).append(f"n{number} [label={_quoted(label)}];")
    for level, nodes in sorted(inside.items()):
        if 0 <= level < len(levels):
            lines.append(f"  subgraph cluster_{level} {{ label={_quoted(levels[level])};")
            lines += [f"    {node}" for node in nodes]
            lines.append("  }")
        else:
            lines += [f"  {node}" for node in nodes]
    most = max((edge.count for edge in graph.edges), default=1)
    for edge in graph.edges:
        width = 1 + 4 * edge.count / most
        back = ", constraint=false" if edge.back else ""
        label = _quoted(f"{format_count(edge.count)}x")
        lines.append(f"  n{edge.source} -> n{edge.target} [label={label}, penwidth={width:.1f}{back}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
