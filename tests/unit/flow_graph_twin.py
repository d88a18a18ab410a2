"""The twin of native/structure/flow_graph.cpp and graph_payload.cpp in plain Python."""

import struct
from collections import Counter
from dataclasses import dataclass, field

from tests.unit.temporal_twin import Order, Partition, visits


@dataclass
class Edge:
    times: list[int] = field(default_factory=list)
    order: Order = field(default_factory=Order)


class FlowGraph:
    """Nodes are numbered from 1 in order of first occurrence."""

    def __init__(self, ids: list[int], times: list[int]) -> None:
        self.number = {event: n for n, event in enumerate(dict.fromkeys(ids), 1)}
        self.sequence = [self.number[event] for event in ids]
        self.edges: dict[tuple[int, int], Edge] = {}
        seen: Counter[int] = Counter()
        steps = zip(self.sequence, self.sequence[1:], times, times[1:], strict=False)
        for source, target, before, now in steps:
            seen[source] += 1
            edge = self.edges.setdefault((source, target), Edge())
            edge.times.append(now - before)
            edge.order.add(seen[source])

    def successors(self, node: int) -> list[int]:
        return [target for source, target in self.edges if source == node]

    def partitions(self, source: int, target: int) -> list[Partition]:
        """None for the only edge of a node."""
        return self.edges[source, target].order.partitions() if len(self.successors(source)) > 1 else []


class Bytes:
    def __init__(self, payload: bytes) -> None:
        self.rest = payload

    def number(self) -> int:
        value, shift = 0, 0
        while True:
            byte, self.rest = self.rest[0], self.rest[1:]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def difference(self) -> int:
        value = self.number()
        return value >> 1 if value % 2 == 0 else -(value >> 1) - 1

    def raw(self, code: str) -> int | float:
        size = struct.calcsize(code)
        (value,) = struct.unpack("<" + code, self.rest[:size])
        self.rest = self.rest[size:]
        return value  # type: ignore[no-any-return]

    def times(self) -> tuple[int, int, int]:
        total, least = self.difference(), self.difference()
        return total, least, least + self.number()


def read_elements(data: Bytes, count: int) -> list[Partition]:
    """An order: partitions and loops of them; trip counts are consumed in order of execution."""
    elements: list[tuple[int, ...] | tuple[str, int, list[int]]] = []
    for _ in range(count):
        x, kind = divmod(data.number(), 4)
        if kind == 0:
            elements.append((x, 0, 0, 1))
        elif kind == 1:
            length = data.number()
            elements.append((x, length, 0, length + 1))
        elif kind == 2:
            elements.append((x, data.number(), data.number(), data.number()))
        else:
            runs = data.number()
            one = runs == 1
            trips = (
                [data.number()] * 10**5 if one else [t for _ in range(runs) for t in [data.number()] * data.number()]
            )
            elements.append(("loop", x, trips))
    tokens: list[tuple[int, ...]] = []

    def run(begin: int, end: int) -> None:
        while begin < end:
            element = elements[begin]
            begin += 1
            if element[0] == "loop":
                _, size, trips = element
                for _ in range(trips.pop(0)):  # type: ignore[union-attr]
                    run(begin, begin + size)  # type: ignore[operator]
                begin += size  # type: ignore[operator, assignment]
            else:
                tokens.append(element)  # type: ignore[arg-type]

    run(0, count)
    partitions, first = [], 0
    for ahead, length, stride, block in tokens:
        first += ahead
        partitions.append((first, first + length, stride, block))
    return partitions


@dataclass
class Payload:
    nodes: list[tuple[object, ...]]  # signature, count, left, times, first_ns
    edges: dict[tuple[int, int], int]  # count
    taken: dict[tuple[int, int], list[int]]  # visits of the source that took the edge
    times: list[tuple[object, ...]]
    first: int
    last: int


def read_payload(payload: bytes) -> Payload:
    """Read a payload as docs/format/graph.md says."""
    data = Bytes(payload)
    assert data.raw("B") == 1
    count, first, last, lost = data.number(), data.number() - 1, data.number() - 1, data.number()
    nodes, before = [], 0
    for _ in range(count):
        node = (data.raw("Q"), data.number(), data.number(), data.times())
        before += data.difference()
        nodes.append((*node, before))
    edges: dict[tuple[int, int], int] = {}
    taken: dict[tuple[int, int], list[int]] = {}
    for node, (_, visited, *_) in enumerate(nodes):
        here = [(node + data.difference(), data.number()) for _ in range(data.number())]
        edges |= {(node, target): n for target, n in here}
        all_visits = set(range(1, visited + 1 - (node == last)))
        left = None
        for target, _ in here:
            if len(here) == 1 and not lost:
                taken[node, target] = sorted(all_visits)
                break
            kind = data.number()
            if kind == 1:
                left = target
            elif kind:
                taken[node, target] = [k for p in read_elements(data, kind - 2) for k in visits(p)]
        if left is not None:
            told = {k for (source, _), ks in taken.items() if source == node for k in ks}
            taken[node, left] = sorted(all_visits - told)
    times = [(*data.times(), data.raw("d")) for _ in edges]
    assert not data.rest
    return Payload(nodes, edges, taken, times, first, last)
