"""How much memory is allocated over time: on GPUs and on the host, by allocators and the operating system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Columns, Ints, alike
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Columns of `allocations`, and their values for null.
_COLUMNS = {
    "time_ns": 0,
    "size_bytes": 0,
    "total_allocated_bytes": -1,
    "total_reserved_bytes": -1,
    "total_active_bytes": -1,
    "largest_free_bytes": -1,
    "address": -1,
    "device_type": -1,
    "device": -1,
    "event_index": -1,
}
_GPU = 1
_NAMES = {0: "host", _GPU: "GPU"}
_RESIDENT = "resident memory"


class Pool(NamedTuple):
    """A memory that an allocator gives out: type of the device, its number, and the kind of memory in words."""

    device_type: int
    device: int
    kind: str | None

    @property
    def memory(self) -> str:
        """What answers call it."""
        return self.kind or _NAMES.get(self.device_type, "allocator")

    @property
    def gpu(self) -> int | None:
        """Number of the GPU, None for the host."""
        return self.device if self.device >= 0 else None


@dataclass(frozen=True)
class Curve:
    """Memory of one kind that a process has, over time; columns of equal length, in order of time.

    pool: of allocators, whose blocks `strobe.gpu.memory_blocks` has. number: of the event in its file. active: bytes
    allocated, or freed but awaited by a stream; largest_free: bytes of the largest free piece of what is reserved; -1
    if unknown.

    memory: GPU or host (PyTorch's allocators), allocator (of unknown memory), Device, Managed, Pinned, ... (CUDA: from
    CUPTI and Nsight Systems), resident (of the whole process: from the operating system). device: number of the GPU,
    None for the host. allocated: bytes in use from then on; reserved: bytes that the allocator holds for it, -1 if
    unknown; change: bytes allocated, below 0 freed, 0 if unknown; location: thread, -1 if unknown. exact: whether
    `allocated` comes from the allocator; else it is a lower bound, the bytes allocated since the first event.
    """

    process: int
    rank: int | None
    memory: str
    device: int | None
    exact: bool
    time_ns: Ints
    allocated: Ints
    reserved: Ints
    change: Ints
    location: Ints
    active: Ints
    largest_free: Ints
    number: Ints
    pool: Pool | None = None


@dataclass(frozen=True)
class PoolEvents(Columns):
    """What happened in one memory, in order: columns of the table `allocations`, -1 where unknown (size: 0)."""

    time_ns: Ints
    size: Ints
    total: Ints
    reserved: Ints
    active: Ints
    largest_free: Ints
    address: Ints
    number: Ints
    location: Ints


def curves(trace: Trace) -> list[Curve]:
    """Return the curves of every process, those of GPUs first. The events of one process are held at once."""
    return [
        curve
        for process, rank in enumerate(ranks_of(trace))
        for curve in (*_allocators(trace, process, rank), *_resident(trace, process, rank))
    ]


def allocator_curves(trace: Trace) -> list[Curve]:
    """Return the curves of allocators only."""
    return [curve for process, rank in enumerate(ranks_of(trace)) for curve in _allocators(trace, process, rank)]


def corners_of(curve: Curve, most: int = 1 << 17) -> Ints:
    """Return the changes that a picture of a curve needs.

    Of more than `most`: the lowest and the highest of each of `most` / 2 equal parts of the time.
    """
    if len(curve.time_ns) <= most:
        return np.arange(len(curve.time_ns))
    length = int(curve.time_ns[-1] - curve.time_ns[0]) + 1
    part = (curve.time_ns - curve.time_ns[0]) // -(-length * 2 // most)
    extremes = (np.lexsort((sign * curve.allocated, part)) for sign in (1, -1))
    return np.unique(np.concatenate([at[np.flatnonzero(np.diff(part[at], prepend=-1))] for at in extremes]))


def steps_of(curve: Curve, until_ns: int, most: int = 1 << 17) -> tuple[Ints, Ints]:
    """Return times and bytes of a line with a corner at each change of `corners_of`."""
    before = np.concatenate(([curve.allocated[0] - curve.change[0]], curve.allocated[:-1]))
    earlier = np.maximum(curve.time_ns - 1, np.concatenate((curve.time_ns[:1] - 1, curve.time_ns[:-1])))
    shown = corners_of(curve, most)
    end = np.array([max(until_ns, int(curve.time_ns[-1]))])
    times = np.stack((earlier[shown], curve.time_ns[shown]), axis=1).ravel()
    levels = np.stack((before[shown], curve.allocated[shown]), axis=1).ravel()
    return np.concatenate((times, end)), np.concatenate((levels, curve.allocated[-1:]))


def _allocators(trace: Trace, process: int, rank: int | None) -> Iterator[Curve]:
    for pool, events in pools_of(trace, process):
        known = events.total >= 0
        level = np.cumsum(events.size)
        if known.any():
            # Where the total is unknown (a kill takes that of the last events), it counts on from if it was.
            last = np.maximum.accumulate(np.where(known, np.arange(len(known)), int(known.argmax())))
            level += (events.total - level)[last]
        else:
            # What was allocated before the first event and is freed later was in use, too.
            level -= min(0, int(level.min()))
        columns = (events.time_ns, level, events.reserved, events.size, events.location)
        found = (*columns, events.active, events.largest_free, events.number, pool)
        yield Curve(process, rank, pool.memory, pool.gpu, bool(known.all()), *found)


@cached_on_trace
def pools_of(trace: Trace, process: int) -> list[tuple[Pool, PoolEvents]]:
    """Return the memories that allocators of a process give out, those of GPUs first, and what happened in each."""
    if not trace.readers[process].tables().get("allocations"):
        return []
    texts, parts = Texts(), [np.zeros((len(_COLUMNS) + 2, 0), dtype=np.int64)]
    for location, owner in enumerate(processes_of_locations(trace)):
        for batch in trace.side_batches("allocations", location) if owner == process else ():
            columns = [integers(batch.column(name), missing) for name, missing in _COLUMNS.items()]
            kind = texts.numbers(batch.column("memory_kind"))
            parts.append(np.stack((*columns, kind, np.full(len(kind), location))))
    rows = np.concatenate(parts, axis=1)
    later = np.diff(rows[0])
    if ((later < 0) | ((later == 0) & (np.diff(rows[-3]) < 0))).any():
        rows = rows[:, np.lexsort((rows[-3], rows[0]))]
    time, size, total, reserved, active, largest, address, device_type, device, number, kind, location = rows
    events = PoolEvents(time, size, total, reserved, active, largest, address, number, location)
    first, code = alike((device_type, device, kind))
    pools = [Pool(int(device_type[at]), int(device[at]), texts.text(int(kind[at]))) for at in first.tolist()]
    order = sorted(range(len(pools)), key=lambda at: (pools[at].device_type != _GPU, at))
    return [(pools[at], events.chosen(code == at)) for at in order]


def _resident(trace: Trace, process: int, rank: int | None) -> Iterator[Curve]:
    for metric in trace.readers[process].metrics():
        time = metric["time_ns"] - trace.zero_of(process)
        if metric["name"] == _RESIDENT and len(time):
            value = metric["value"].astype(np.int64)
            none = np.full(len(time), -1, dtype=np.int64)
            yield Curve(
                process, rank, "resident", None, True, time, value, none, np.zeros_like(none), none, none, none, none
            )
