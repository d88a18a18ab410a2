"""Waits of the threads of OpenMP for one another: at barriers of their team, and for locks that another one holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from strobe.ranks.waits.message_calls import Spans, spans_of
from strobe.tables.column_arrays import Columns, Ints, alike
from strobe.trace.definition_rows import Region, location_rows, path_tree, region_rows, regions_where
from strobe.trace.trace import Trace

_BARRIERS = ("barrier", "implicit barrier")
_LOCKS = ("lock", "critical", "atomic", "ordered")


@dataclass(frozen=True)
class ThreadWaits(Columns):
    """Waits of a location in a call from call_ns, for another location (cause), which came or let go at cause_ns.

    locked_ns: of wait_ns, because the other one waited that much longer for locks since the team's last barrier.
    """

    location: Ints
    call_ns: Ints
    call_path: Ints
    wait_ns: Ints
    cause: Ints
    cause_ns: Ints
    locked_ns: Ints


@dataclass(frozen=True)
class _Placed(Spans):
    """Spans with their location, in order of location and start. number: of the team's run, or of the lock."""

    location: Ints
    number: Ints


def thread_barriers(trace: Trace) -> ThreadWaits:
    """Return the waits for the last thread that enters a barrier of the same team: min(max_j E_j, L_i) - E_i.

    E and L are enter and leave. Explicit tasks that a thread runs meanwhile are not part of its wait.
    """
    found = [_barriers_of(trace, locations) for locations in _processes(trace)]
    return ThreadWaits.joined(found)


