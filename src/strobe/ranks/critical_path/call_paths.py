"""Call paths in the critical path and beside it: imbalance, slack, and what those in it cost the threads that wait.

Sources: Scalasca, CriticalPath.pattern and Imbalance.pattern; Boehme et al., Scalable critical-path based performance
analysis, IPDPS 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import devices
from strobe.ranks.critical_path.longest_path import LAUNCH, Graph, Path, slack_ns
from strobe.tables.column_arrays import Bools, Columns, Floats, Ints, alike
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class CallPaths(Columns):
    """The time of call paths by kind, and by location if that was asked for; else `location` is the first of them.

    call_path: -1 for what the path waits in. time_ns: in the path; predicted_ns: in the path after a change. own_ns:
    all of it, without waits. imbalance_ns, impact_ns, slack_ns: see `call_paths`; the first two are floats.
    """

    call_path: Ints
    kind: Ints
    location: Ints
    time_ns: Ints
    predicted_ns: Ints
    own_ns: Ints
    imbalance_ns: Floats
    impact_ns: Floats
    slack_ns: Ints


def call_paths(trace: Trace, graph: Graph, path: Path, changed: tuple[Path, Ints], *, by_location: bool) -> CallPaths:
    """Return what is in a path or in any thread or stream beside it. changed: path and weights after a change.

    Imbalance of c: max(0, time of c in the path - mean over threads of its time without waits); of what GPUs run, the
    mean over those that run it. Locations have the part of it that they have of the time in the path. Impact: with G_c
    the time of c in the path, T_c that of a thread without waits, G and T their sums over all c, the sum over threads
    of max(0, G - T) * max(0, G_c - T_c) / sum of max(0, G_c - T_c) over all c. Slack: the length of the path less that
    of the longest way through any part of it: whatever takes longer by less does not move the end.
    """
    edges, on_path = graph.edges, np.zeros((2, len(graph.edges)), dtype=np.int64)
    for row, (each, weight_ns) in enumerate(((path, edges.weight_ns), changed)):
        on_path[row, each.edges] = weight_ns[each.edges]
    known = np.flatnonzero((edges.call_path >= 0) | on_path.any(axis=0))
    own_ns, slack = np.where(_accounts(graph), edges.weight_ns, 0)[known], slack_ns(graph, path.length_ns)[known]
    # A launch is the time until the work begins, not that of the call.
    is_work = (edges.call_path[known] >= 0) & (edges.kind[known] != LAUNCH)
    keys = [column[known] for column in (edges.call_path, edges.kind, edges.location)]
    first, which = alike(keys)
    call_path, kind, location = (key[first] for key in keys)
    count = len(first)
    time, predicted, own = (
        np.bincount(which, values, count).astype(np.int64)
        for values in (on_path[0, known], on_path[1, known], own_ns * is_work)
    )
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, which, slack)
    _, group = alike([call_path, kind])
    imbalance, impact = _imbalance_and_impact(trace, graph, group, location, is_work[first], time, own)
    found = CallPaths(call_path, kind, location, time, predicted, own, imbalance, impact, least)
    return found if by_location else _of_all_locations(found, group)


def _of_all_locations(found: CallPaths, group: Ints) -> CallPaths:
    first = np.unique(group, return_index=True)[1]
    least = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(least, group, found.slack_ns)
    names = ("time_ns", "predicted_ns", "own_ns", "imbalance_ns", "impact_ns")
    sums = {name: np.bincount(group, getattr(found, name), len(first)) for name in names}
    whole = {name: np.rint(values).astype(np.int64) if name in names[:3] else values for name, values in sums.items()}
    return CallPaths(**{**vars(found.chosen(first)), **whole, "slack_ns": least})


def _accounts(graph: Graph) -> Bools:
    """Return which edge has the time until its target: of those as long as that, the one that begins last."""
    edges = graph.edges
    (at,) = np.nonzero(edges.weight_ns == graph.time_ns[edges.target] - graph.time_ns[edges.source])
    at = at[np.lexsort((edges.source[at], edges.target[at]))]
    out = np.zeros(len(edges), dtype=bool)
    out[at[np.diff(edges.target[at], append=-1) != 0]] = True
    return out


def _imbalance_and_impact(
    trace: Trace, graph: Graph, group: Ints, location: Ints, is_work: Bools, time: Ints, own: Ints
) -> tuple[Floats, Floats]:
    """Return both by row, each with its share of that of its call path (`group`); 0 where it is not work."""
    device = np.full(len(trace.locations) + 1, -1, dtype=np.int64)
    for number, each in enumerate(devices(trace)):
        device[list(each.locations)] = number
    threads = np.unique(graph.edges.location)
    threads = threads[(threads >= 0) & (device[threads] < 0)]
    count = int(group.max(initial=-1)) + 1
    in_path, spent = (np.bincount(group[is_work], each[is_work], count) for each in (time, own))
    on_gpu = is_work & (device[location] >= 0)
    pairs = np.unique(np.stack((group, device[location]))[:, on_gpu & (own > 0)], axis=1)
    places = np.where(np.bincount(group[on_gpu], minlength=count) > 0, np.bincount(pairs[0], minlength=count),
                      len(threads))  # fmt: skip
    imbalance = np.maximum(0, in_path - spent / np.maximum(1, places))
    on_thread = is_work & (device[location] < 0)
    of_thread = np.searchsorted(threads, location[on_thread])
    # The threads that do not have it lack all of it.
    common = np.minimum(in_path[group[on_thread]], own[on_thread])
    idle = np.maximum(0, in_path.sum() - np.bincount(of_thread, own[on_thread], len(threads)))
    lack = in_path.sum() - np.bincount(of_thread, common, len(threads))
    scale = np.divide(idle, lack, out=np.zeros(len(threads)), where=lack > 0)
    impact = in_path * scale.sum() - np.bincount(group[on_thread], common * scale[of_thread], count)
    share = np.divide(time, in_path[group], out=np.zeros(len(time)), where=is_work & (in_path[group] > 0))
    return imbalance[group] * share, impact[group] * share
