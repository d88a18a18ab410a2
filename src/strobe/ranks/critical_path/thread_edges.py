"""The work of threads as moments and edges of the critical path: begins and ends of spans, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from strobe.model.kinds import RANK_PARADIGMS
from strobe.native import core
from strobe.ranks.critical_path.longest_path import COMMUNICATION, DATA, HOST, SYNC, Builder
from strobe.steps.batch_makers import making_regions
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import path_tree, region_rows, regions_where
from strobe.trace.spans import SpanArrays, enclosing
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Phase of a thread's moments, see Builder.
_THREAD = 2
_NEVER = -(2**62)


@dataclass
class Chain:
    """The moments of a thread in a window, in order: each leads to the next.

    By moment: `node`, `time_ns`, and the `span` that is innermost until the next moment (its place in `spans`), -1
    where none is. By span: the places of the moments in which it begins and ends.
    """

    location: int
    main: bool
    spans: SpanArrays
    node: Ints
    time_ns: Ints
    span: Ints
    begins: Ints
    ends: Ints
    _waits: list[tuple[Ints, Ints, Ints, int, bool]] = field(default_factory=list)

    def last_until(self, time_ns: Ints) -> Ints:
        """Return the place of the last moment until each time, -1 if there is none."""
        return np.searchsorted(self.time_ns, time_ns, side="right") - 1

    def wait(self, at: Ints, source: Ints, source_ns: Ints, kind: int, *, transfers: bool = False) -> None:
        """Add that the moments at places `at` waited for nodes (-1: for nothing).

        `transfers`: what begins then takes its time even where the thread came last.
        """
        known = (source >= 0) & (at >= 0)
        known[known] = source_ns[known] <= self.time_ns[at[known]]
        self._waits.append((at[known], source[known], source_ns[known], kind, transfers))

    def add_edges(self, builder: Builder, kind_of_path: Ints) -> None:
        """Add an edge from each moment to the next, and from all that it waited for.

        The last to come has the time until the moment. If that is another's, the thread's own edge takes no time.
        """
        before_ns = np.concatenate(([_NEVER], self.time_ns[:-1]))
        path = np.append(self.spans["call_path"].astype(np.int64), -1)[self.span]
        whose = [np.append(self.spans[name].astype(np.int64), -1)[self.span] for name in ("row", "region")]
        kind_of = np.append(kind_of_path, HOST)[path]
        last_ns = before_ns.copy()
        for at, _, source_ns, _, _ in self._waits:
            np.maximum.at(last_ns, at, source_ns)
        weight = np.where(last_ns > before_ns, 0, self.time_ns - before_ns)[1:]
        builder.edges(self.node[:-1], self.node[1:], weight, kind_of[:-1], self.location,
                      *(each[:-1] for each in whose), path[:-1])  # fmt: skip
        for at, source, source_ns, kind, transfers in self._waits:
            last = (source_ns == last_ns[at]) & (source_ns > before_ns[at])
            weight = np.where(last | transfers, self.time_ns[at] - source_ns, 0)
            # Of a span's own time: a call's that communicates. Waiting is nobody's.
            spent_in = path[at - 1] if kind == COMMUNICATION else -1
            builder.edges(source, self.node[at], weight, kind, self.location, *(each[at - 1] for each in whose),
                          spent_in)  # fmt: skip


def chain(trace: Trace, builder: Builder, location: int, start_ns: int, end_ns: int, *, main: bool) -> Chain:
    """Return the moments of a thread in [start_ns, end_ns), cut there; those of a main thread hold begin and end."""
    spans = trace.span_arrays(location, start_ns - 1, end_ns)
    parent = enclosing(spans)
    begins, ends = tour(parent, spans["depth"].astype(np.int64))
    count = len(parent)
    time, inner = np.zeros(2 * count, dtype=np.int64), np.zeros(2 * count, dtype=np.int64)
    time[begins], inner[begins] = spans["start_ns"], np.arange(count)
    time[ends], inner[ends] = spans["start_ns"] + spans["duration_ns"], parent
    if main:
        time, inner = np.concatenate(([start_ns], time, [end_ns])), np.concatenate(([-1], inner, [-1]))
        begins, ends = begins + 1, ends + 1
    # In order even if a file's spans are not quite inside each other.
    time = np.maximum.accumulate(np.clip(time, start_ns, end_ns))
    return Chain(location, main, spans, builder.moments(time, _THREAD), time, inner, begins, ends)


def tour(parent: Ints, depth: Ints) -> tuple[Ints, Ints]:
    """Return the places of begin and end of every span among all of these moments of a thread, in order.

    When a span begins, all spans before it have begun, and all of them but those around it have ended.
    """
    size = np.ones(len(parent), dtype=np.int64)
    deepest_first = np.argsort(-depth, kind="stable")
    for level in np.split(deepest_first, np.flatnonzero(np.diff(depth[deepest_first])) + 1):
        inside = level[parent[level] >= 0]
        np.add.at(size, parent[inside], size[inside])
    begins = 2 * np.arange(len(parent)) - depth
    return begins, begins + 2 * size - 1


def link(trace: Trace, chains: list[Chain]) -> None:
    """Add which threads of a process waited for others.

    A thread begins what is in nothing else after what the main thread did last, unless it came from such a span of its
    own later. The main thread waits while another runs autograd: its next moment comes after what that did last.
    """
    backward = regions_where(trace, lambda region: core.is_backward(region.name))
    main = next((each for each in chains if each.main), None)
    for each in chains:
        if main is None or each is main or not len(each.node):
            continue
        outermost = np.flatnonzero(each.spans["parent"] < 0)
        begins, ends = each.begins[outermost], each.ends[outermost]
        before = main.last_until(each.time_ns[begins])
        each.wait(begins, np.where(before < 0, -1, main.node[before]), main.time_ns[before], HOST)
        if backward[each.spans["region"]].any():
            done_ns = each.time_ns[ends]
            next_moment = np.searchsorted(main.time_ns, done_ns)
            next_moment[next_moment == len(main.time_ns)] = -1
            main.wait(next_moment, each.node[ends], done_ns, HOST)


@cached_on_trace
def kind_of_path(trace: Trace) -> Ints:
    """Return the kind of time of every call path: that of the outermost region with another kind than `host`."""
    own = np.array([_kind(r.group, r.role, r.paradigm) for r in region_rows(trace)], dtype=np.int64)
    parent, region = path_tree(trace)
    own[making_regions(trace)] = DATA
    depth = trace.call_paths.to_arrow().column("depth").to_numpy()
    kind: Ints = own[region]
    for level in range(1, int(depth.max(initial=0)) + 1):
        (here,) = np.nonzero(depth == level)
        around = kind[parent[here]]
        kind[here] = np.where(around != HOST, around, kind[here])
    return kind


def _kind(group: str, role: str, paradigm: str) -> int:
    """The kind of time in a region of a thread; PyTorch's communicating operators only launch communication."""
    if group == "data":
        return DATA
    if paradigm in RANK_PARADIGMS:
        return COMMUNICATION
    return SYNC if role in ("sync", "wait") else HOST
