"""What if? Other times of the edges of a critical path, and a replay of steps with them.

The replay keeps the time of each piece of work and which one waits for which. What lies between them (launches, gaps
of a stream, returns of calls that wait) takes what it usually takes in that stretch, and what nothing accounts for
takes no time. So a replay of what was recorded is as long as that, but for what this model does not know: its error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from strobe.errors import UsageError
from strobe.ranks.critical_path.graph import Window, graph
from strobe.ranks.critical_path.longest_path import (
    COMPUTATION,
    COPY,
    HOST,
    KINDS,
    LAUNCH,
    QUEUE,
    SYNC,
    UNEXPLAINED,
    Edges,
    longest_path,
)
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import innermost
from strobe.steps.usual_steps import Usual
from strobe.tables.column_arrays import Bools, Floats, Ints, rows_by
from strobe.trace.definition_rows import location_rows, path_tree, processes_of_locations
from strobe.trace.trace import Trace

# Longer than anything that is recorded: an edge of this weight is never the last to come.
_GONE = -(2**61)
_FEWEST = 5
NAMED = {
    "no-launch": "work of GPUs needs no launch of its own, as in a graph",
    "no-sync": "no call waits for a GPU",
    "async-copies": "no call waits for a copy",
    "no-copies": "copies take no time",
    "no-straggler": "what a rank calls takes what the median of the ranks takes for it",
}


class Change(NamedTuple):
    """What if the time of a kind, or of regions whose names match a pattern, were multiplied by a factor?

    What is not sure has two: from `least` to `most`. pattern: or a name of NAMED.
    """

    pattern: str
    least: float
    most: float


_NUMBER = r"(\d+\.?\d*|\.\d+)"
_CHANGE = re.compile(rf"\s*(\S.*?)\s*=\s*{_NUMBER}(?:\s*\.\.\s*{_NUMBER})?\s*(?:,|$)")
_WORD = re.compile(rf"\s*({'|'.join(NAMED)})\s*(?:,|$)")


def changes(text: str, option: str = "--what-if") -> list[Change]:
    """Read what-if: `nccl*=0.5`, `gemm*=0.4..0.6`, `launch=0`, `no-sync`, several with commas.

    Raises UsageError for anything else.
    """
    found, at = [], 0
    while at < len(text):
        if word := _WORD.match(text, at):
            found.append(Change(word[1], 0.0, 0.0))
        elif word := _CHANGE.match(text, at):
            least, most = sorted((float(word[2]), float(word[3] or word[2])))
            found.append(Change(word[1], least, most))
        else:
            known = f"PATTERN=FACTOR: 'nccl*=0.5,launch=0'; or one of: {', '.join(NAMED)}"
            raise UsageError(f"{option}: '{text[at:]}' is not a change", do=known)
        at = word.end()
    return found


def changed(
    trace: Trace, edges: Edges, what_if: Sequence[Change], weight_ns: Ints | None = None, option: str = "--what-if"
) -> tuple[Ints, Ints]:
    """Return the weights of edges after changes: with the least factors, and with the most.

    A pattern changes what ran in a region that it matches, and all that ran inside of that, once; the launch of work on
    a GPU belongs to the launching call. Raises UsageError where a pattern matches nothing. weight_ns: those that are
    changed, if not the edges' own.
    """
    names = [str(name) for name in trace.regions.column("name")]
    parent, region = path_tree(trace)
    factors, gone = [np.ones(len(edges)), np.ones(len(edges))], np.zeros(len(edges), dtype=bool)
    for pattern, *by in what_if:
        if pattern in NAMED:
            _named(trace, edges, pattern, factors, gone)
            continue
        if pattern in KINDS:
            chosen = edges.kind == KINDS.index(pattern)
        else:
            matching = np.array([fnmatchcase(name, pattern) for name in names], dtype=bool)
            if not matching.any():
                raise UsageError(
                    f"{option}: no region of this trace is called '{pattern}'",
                    do=f"A name as strobe profile shows it, with * for any text; or one of: {', '.join(KINDS)}",
                )
            inside = innermost(parent, matching[region]) >= 0
            chosen = (edges.call_path >= 0) & inside[edges.call_path]
        for factor, one in zip(factors, by, strict=True):
            factor[chosen] *= one
    weights = edges.weight_ns if weight_ns is None else weight_ns
    least, most = (np.where(gone, _GONE, np.rint(weights * factor).astype(np.int64)) for factor in factors)
    return least, most


def _named(trace: Trace, edges: Edges, name: str, factors: list[Floats], gone: Bools) -> None:
    if name == "no-straggler":
        own = _of_median(trace, edges)
        for factor in factors:
            factor *= own
    elif name in ("no-sync", "async-copies"):
        waits = (edges.kind == SYNC) & _in_threads(trace, edges)
        gone |= waits & (np.isin(edges.source, edges.target[edges.kind == COPY]) | (name == "no-sync"))
    else:
        launches = edges.kind == LAUNCH
        calls = np.isin(edges.call_path, edges.call_path[launches]) & (edges.kind == HOST)
        chosen = edges.kind == COPY if name == "no-copies" else launches | calls
        for factor in factors:
            factor[chosen] = 0.0


def _in_threads(trace: Trace, edges: Edges) -> Bools:
    is_thread = np.array([each.kind == "thread" for each in location_rows(trace)] + [False], dtype=bool)
    return is_thread[edges.location]


def _of_median(trace: Trace, edges: Edges) -> Floats:
    """Return by edge the time of its call path in the median of the processes, as a part of that in its own."""
    process = np.append(np.array(processes_of_locations(trace), dtype=np.int64), -1)[edges.location]
    (works,) = np.nonzero(np.isin(edges.kind, (HOST, COMPUTATION)) & (edges.call_path >= 0) & (process >= 0))
    processes, which = np.unique(process[works], return_inverse=True)
    paths, path = np.unique(edges.call_path[works], return_inverse=True)
    times = np.zeros((len(paths), len(processes)))
    np.add.at(times, (path, which), edges.weight_ns[works])
    factor, part = np.ones(len(edges)), np.ones_like(times)
    np.divide(np.median(times, axis=1)[:, None] if len(paths) else times, times, out=part, where=times > 0)
    factor[works] = part[path, which]
    return factor


def usual_weights(trace: Trace, edges: Edges) -> Ints:
    """Return the weights of a replay: those of work as recorded, and of what lies in between the usual ones.

    These are, of launches, of gaps in a stream, and of waits of threads and of streams, the medians of those that were
    the last to come: of the region that they end in, if it has at least _FEWEST, else of all. What nothing accounts for
    takes no time.
    """
    weight, threads = edges.weight_ns.copy(), _in_threads(trace, edges)
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
    return weight


@dataclass(frozen=True)
class Replay:
    """A stretch of consecutive steps of all its processes, replayed. Times of the stretch, ns.

    least_ns, most_ns: with the change, by its least and its most factors; without one as replayed.
    """

    first: int
    steps: int
    recorded_ns: int
    replayed_ns: int
    least_ns: int
    most_ns: int


def replays(
    trace: Trace,
    usual: Usual,
    processes: Sequence[int],
    stretches: Sequence[tuple[int, int]],
    what_if: Sequence[Change],
) -> Iterator[Replay]:
    """Yield a replay of each stretch of steps, from one to another (places in `usual.steps`), of some processes.

    A process has the same steps in its own time; those of others where it has none.
    """
    steps = {each.process: each for each in find_steps(trace).processes}
    for first, last in stretches:
        windows = []
        for process in processes:
            own = steps.get(process, usual.steps)
            at = [number + usual.steps.first_number - own.first_number for number in (first, last)]
            own, at = (own, at) if at[0] >= 0 and at[1] < len(own.start_ns) else (usual.steps, [first, last])
            windows.append(Window(process, int(own.start_ns[at[0]]), int(own.end_ns[at[1]])))
        found = graph(trace, windows)
        weights = usual_weights(trace, found.edges)
        replayed = longest_path(found, weights).length_ns
        least = most = replayed
        if what_if:
            both = changed(trace, found.edges, what_if, weights, option="CHANGE")
            least, most = sorted(longest_path(found, each).length_ns for each in both)
        recorded = longest_path(found).length_ns
        yield Replay(first + usual.steps.first_number, last - first + 1, recorded, replayed, least, most)
