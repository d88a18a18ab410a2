"""How much memory is allocated over time: on GPUs and on the host, by allocators and the operating system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace

# Columns of `allocations`, and their values for null.
_COLUMNS = {
    "time_ns": 0,
    "size_bytes": 0,
    "total_allocated_bytes": -1,
    "total_reserved_bytes": -1,
    "device_type": -1,
    "device": -1,
    "event_index": -1,
}
_GPU = 1
_NAMES = {0: "host", _GPU: "GPU"}
_RESIDENT = "resident memory"


@dataclass(frozen=True)
class Curve:
    """Memory of one kind that a process has, over time; columns of equal length, in order of time.

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


def steps_of(curve: Curve, until_ns: int, most: int = 1 << 17) -> tuple[Ints, Ints]:
    """Return times and bytes of a line with a corner at each change.

    Of more than `most` changes: the lowest and the highest of each of `most` / 2 equal parts of the time.
    """
    before = np.concatenate(([curve.allocated[0] - curve.change[0]], curve.allocated[:-1]))
    earlier = np.maximum(curve.time_ns - 1, np.concatenate((curve.time_ns[:1] - 1, curve.time_ns[:-1])))
    if len(curve.time_ns) > most:
        length = int(curve.time_ns[-1] - curve.time_ns[0]) + 1
        part = (curve.time_ns - curve.time_ns[0]) // -(-length * 2 // most)
        extremes = (np.lexsort((sign * curve.allocated, part)) for sign in (1, -1))
        shown = np.unique(np.concatenate([at[np.flatnonzero(np.diff(part[at], prepend=-1))] for at in extremes]))
    else:
        shown = np.arange(len(curve.time_ns))
    end = np.array([max(until_ns, int(curve.time_ns[-1]))])
    times = np.stack((earlier[shown], curve.time_ns[shown]), axis=1).ravel()
    levels = np.stack((before[shown], curve.allocated[shown]), axis=1).ravel()
    return np.concatenate((times, end)), np.concatenate((levels, curve.allocated[-1:]))


def _allocators(trace: Trace, process: int, rank: int | None) -> Iterator[Curve]:
    if not trace.readers[process].tables().get("allocations"):
        return
    (time, size, total, reserved, device_type, device, number, kind, location), texts = _events(trace, process)
    order = np.lexsort((number, time))
    pools = zip(*np.unique(np.stack((device_type, device, kind)), axis=1).tolist(), strict=True)
    for of_type, of_device, text in sorted(pools, key=lambda pool: (pool[0] != _GPU, *pool)):
        mine = order[(device_type[order] == of_type) & (device[order] == of_device) & (kind[order] == text)]
        known = total[mine] >= 0
        level = np.cumsum(size[mine])
        if known.any():
            # Where the total is unknown (a kill takes that of the last events), it counts on from if it was.
            last = np.maximum.accumulate(np.where(known, np.arange(len(known)), int(known.argmax())))
            level += (total[mine] - level)[last]
        else:
            # What was allocated before the first event and is freed later was in use, too.
            level -= min(0, int(level.min()))
        name = texts.text(text) or _NAMES.get(of_type, "allocator")
        columns = (time[mine], level, reserved[mine], size[mine], location[mine])
        yield Curve(process, rank, name, of_device if of_device >= 0 else None, bool(known.all()), *columns)


def _events(trace: Trace, process: int) -> tuple[Ints, Texts]:
    """Return the allocations of a process: the columns of _COLUMNS, number of the text of memory_kind, location."""
    texts, parts = Texts(), [np.zeros((len(_COLUMNS) + 2, 0), dtype=np.int64)]
    for location, owner in enumerate(processes_of_locations(trace)):
        for batch in trace.side_batches("allocations", location) if owner == process else ():
            columns = [integers(batch.column(name), missing) for name, missing in _COLUMNS.items()]
            kind = texts.numbers(batch.column("memory_kind"))
            parts.append(np.stack((*columns, kind, np.full(len(kind), location))))
    return np.concatenate(parts, axis=1), texts


def _resident(trace: Trace, process: int, rank: int | None) -> Iterator[Curve]:
    for metric in trace.readers[process].metrics():
        time = metric["time_ns"] - trace.zero_of(process)
        if metric["name"] == _RESIDENT and len(time):
            value = metric["value"].astype(np.int64)
            none = np.full(len(time), -1, dtype=np.int64)
            yield Curve(process, rank, "resident", None, True, time, value, none, np.zeros_like(none), none)