def _barriers_of(trace: Trace, locations: list[int]) -> ThreadWaits:
    """Return the waits at the barriers of a process.

    A team's regions have its number, which is in use once at a time: what overlaps is one run of it. The
    n-th barrier of a thread in that run is the n-th of everybody in it.
    """
    regions = _placed(trace, locations, lambda region: region.name == "parallel")
    barriers = _placed(trace, locations, lambda region: region.name in _BARRIERS)
    if not len(barriers):
        return ThreadWaits.joined(())
    region_of = path_tree(trace)[1]
    team_of_region = np.array(
        [_number(row.file) if (row.paradigm, row.name) == ("openmp", "parallel") else -1 for row in region_rows(trace)]
    )
    team = _innermost(trace, team_of_region[region_of])
    run = _runs(regions, team[regions.call_path])
    of_barrier, number = team[barriers.call_path], np.full(len(barriers), -1, dtype=np.int64)
    for location, which in {*zip(barriers.location.tolist(), of_barrier.tolist(), strict=True)}:
        (around,) = np.nonzero((regions.location == location) & (team[regions.call_path] == which))
        (own,) = np.nonzero((barriers.location == location) & (of_barrier == which))
        at = np.searchsorted(regions.start_ns[around], barriers.start_ns[own], side="right") - 1
        number[own] = np.append(run[around], -1)[at]
    barriers = replace(barriers, number=number)
    begin_ns = np.full(int(run.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begin_ns, run, regions.start_ns)
    tasks = _placed(trace, locations, lambda region: region.name == "task")
    return _late(barriers.chosen(number >= 0), begin_ns, tasks, _placed(trace, locations, _asks_for_lock))


def _late(barriers: _Placed, begin_ns: Ints, tasks: _Placed, requests: _Placed) -> ThreadWaits:
    """Return the waits of barriers for the last of each. `number`: the run of the team, which began at begin_ns."""
    barriers = barriers.chosen(np.lexsort((barriers.start_ns, barriers.location, barriers.number)))
    first = (np.diff(barriers.number, prepend=-1) != 0) | (np.diff(barriers.location, prepend=-1) != 0)
    place = np.arange(len(barriers))
    nth = place - np.maximum.accumulate(np.where(first, place, 0))
    _, group = alike([barriers.number, nth])
    order = np.lexsort((barriers.start_ns, group))
    last = order[np.flatnonzero(np.diff(group[order], append=-1))]
    came = barriers.start_ns[last]
    since = np.where(nth == 0, begin_ns[barriers.number], came[np.maximum(group - 1, 0)])
    last, came = last[group], came[group]
    own, cause, start = barriers.location, barriers.location[last], barriers.start_ns
    until = np.minimum(came, barriers.end_ns)
    wait = until - start - _covered(tasks, own, start, until)
    locked = _covered(requests, cause, since, came) - _covered(requests, own, since, start)
    found = ThreadWaits(own, start, barriers.call_path, wait, cause, came, np.clip(locked, 0, wait))
    return found.chosen((wait > 0) & (last != place))


def lock_contention(trace: Trace) -> ThreadWaits:
    """Return the waits for locks: the overlap of a request with each hold of the same lock by another thread."""
    found = []
    for locations in _processes(trace):
        requests = _placed(trace, locations, _asks_for_lock)
        holds = _placed(trace, locations, lambda region: region.name in _LOCKS)
        for lock in np.unique(requests.number[requests.number > 0]).tolist():
            asked, held = requests.chosen(requests.number == lock), holds.chosen(holds.number == lock)
            held = held.chosen(np.argsort(held.start_ns, kind="stable"))
            # Holds of a lock do not overlap: those of a request are next to each other.
            begin = np.searchsorted(held.end_ns, asked.start_ns, side="right")
            count = np.maximum(np.searchsorted(held.start_ns, asked.end_ns) - begin, 0)
            request = np.repeat(np.arange(len(asked)), count)
            hold = np.arange(len(request)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
            asked, held = asked.chosen(request), held.chosen(hold)
            until = np.minimum(asked.end_ns, held.end_ns)
            wait = until - np.maximum(asked.start_ns, held.start_ns)
            waits = ThreadWaits(asked.location, asked.start_ns, asked.call_path, wait, held.location, until, wait)
            found.append(waits.chosen((wait > 0) & (asked.location != held.location)))
    return ThreadWaits.joined(found)


@dataclass(frozen=True)
class TeamTime:
    """Where the time of all threads of OpenMP went (kind), as a share of all of it, 0 to 1, and most of it where.

    kind: `imbalance` (barriers), `locks` (and barriers, while the last one waited for locks), `serial` (outside of
    parallel regions), `parallel` (the rest). The time of a process is that from its first region on to the end of its
    last one, for as many threads as were in any.
    """

    kind: str
    share: float
    where: str


def team_times(trace: Trace) -> list[TeamTime]:
    """Return the time by kind, the most first; nothing where no process has a team of several threads."""
    total, ns = 0, dict.fromkeys(("imbalance", "locks", "serial"), 0)
    of_paths: dict[str, Counter[int]] = {kind: Counter() for kind in (*ns, "parallel")}
    barriers, locks = thread_barriers(trace), lock_contention(trace)
    for locations in _processes(trace):
        regions = _placed(trace, locations, lambda region: region.name == "parallel")
        threads = len(np.unique(regions.location))
        if threads < 2:
            continue
        regions = regions.chosen(np.argsort(regions.start_ns, kind="stable"))
        reach = np.maximum.accumulate(regions.end_ns)
        gaps = np.maximum(regions.start_ns[1:] - reach[:-1], 0)
        total += threads * int(reach[-1] - regions.start_ns[0])
        ns["serial"] += threads * int(gaps.sum())
        for name, paths, each in (
            ("serial", regions.call_path[1:], gaps),
            ("parallel", regions.call_path, regions.end_ns - regions.start_ns),
        ):
            for path in np.unique(paths).tolist():
                of_paths[name][path] += int(each[paths == path].sum())
    for name, waits, each in (
        ("imbalance", barriers, barriers.wait_ns - barriers.locked_ns),
        ("locks", locks, locks.wait_ns),
    ):
        ns[name] += int(each.sum())
        for path in np.unique(waits.call_path).tolist():
            of_paths[name][path] += int(each[waits.call_path == path].sum())
    if not total:
        return []
    ns["locks"] += int(barriers.locked_ns.sum())
    ns["parallel"] = max(0, total - sum(ns.values()))
    _, of_path = path_tree(trace)
    most = {
        kind: region_rows(trace)[of_path[max(paths, key=paths.__getitem__)]]
        for kind, paths in of_paths.items()
        if paths
    }
    places = {kind: region.file.rpartition("; ")[2] for kind, region in most.items()}
    times = (TeamTime(kind, each / total, places.get(kind, "")) for kind, each in ns.items())
    return sorted(times, key=lambda time: -time.share)


def _asks_for_lock(region: Region) -> bool:
    return region.name.startswith("wait for ")


def _processes(trace: Trace) -> Iterator[list[int]]:
    """Yield the threads of each process, where there are any waits of OpenMP."""
    if not regions_where(trace, lambda region: (region.paradigm, region.role) == ("openmp", "wait")).any():
        return
    of_process: dict[int, list[int]] = {}
    for row in location_rows(trace):
        if row.kind == "thread" and row.span_count:
            of_process.setdefault(row.process, []).append(row.location)
    yield from of_process.values()


def _number(place: str) -> int:
    """Return the number of the lock or team in the place of a construct ("lock 3; main (solver.c:41)"); 0 without."""
    digits = place.partition("; ")[0].rpartition(" ")[2]
    return int(digits) if digits.isdigit() else 0


def _placed(trace: Trace, locations: list[int], wanted: Callable[[Region], bool]) -> _Placed:
    """Return the spans of some constructs of OpenMP, and the number of the lock of each."""
    of_regions = regions_where(trace, lambda region: region.paradigm == "openmp" and wanted(region))
    numbers = np.array([_number(row.file) for row in region_rows(trace)], dtype=np.int64)[path_tree(trace)[1]]
    parts = []
    for location in locations if of_regions.any() else ():
        spans = spans_of(trace, location, of_regions)
        parts.append(_Placed(**vars(spans), location=np.full(len(spans), location), number=numbers[spans.call_path]))
    return _Placed.joined(parts)


def _innermost(trace: Trace, own: Ints) -> Ints:
    """Return by call path its own number, or where that is -1, that of the innermost one around it."""
    parents, _ = path_tree(trace)
    out, around = own.copy(), parents.copy()
    while (missing := (out < 0) & (around >= 0)).any():
        out[missing], around[missing] = own[around[missing]], parents[around[missing]]
    return out


def _runs(regions: _Placed, team: Ints) -> Ints:
    """Return the run of its team that each region is in: regions of a team that overlap are one."""
    order = np.lexsort((regions.start_ns, team))
    out = np.empty(len(regions), dtype=np.int64)
    number, end, before = -1, -1, -1
    for at in order.tolist():
        if team[at] != before or regions.start_ns[at] >= end:
            number, end, before = number + 1, -1, team[at]
        end = max(end, int(regions.end_ns[at]))
        out[at] = number
    return out


def _covered(spans: _Placed, location: Ints, begin: Ints, end: Ints) -> Ints:
    """Return how much of [begin, end) the spans of each location take; spans in spans count once."""
    out = np.zeros(len(location), dtype=np.int64)
    for each in np.unique(spans.location).tolist():
        own = spans.chosen(spans.location == each)
        own = own.chosen(own.start_ns >= np.append(-1, np.maximum.accumulate(own.end_ns)[:-1]))  # the outermost ones
        sums, ends = np.append(0, np.cumsum(own.end_ns - own.start_ns)), np.append(0, own.end_ns)
        (at,) = np.nonzero(location == each)
        for times, sign in ((begin[at], -1), (end[at], 1)):
            count = np.searchsorted(own.start_ns, times)
            out[at] += sign * (sums[count] - np.where(count > 0, np.maximum(ends[count] - times, 0), 0))
    return out
