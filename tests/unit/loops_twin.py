"""The twin of native/structure/loops.cpp: the definition of Havlak and Tarjan by brute force, sets as bit masks.

After a depth-first search, x is in the loop of h if h is above x in the tree and x reaches h without leaving the nodes
below h.
"""

from dataclasses import dataclass


@dataclass
class Loop:
    header: int
    nodes: set[int]
    irreducible: bool


def loops_of(successors: list[list[int]], root: int) -> list[Loop]:
    """All loops of what can be reached from the root."""
    below = [0] * len(successors)
    seen: set[int] = set()

    def visit(node: int) -> None:
        seen.add(node)
        below[node] = 1 << node
        for target in successors[node]:
            if target not in seen:
                visit(target)
                below[node] |= below[target]

    visit(root)
    loops = []
    for header in sorted(seen):
        inside = [x for x in seen if below[header] >> x & 1]
        members: set[int] = set()
        grown = True
        while grown:
            more = {x for x in inside if x not in members and any(v == header or v in members for v in successors[x])}
            members |= more
            grown = bool(more)
        if members:
            entered = any(
                v in members and v != header for u in seen if not below[header] >> u & 1 for v in successors[u]
            )
            loops.append(Loop(header, members, entered))
    return loops
