"""From a sequence of events to what is drawn and written: the folded flow graph, and its order as SEQ and LOOP."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from strobe.model.kinds import GPU_PARADIGMS, group_of
from strobe.steps.folded_time import FoldedTime
from strobe.steps.loop_choice.events import CALLS, OPERATORS, Events, events_of
from strobe.steps.loops.expression import Expression
from strobe.steps.loops.expression import fold as fold_order
from strobe.steps.loops.flow_graph import build_graph, decode_graph
from strobe.steps.loops.folded_graph import OTHER, Graph, Labels, fold
from strobe.steps.loops.loop_tree import TreeLevel
from strobe.steps.thread_spans import Ints, Stream, innermost, within
from strobe.steps.training_activities import activities
from strobe.trace.folded import read_graph
from strobe.trace.trace import Trace

# An event belongs to a loop if so many of its occurrences lie inside of it.
_MOSTLY = 0.9
# Longer expressions are cut, from the innermost loops outwards.
_LONGEST = 4000
_DEEPEST = 6
# Longer recorded sequences are not replayed.
_MOST_EVENTS = 5_000_000


def draw(stream: Stream, events: Events, levels: Sequence[TreeLevel]) -> tuple[Graph, str]:
    """Return the folded flow graph of a sequence, and the order of its events as text."""
    if not len(events):
        return Graph(), ""
    events = drawn_events(stream, events)
    graph, names = _graph_of(stream, events, levels, events.starts_ns)
    return graph, _text(fold_order(events.ids + 1), names)


def drawn_events(stream: Stream, events: Events) -> Events:
    """Return the events that are nodes of the flow graph.

    Of operators only those that no other one called: the others are used everywhere, and tie everything together.
    """
    return _outermost(stream, events) if events.kind == OPERATORS else events


def draw_opened(
    stream: Stream, levels: Sequence[TreeLevel], opened: Collection[str], folded: FoldedTime | None
) -> tuple[Graph, frozenset[str]]:
    """Return the flow graph of the operators that no other one called, and of those that `opened` ones did.

    Also the names of all that hold others. The graph is of what is in detail, without the time of folded iterations.
    """
    events = events_of(stream).get(OPERATORS)
    if events is None:
        return Graph(), frozenset()
    is_event = np.zeros(len(stream), dtype=bool)
    is_event[events.rows] = True
    above = innermost(stream.parent, is_event, stream.parent)
    shown = np.zeros(len(stream), dtype=bool)
    shown[_outermost(stream, events).rows] = True
    may_open = np.isin(stream.region, [region for region, name in enumerate(stream.names) if name in opened])
    while True:
        new = is_event & ~shown & (above >= 0) & shown[above] & may_open[above]
        if not new.any():
            break
        shown |= new
    inside = above[events.rows]
    holds = frozenset(stream.names[region] for region in np.unique(stream.region[inside[inside >= 0]]).tolist())
    events = events.chosen(shown[events.rows])
    clock = events.starts_ns if folded is None else events.starts_ns - folded.stretches.before(events.starts_ns)
    return _graph_of(stream, events, levels, clock)[0], holds


def _graph_of(
    stream: Stream, events: Events, levels: Sequence[TreeLevel], clock_ns: Ints
) -> tuple[Graph, dict[int, str]]:
    """Return the folded graph of some events, and their names by signature; `clock_ns` is when each began."""
    # 0 stands for what found no room.
    flow = build_graph(events.ids + 1, clock_ns, stream.duration_ns[events.rows])
    kinds = np.unique(events.ids, return_index=True)
    names = {int(signature) + 1: _name(stream, events, int(at)) for signature, at in zip(*kinds, strict=True)}
    groups = {int(signature) + 1: _group(stream, int(events.rows[at])) for signature, at in zip(*kinds, strict=True)}
    inner = _levels_of(events.ids, events.starts_ns, levels)
    signatures = [int(each) for each in flow.nodes.signature]
    labels = Labels(
        [names.get(each, OTHER) for each in signatures],
        [groups.get(each, "other") for each in signatures],
        [int(inner[each - 1]) if each else -1 for each in signatures],
    )
    return fold(flow, labels), names


def draw_recorded(trace: Trace, location: int, stream: Stream, levels: Sequence[TreeLevel]) -> tuple[Graph, str] | None:
    """Return the flow graph that was recorded while the thread ran, and its order; None where none was recorded.

    It holds what was folded into statistics, too: all events of the thread, whoever reported them. Which loop they
    belong to follows from the spans of `stream` that are kept in detail.
    """
    home = trace.home(location)
    region_map = trace.definitions.region_maps[home.process]
    recorded = read_graph(trace.readers[home.process], home.local_id, region_map)
    if recorded is None:
        return None
    flow = decode_graph(recorded.payload)
    table = trace.regions.to_arrow()
    all_names, all_groups = (table.column(name).to_pylist() for name in ("name", "group"))
    called = [all_names[region] if region >= 0 else OTHER for region in recorded.region.tolist()]
    by = [f" < {all_names[caller]}" if caller >= 0 else "" for caller in recorded.caller.tolist()]
    names = [name + caller for name, caller in zip(called, by, strict=True)]
    groups = [all_groups[region] if region >= 0 else "other" for region in recorded.region.tolist()]
    text = ""
    if flow.replayable and flow.events <= _MOST_EVENTS:
        of_signature = dict(zip(flow.nodes.signature.tolist(), names, strict=True))
        text = _text(fold_order(flow.replay()), of_signature)
    inner = _levels_of(stream.region, stream.start_ns, levels)
    of_node = [int(inner[region]) if 0 <= region < len(inner) else -1 for region in recorded.region.tolist()]
    return fold(flow, Labels(names, groups, of_node)), text


def _outermost(stream: Stream, events: Events) -> Events:
    kept = np.isin(events.rows, activities(stream).row)
    return events.chosen(kept) if kept.any() else events


def _name(stream: Stream, events: Events, at: int) -> str:
    row = events.rows[at]
    name: str = stream.names[stream.region[row]]
    if events.kind != CALLS or stream.parent[row] < 0:
        return name
    return f"{name} < {stream.names[stream.region[stream.parent[row]]]}"


def _group(stream: Stream, row: int) -> str:
    name, paradigm = stream.names[stream.region[row]], stream.paradigms[stream.region[row]]
    role = "operator" if paradigm == "torch" else "kernel" if paradigm in GPU_PARADIGMS else "function"
    return group_of(name, paradigm, role)


def _levels_of(ids: Ints, starts_ns: Ints, levels: Sequence[TreeLevel]) -> Ints:
    """The innermost loop that nearly all occurrences of an event lie in, by signature; -1 where there is none."""
    if not len(ids):
        return np.empty(0, dtype=np.int64)
    found = np.full(int(ids.max()) + 1, -1, dtype=np.int64)
    total = np.bincount(ids)
    for number, level in enumerate(levels):  # parents come before their children
        inside = np.bincount(ids, weights=within(starts_ns, *level.passes_ns.T))
        found[(inside >= _MOSTLY * total) & (total > 0) & (found == level.parent)] = number
    return found


def _text(order: Expression, names: dict[int, str]) -> str:
    """The expression as deep as it fits; cut at the end where even its outermost loops do not."""
    text = ""
    for depth in range(_DEEPEST, -1, -1):
        text = order.text(names, depth)
        if len(text) <= _LONGEST:
            return text
    return f"{text[:_LONGEST]} ..."
