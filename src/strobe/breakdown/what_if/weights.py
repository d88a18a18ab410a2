"""What if? Other times of the edges of a critical path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import numpy as np

from strobe.breakdown.what_if.changes import OF_LOADER, Change
from strobe.breakdown.what_if.communication import more_ranks, overlap
from strobe.breakdown.what_if.gpu_work import fuse, half, merge
from strobe.errors import UsageError
from strobe.ranks.critical_path.longest_path import COMPUTATION, COPY, HOST, KINDS, LAUNCH, SYNC, Edges, Graph
from strobe.steps.thread_spans import innermost
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.definition_rows import location_rows, path_tree, processes_of_locations
from strobe.trace.trace import Trace

# Longer than anything that is recorded: an edge of this weight is never the last to come.
_GONE = -(2**61)
# Changes the weights of edges, of the shortest and of the longest that may come of it; NaN: the edge is gone.
_Word = Callable[[Trace, Graph, Change, list[Floats]], None]


def changed(
    trace: Trace, graph: Graph, what_if: Sequence[Change], weight_ns: Ints | None = None, option: str = "--what-if"
) -> tuple[Ints, Ints]:
    """Return the weights of edges after changes: the least that they may come to, and the most.

    A pattern changes what ran in a region that it matches, and all that ran inside of that, once; the launch of work on
    a GPU belongs to the launching call. weight_ns: those that are changed, if not the edges' own. Raises UsageError
    where a pattern matches nothing, InconclusiveError where the trace does not show what comes of a change.
    """
    both = [(graph.edges.weight_ns if weight_ns is None else weight_ns).astype(np.float64) for _ in range(2)]
    for change in what_if:
        if change.word in OF_LOADER:
            raise UsageError(f"{option}: '{change.word}' is not in a critical path", do="strobe what-if --change")
        if change.word:
            _WORDS[change.word](trace, graph, change, both)
            continue
        chosen = _matching(trace, graph.edges, change.pattern, option)
        for weights, factor in zip(both, (change.least, change.most), strict=True):
            weights[chosen] *= factor
    least, most = (np.where(np.isnan(each), _GONE, np.rint(each)).astype(np.int64) for each in both)
    return least, most


def _matching(trace: Trace, edges: Edges, pattern: str, option: str) -> Bools:
    if pattern in KINDS:
        return np.asarray(edges.kind == KINDS.index(pattern))
    names = [str(name) for name in trace.regions.column("name")]
    matching = np.array([fnmatchcase(name, pattern) for name in names], dtype=bool)
    if not matching.any():
        raise UsageError(
            f"{option}: no region of this trace is called '{pattern}'",
            do=f"A name as strobe profile shows it, with * for any text; or one of: {', '.join(KINDS)}",
        )
    parent, region = path_tree(trace)
    inside = innermost(parent, matching[region]) >= 0
    found: Bools = (edges.call_path >= 0) & inside[edges.call_path]
    return found


def _no_launch(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    edges = graph.edges
    launches = edges.kind == LAUNCH
    calls = np.isin(edges.call_path, edges.call_path[launches]) & (edges.kind == HOST)
    for weights in both:
        weights[launches | calls] = 0


def _no_waits(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    edges = graph.edges
    waits = (edges.kind == SYNC) & in_threads(trace, edges)
    if change.word == "async-copies":
        waits &= np.isin(edges.source, edges.target[edges.kind == COPY])
    for weights in both:
        weights[waits] = np.nan


def _no_copies(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    for weights in both:
        weights[graph.edges.kind == COPY] = 0


def _no_straggler(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    """Give each call path of a process the time that it has in the median of the processes."""
    edges = graph.edges
    process = np.append(np.array(processes_of_locations(trace), dtype=np.int64), -1)[edges.location]
    (works,) = np.nonzero(np.isin(edges.kind, (HOST, COMPUTATION)) & (edges.call_path >= 0) & (process >= 0))
    processes, which = np.unique(process[works], return_inverse=True)
    paths, path = np.unique(edges.call_path[works], return_inverse=True)
    times = np.zeros((len(paths), len(processes)))
    np.add.at(times, (path, which), edges.weight_ns[works])
    part = np.ones_like(times)
    np.divide(np.median(times, axis=1)[:, None] if len(paths) else times, times, out=part, where=times > 0)
    for weights in both:
        weights[works] *= part[path, which]


def in_threads(trace: Trace, edges: Edges) -> Bools:
    """Return which edges are of threads."""
    is_thread = np.array([each.kind == "thread" for each in location_rows(trace)] + [False], dtype=bool)
    return is_thread[edges.location]


_WORDS: dict[str, _Word] = {
    "no-launch": _no_launch,
    "no-sync": _no_waits,
    "async-copies": _no_waits,
    "no-copies": _no_copies,
    "no-straggler": _no_straggler,
    "half": half,
    "overlap": overlap,
    "fuse": fuse,
    "merge": merge,
    "ranks": more_ranks,
}
