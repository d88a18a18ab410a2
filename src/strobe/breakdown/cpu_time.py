"""What the time of cores and threads went into, by readings of the recorder: user, system, waits, idle.

A reading is the mean of a rate since the reading before. Machines, processes and groups of threads are read together,
with their threads: what the recorder reads at a time is one stretch of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from strobe.model.kinds import CORES, CPU_KINDS, MACHINE_CORES
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.metrics.readings import Readings
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# A reading belongs to the steps of a class, or to another part of the run, that lasts for so much of its time.
_MOSTLY = 0.95
# The kernel counts user and system time in ticks of 10 ms: of fewer readings the shares would be those of few ticks.
_FEWEST_READINGS = 3

_MACHINE = {"user": "user", "system": "system", "io_wait": "I/O wait", "stolen": "stolen", "idle": "idle"}
# Groups of threads: their CPU time, and how the metrics of their waits begin.
_GROUPS = {
    "main thread": "main thread waits",
    "python threads": "python threads wait",
    "compute threads": "compute threads wait",
    "other threads": "other threads wait",
    "strobe": "strobe waits",
}


@dataclass(frozen=True)
class CpuTime:
    """What a machine, a process, a group of threads or a thread did with the time of its cores.

    what: `machine`, `process`, `threads`, `thread`. process: that read it. location: of a thread. begin_ns, end_ns: of
    each reading. cores: in each, NaN where unknown; of a group of threads, those of its process. kinds_ns: an array
    (CPU_KINDS, readings), NaN where unknown. Those of a machine and of a thread add up to cores x time; of a process,
    user, system and idle do.
    """

    what: str
    name: str
    process: int
    location: int | None
    begin_ns: Ints
    end_ns: Ints
    cores: Floats
    kinds_ns: Floats

    def __len__(self) -> int:
        return len(self.end_ns)

    @property
    def duration_ns(self) -> int:
        """The time that the readings stand for."""
        return int((self.end_ns - self.begin_ns).sum())

    @property
    def core_ns(self) -> float | None:
        """Cores x time, None where the number of cores is unknown."""
        return _sum(self.cores * (self.end_ns - self.begin_ns))

    def time_ns(self, kind: str) -> float | None:
        """The time of one of CPU_KINDS, None where it is unknown."""
        found = _sum(self.kinds_ns[CPU_KINDS.index(kind)])
        if kind not in ("user", "system") or found is None:
            # A wait counts when it ends: the idle time of one reading may be less than nothing, that of many is not.
            return None if found is None else max(0.0, found)
        # System time comes in ticks: it may be ahead of the CPU time that it is part of.
        both = _sum(self.kinds_ns[[CPU_KINDS.index("user"), CPU_KINDS.index("system")]].sum(axis=0))
        return min(max(0.0, found), both or 0.0)

    def within(self, begin_ns: Ints, end_ns: Ints) -> CpuTime | None:
        """Return the readings that lie in stretches of time, disjoint and in order; None where there are too few."""
        inside = _covered(begin_ns, end_ns, self.end_ns) - _covered(begin_ns, end_ns, self.begin_ns)
        chosen = inside >= _MOSTLY * (self.end_ns - self.begin_ns)
        if chosen.sum() < _FEWEST_READINGS:
            return None
        columns = {name: getattr(self, name)[chosen] for name in ("begin_ns", "end_ns", "cores")}
        return replace(self, **columns, kinds_ns=self.kinds_ns[:, chosen])


@cached_on_trace
def cpu_times(trace: Trace) -> tuple[CpuTime, ...]:
    """Return what each process read: of its machine, of itself, of its groups of threads, of its threads.

    Nothing of processes whose recorder did not read user and system time.
    """
    of_process: dict[int, dict[str, Readings]] = {each.process: {} for each in process_rows(trace)}
    of_location: dict[int, dict[str, Readings]] = {}
    for each in trace.readings():
        if not len(each.time_ns):
            continue
        known = of_process[each.process] if each.location is None else of_location.setdefault(each.location, {})
        # PyTorch's adapter reads the number of cores once more, as the process ends.
        if each.metric not in known or len(known[each.metric].time_ns) < len(each.time_ns):
            known[each.metric] = each
    found: list[CpuTime] = []
    for process, metrics in of_process.items():
        grid = _Grid.of(metrics)
        if grid is not None:
            host = process_rows(trace)[process].host or trace.info.host
            found += _of_process(process, host, metrics, grid)
            found += _of_threads(trace, process, of_location, grid)
    return tuple(found)


def of_machines(trace: Trace) -> list[CpuTime]:
    """Return what was read of each machine, by the process that read it for longest."""
    longest: dict[str, CpuTime] = {}
    for each in cpu_times(trace):
        if each.what == "machine" and (each.name not in longest or each.duration_ns > longest[each.name].duration_ns):
            longest[each.name] = each
    return list(longest.values())


@dataclass(frozen=True)
class _Grid:
    """When a process was read: each reading stands for the time from `begin_ns` to `end_ns`."""

    begin_ns: Ints
    end_ns: Ints

    @staticmethod
    def of(metrics: Mapping[str, Readings]) -> _Grid | None:
        if "cpu user" not in metrics or CORES not in metrics:
            return None
        # The first reading of all has no rates, but the number of cores.
        end_ns, all_ns = metrics["cpu user"].time_ns, metrics[CORES].time_ns
        begin_ns = np.concatenate((all_ns[all_ns < end_ns[0]][-1:], end_ns[:-1]))
        return _Grid(begin_ns, end_ns[len(end_ns) - len(begin_ns) :])

    def values(self, readings: Readings | None) -> Floats:
        """The readings of a metric at these times, NaN where it was not read."""
        found = np.full(len(self.end_ns), np.nan)
        if readings is not None:
            at = np.minimum(np.searchsorted(self.end_ns, readings.time_ns), len(found) - 1)
            there = self.end_ns[at] == readings.time_ns
            found[at[there]] = readings.values[there]
        return found

    def time(self, what: str, name: str, process: int, cores: Floats, kinds: Mapping[str, Floats]) -> CpuTime:
        lengths = self.end_ns - self.begin_ns
        unknown = np.full(len(lengths), np.nan)
        kinds_ns = np.array([kinds.get(kind, unknown) * lengths for kind in CPU_KINDS])
        return CpuTime(what, name, process, None, self.begin_ns, self.end_ns, cores, kinds_ns)


def _of_process(process: int, host: str, metrics: Mapping[str, Readings], grid: _Grid) -> Iterator[CpuTime]:
    """Yield what was read of the machine, of the process, and of its groups of threads."""

    def read(name: str) -> Floats:
        return grid.values(metrics.get(name))

    if MACHINE_CORES in metrics:
        kinds = {kind: read(f"machine {name}") for kind, name in _MACHINE.items()}
        yield grid.time("machine", host, process, read(MACHINE_CORES), kinds)
    cores, user, system = read(CORES), read("cpu user"), read("cpu system")
    groups = [grid.time("threads", name, process, cores, _of_group(read, name)) for name in _GROUPS]
    kinds = {"user": user, "system": system, "idle": cores - user - system}
    whole = grid.time("process", "", process, cores, kinds)
    for kind in ("waiting", "io_wait"):
        own = [each for each in groups if each.name != "strobe"]
        of_groups = np.array([each.kinds_ns[CPU_KINDS.index(kind)] for each in own])
        # A group that had no threads yet did not wait.
        known = ~np.isnan(of_groups).all(axis=0)
        whole.kinds_ns[CPU_KINDS.index(kind)] = np.where(known, np.nansum(of_groups, axis=0), np.nan)
    yield whole
    yield from (each for each in groups if each.time_ns("user") or each.time_ns("system") or each.time_ns("waiting"))


def _of_group(read: Callable[[str], Floats], name: str) -> dict[str, Floats]:
    cpu, system = read(f"cpu {name}"), read(f"system time {name}")
    waits = _GROUPS[name]
    return {
        "user": cpu - system,
        "system": system,
        "waiting": read(f"{waits} for a core"),
        "io_wait": read(f"{waits} for block I/O"),
    }


def _of_threads(
    trace: Trace, process: int, of_location: Mapping[int, Mapping[str, Readings]], grid: _Grid
) -> Iterator[CpuTime]:
    """Yield what was read of each thread of a process, while it was there."""
    for thread in location_rows(trace):
        metrics = of_location.get(thread.location, {})
        if thread.process != process or "system time" not in metrics:
            continue
        cpu, system, waiting, io_wait = (
            grid.values(metrics.get(name)) for name in ("cpu", "system time", "waits for a core", "waits for block I/O")
        )
        idle = 1 - cpu - np.nan_to_num(waiting) - np.nan_to_num(io_wait)
        kinds = {"user": cpu - system, "system": system, "waiting": waiting, "io_wait": io_wait, "idle": idle}
        found = grid.time("thread", thread.name or f"thread {thread.thread_id}", process, np.ones(len(cpu)), kinds)
        there = ~np.isnan(cpu)
        yield replace(
            found,
            location=thread.location,
            begin_ns=found.begin_ns[there],
            end_ns=found.end_ns[there],
            cores=found.cores[there],
            kinds_ns=found.kinds_ns[:, there],
        )


def _sum(values: Floats) -> float | None:
    return None if np.isnan(values).all() else float(np.nansum(values))


def _covered(begin_ns: Ints, end_ns: Ints, time_ns: Ints) -> Ints:
    """How much of some stretches lies before each time."""
    if not len(begin_ns):
        return np.zeros(len(time_ns), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(end_ns - begin_ns)))
    at = np.searchsorted(begin_ns, time_ns, side="right") - 1
    last = np.maximum(at, 0)
    covered: Ints = before[last] + np.clip(time_ns - begin_ns[last], 0, end_ns[last] - begin_ns[last])
    return np.where(at < 0, 0, covered)
