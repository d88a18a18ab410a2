"""What if? A replay of steps with other times of the edges of their critical path.

The replay keeps the time of each piece of work and which one waits for which. What lies between them (launches, gaps
of a stream, returns of calls that wait) takes what it usually takes in that stretch, and what nothing accounts for
takes no time. So a replay of what was recorded is as long as that, but for what this model does not know: its error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.what_if.changes import Change
from strobe.breakdown.what_if.weights import changed, in_threads
from strobe.ranks.critical_path.graph import Window, graph
from strobe.ranks.critical_path.longest_path import HOST, LAUNCH, QUEUE, SYNC, UNEXPLAINED, Edges, Graph, longest_path
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import Usual
from strobe.tables.column_arrays import Ints, rows_by
from strobe.trace.trace import Trace

_FEWEST = 5
# Kinds of time that are waits. Who waits less gains no more than that, however sure the replay is.
_WAITS = ("data", "communication", "sync")
# A call that launches takes some microseconds; this long it waits for a place in the queue of the GPU.
_BLOCKED_NS = 200_000


def usual_weights(trace: Trace, edges: Edges) -> Ints:
    """Return the weights of a replay: those of work as recorded, and of what lies in between the usual ones.

    These are, of launches, of gaps in a stream, and of waits of threads and of streams, the medians of those that were
    the last to come: of the region that they end in, if it has at least _FEWEST, else of all. So do calls that wait for
    a place in a full queue: it is the GPU that they wait for. What nothing accounts for takes no time.
    """
    weight, threads = edges.weight_ns.copy(), in_threads(trace, edges)
    for kind in (LAUNCH, QUEUE, SYNC):
        for side in (threads, ~threads):
            (own,) = np.nonzero((edges.kind == kind) & side)
            last = own[weight[own] > 0]
            if not len(last):
                continue
            weight[own] = int(np.median(edges.weight_ns[last]))
            of_region = dict(rows_by(edges.region[own]))
            for region, at in rows_by(edges.region[last]):
                if len(at) >= _FEWEST:
                    weight[own[of_region[region]]] = int(np.median(edges.weight_ns[last[at]]))
    weight[edges.kind == UNEXPLAINED] = 0
    launching = (edges.kind == HOST) & np.isin(edges.call_path, edges.call_path[edges.kind == LAUNCH])
    blocked = launching & (weight >= _BLOCKED_NS)
    if (launching & ~blocked).any():
        weight[blocked] = int(np.median(weight[launching & ~blocked]))
    return weight


@dataclass(frozen=True)
class Replay:
    """A stretch of consecutive steps of all its processes, replayed. Times of the stretch, ns.

    least_ns, most_ns: with the change, by its least and its most factors; without one as replayed. most_gain_ns: of a
    change of waits, how long these are in the replayed path; None: not known, or it changes something else.
    """

    first: int
    steps: int
    recorded_ns: int
    replayed_ns: int
    least_ns: int
    most_ns: int
    most_gain_ns: int | None = None


def windows_of(
    trace: Trace, usual: Usual, processes: Sequence[int], stretches: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, Graph]]:
    """Yield the number of the first step of each stretch, how many steps it has, and the graph of some processes in it.

    stretches: places in `usual.steps`, from one to another. A process has the same steps in its own time; those of
    others where it has none.
    """
    steps = {each.process: each for each in find_steps(trace).processes}
    for first, last in stretches:
        windows = []
        for process in processes:
            own = steps.get(process, usual.steps)
            at = [number + usual.steps.first_number - own.first_number for number in (first, last)]
            own, at = (own, at) if at[0] >= 0 and at[1] < len(own.start_ns) else (usual.steps, [first, last])
            windows.append(Window(process, int(own.start_ns[at[0]]), int(own.end_ns[at[1]])))
        yield first + usual.steps.first_number, last - first + 1, graph(trace, windows)


def replay(trace: Trace, first: int, steps: int, whole: Graph, what_if: Sequence[Change]) -> Replay:
    """Return a replay of a stretch of steps: see `windows_of`. Raises what `changed` raises."""
    weights = usual_weights(trace, whole.edges)
    before = longest_path(whole, weights)
    recorded, replayed = longest_path(whole).length_ns, before.length_ns
    if not what_if:
        return Replay(first, steps, recorded, replayed, replayed, replayed, 0)
    both = changed(trace, whole, what_if, weights, option="CHANGE")
    least, most = sorted(longest_path(whole, each).length_ns for each in both)
    if any(change.pattern not in _WAITS for change in what_if):
        return Replay(first, steps, recorded, replayed, least, most)
    # The path as it was is a way through the changed graph, too.
    after = min(int(each[before.edges].sum()) for each in both)
    return Replay(first, steps, recorded, replayed, least, most, max(0, replayed - after))
