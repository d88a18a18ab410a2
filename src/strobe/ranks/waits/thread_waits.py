"""Waits of threads of one process for each other, and where the time of all of them went: sums of the recorder."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from strobe.ranks.waits.wait_columns import THREAD_STATES
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.sums.samples import IDLE, RUNNING, sample_sums
from strobe.tables.column_arrays import Bools, Columns, Ints
from strobe.trace.definition_rows import location_rows, processes_of_locations
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Beside the states: of teams of OpenMP, and of threads that the program created.
OTHER_STATES = (
    *("team_regions", "team_workers", "team_load_balance", "team_scheduling"),
    *("team_imbalance", "team_locks", "team_serial", "team_starved", "team_start_and_end", "thread_create"),
)
_STATES = (*THREAD_STATES, *OTHER_STATES)
# Most regions are shorter than this where they are called short: longer waits have a row each.
_SHORT_NS, _MOST = 50_000, 0.75
_OF_LIBRARY = re.compile(r"(\w+ )?(std|__gnu_cxx)::|.* \((gthr-\w+\.h:|libstdc\+\+)")


@dataclass(frozen=True)
class Sums(Columns):
    """Rows of `thread_waits`: `waits` of a location, the first from begin_ns, for another one (cause, -1: unknown).

    state: its number in THREAD_STATES, then OTHER_STATES. call_stack: number of its text. max_ns: -1 if unknown.
    """

    state: Ints
    location: Ints
    begin_ns: Ints
    call_stack: Ints
    cause: Ints
    waits: Ints
    wait_ns: Ints
    max_ns: Ints


@dataclass(frozen=True)
class ThreadWaits:
    """The waits of threads, and what else is known of them (OTHER_STATES). call_stacks: lines, outermost first."""

    waits: Sums
    others: Sums
    call_stacks: tuple[str, ...]


@cached_on_trace
def thread_waits(trace: Trace) -> ThreadWaits:
    """Return what the recorder knows of the waits of threads; computed once per open trace."""
    states, stacks, parts = Texts(), Texts(), []
    for state in _STATES:
        states.number(state)
    for row in location_rows(trace) if any("thread_waits" in each.tables() for each in trace.readers) else ():
        for batch in trace.side_batches("thread_waits", row.location):
            part = Sums(
                state=states.numbers(batch.column("state")),
                location=np.full(batch.num_rows, row.location),
                begin_ns=integers(batch.column("time_ns")),
                call_stack=stacks.numbers(batch.column("call_stack")),
                cause=integers(batch.column("cause")),
                waits=integers(batch.column("waits")),
                wait_ns=integers(batch.column("wait_ns")),
                max_ns=integers(batch.column("max_ns")),
            )
            parts.append(part.chosen(part.call_stack >= 0))
    found = Sums.joined(parts)
    of_threads = found.state < len(THREAD_STATES)
    return ThreadWaits(found.chosen(of_threads), found.chosen(~of_threads), tuple(stacks.texts))


def rows_of(trace: Trace, state: str) -> Sums:
    """Return the rows of one of THREAD_STATES or OTHER_STATES."""
    found = thread_waits(trace)
    rows = found.others if state in OTHER_STATES else found.waits
    return rows.chosen(rows.state == _STATES.index(state))


def function_and_callers(call_stack: str) -> tuple[str, str]:
    """Return the function that waits, and its callers as `exchange (solver.c:41) < main (solver.c:90)`.

    Functions of the C++ library are left out.
    """
    *callers, function = call_stack.split("\n")
    frames = " < ".join(reversed(callers)).split(" < ")
    return function, " < ".join(frame for frame in frames if not _OF_LIBRARY.match(frame))


@dataclass(frozen=True)
class TeamTime:
    """Where the time of all threads went (kind), as a share of all of it, 0 to 1, and most of it where.

    kind: `imbalance` (barriers), `locks` (and barriers, while the last one waited for locks), `cores` (ready to run,
    without a core), `parallel` (the rest); of OpenMP also `tasks` (without one, while others run theirs) and `serial`
    (outside of parallel regions) and, where most regions are short, `regions` (their start and end, some of which is
    `imbalance`, too). Of OpenMP all but `cores` are shares of the time that is left if each thread always
    has a core.
    awaited: the location that is waited for in more than half of it, -1 if none is. regions, region_ns, cost_ns: how
    many short regions there were, and how long one and its start and end took on average.
    """

    kind: str
    share: float
    where: str
    awaited: int = -1
    regions: int = 0
    region_ns: float = 0.0
    cost_ns: float = 0.0


def team_times(trace: Trace) -> list[TeamTime]:
    """Return the time by kind, the most first; nothing where threads of OpenMP or pthreads wait for nobody.

    All of it is, of OpenMP, the parallel regions and the time between them; of pthreads, the time in which the threads
    have something to do, and at least as long as one thread lasts.
    """
    regions = rows_of(trace, "team_regions")
    return _of_openmp(trace, regions) if len(regions) else _of_pthreads(trace)


def _of_openmp(trace: Trace, regions: Sums) -> list[TeamTime]:
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    of_teams = np.isin(process, process[regions.location])
    states = {"imbalance": "team_imbalance", "locks": "lock_contention", "tasks": "no_task", "serial": "team_serial"}
    rows = {kind: rows_of(trace, state) for kind, state in states.items()} | {"parallel": regions}
    rows = {kind: each.chosen(of_teams[each.location]) for kind, each in rows.items()}
    ns = {kind: int(each.wait_ns.sum()) for kind, each in rows.items()}
    sums = ("team_workers", "team_locks", "team_starved", "idle_worker")
    in_workers, locked, starved, idle = (int(rows_of(trace, state).wait_ns.sum()) for state in sums)
    whole = 1 + ns["parallel"] / in_workers  # beside idle workers one thread works
    starved += round((idle - ns["serial"]) * whole)
    ns["serial"] = round(ns["serial"] * whole)
    total = ns["parallel"] + in_workers + round(idle * whole)
    for kind in ("locks", "tasks"):  # how long others had no core meanwhile is not known: as all others
        ns[kind] = round(ns[kind] * (1 - starved / total))
    ns["imbalance"], ns["locks"] = ns["imbalance"] - locked, ns["locks"] + locked
    lost = sum(ns[kind] for kind in states)
    own = max(total - starved, lost)  # regions that a worker left first are not among the teams' time
    ns["parallel"] = own - lost
    found = [*_times(trace, rows, ns, own), TeamTime("cores", min(1.0, starved / total), "")]
    # Who loses its core in one of these makes it long: the share is of the time of those that are short.
    of_regions = ("team_regions", "team_start_and_end", "idle_worker")
    short, costs, between = (_short(rows_of(trace, state), of_teams) for state in of_regions)
    count, cost_ns = int(short.waits.sum()), int(costs.wait_ns.sum())
    if count >= _MOST * regions.waits.sum():
        lasted_ns = int(short.wait_ns.sum()) + int(between.wait_ns.sum()) / (whole - 1)
        (time,) = _times(trace, {"regions": short}, {"regions": cost_ns}, round(lasted_ns))
        each_ns = [float(rows.wait_ns.sum() / max(1, int(rows.waits.sum()))) for rows in (short, costs)]
        found.append(replace(time, awaited=-1, regions=count, region_ns=each_ns[0], cost_ns=each_ns[1]))
    return found


def _short(rows: Sums, of_teams: Bools) -> Sums:
    return rows.chosen(of_teams[rows.location] & (rows.max_ns < _SHORT_NS))


def _of_pthreads(trace: Trace) -> list[TeamTime]:
    rows = {"imbalance": rows_of(trace, "thread_barrier"), "locks": rows_of(trace, "lock_contention")}
    ns = {kind: int(each.wait_ns.sum()) for kind, each in rows.items()}
    if not any(ns.values()):
        return []
    lasted, busy_ns, ns["cores"] = Counter[int](), ns["imbalance"], 0
    for each in sample_sums(trace):
        lasted[each.location] += each.ran_ns + each.other_ns
        busy_ns += 0 if each.state in IDLE else each.ran_ns + each.other_ns
        ns["cores"] += each.other_ns if each.state in RUNNING else 0
    total = max(busy_ns, *lasted.values(), 1)
    ns["parallel"] = max(0, total - sum(ns.values()))
    return _times(trace, rows, ns, total)


def _times(trace: Trace, rows: dict[str, Sums], ns: dict[str, int], total: int) -> list[TeamTime]:
    stacks = [function_and_callers(each) for each in thread_waits(trace).call_stacks]
    found = []
    for kind, time_ns in ns.items():
        most, cause, functions = Counter[tuple[str, str]](), Counter[int](), Counter[str]()
        of_kind = rows.get(kind, Sums.joined(()))
        columns = (of_kind.call_stack.tolist(), of_kind.cause.tolist(), of_kind.wait_ns.tolist())
        for stack, awaited, wait_ns in zip(*columns, strict=True):
            function, callers = stacks[stack]
            most[function, callers] += wait_ns
            functions[function] += wait_ns
            cause[awaited] += wait_ns
        (function, callers) = max(most, key=lambda each: (functions[each[0]], most[each]), default=("", ""))
        where = f"{function}, called by {callers}" if function.startswith("pthread_") else callers
        awaited, ns_of_it = max(cause.items(), key=lambda each: each[1], default=(-1, 0))
        alone = awaited if 2 * ns_of_it > cause.total() else -1
        found.append(TeamTime(kind, time_ns / max(1, total), where, alone))
    return sorted(found, key=lambda time: -time.share)
