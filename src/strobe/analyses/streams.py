"""What each stream of a GPU did: how long it was busy, how long alone, and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device, Work

    Ints = npt.NDArray[np.int64]


def run(trace: Trace) -> Table:
    """Say what each stream of each GPU did between the first start and the last end of the GPU's work.

    busy = time in which a kernel, copy or set of the stream runs; alone = the part of it in which no other stream of
    the GPU has anything to run: what all of it is for the only stream that is used, and what several streams are to
    lessen. Kernels and copies of a stream follow each other but for some that a GPU runs at once, so that their times
    may add up to more than busy. priority: lower numbers run first; null where it is not known.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device

    rows = rows_of_processes(trace, _of_process)
    note = folded_note(trace, devices(trace)) if len(rows) else no_device(trace)
    return Table(rows, name="streams", about="streams of all GPUs", note=note)


def _of_process(part: Trace) -> pa.Table:
    """Return the rows of one process."""
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices

    return make_table(_columns(), [row for device in devices(part) for row in _of_device(part, device)]).to_arrow()


def _columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        Column("stream", "string", "", "name of the stream"),
        Column("priority", "int64", "", "its priority: the lowest number comes first; null where unknown"),
        Column("busy_ns", "int64", "ns", "time in which it runs something"),
        Column("share", "float64", "", "busy part of the time between first and last work of the GPU, 0 to 1"),
        Column("alone_ns", "int64", "ns", "time in which it runs something and no other stream of the GPU does"),
        Column("kernels", "int64", "", "kernels that ran on it"),
        Column("kernel_ns", "int64", "ns", "sum of their durations"),
        Column("copies", "int64", "", "copies and sets of memory on it"),
        Column("copy_ns", "int64", "ns", "sum of their durations"),
        Column("first_ns", "int64", "ns", "start of its first work", extra=True),
        Column("last_ns", "int64", "ns", "end of its last work", extra=True),
    )


def _of_device(trace: Trace, device: Device) -> Iterator[tuple[object, ...]]:
    """Yield a row for each stream on which something ran."""
    import numpy as np

    from strobe.structure.device_work import KINDS, beginning, stretches, work

    places = _streams(trace, device)
    number_of = {location: number for number, (_, locations) in enumerate(places) for location in locations}
    numbers = np.zeros(max(device.locations) + 1, dtype=np.int64)
    numbers[list(number_of)] = list(number_of.values())
    counts, times, busy, alone = (np.zeros((len(places), 2), dtype=np.int64) for _ in range(4))
    first = np.full(len(places), device.last_ns, dtype=np.int64)
    last = np.full(len(places), device.first_ns, dtype=np.int64)
    copies = KINDS.index("copy")
    for begin, end in stretches(device):
        found = beginning(trace, device, begin, end)
        stream, copied = numbers[found.location], (found.kind == copies).astype(np.int64)
        np.add.at(counts, (stream, copied), 1)
        np.add.at(times, (stream, copied), found.end_ns - found.start_ns)
        np.minimum.at(first, stream, found.start_ns)
        np.maximum.at(last, stream, found.end_ns)
        running = work(trace, device, begin, end)
        for of_stream, of_all in zip((busy, alone), _running(running, numbers, len(places), begin, end), strict=True):
            of_stream[:, 0] += of_all
    whole_ns = max(1, int(last.max()) - int(first.min()))
    for at, (name, locations) in enumerate(places):
        if counts[at].any():
            yield (
                device.rank,
                device.process,
                device.number,
                name,
                _priority(trace, locations),
                int(busy[at, 0]),
                int(busy[at, 0]) / whole_ns,
                int(alone[at, 0]),
                *(int(column[at, kind]) for kind in (0, 1) for column in (counts, times)),
                int(first[at]),
                int(last[at]),
            )


def _streams(trace: Trace, device: Device) -> list[tuple[str, list[int]]]:
    """Return name and locations of the streams: what a stream ran at once lies in several, `stream 7 (lane 2)`."""
    import re

    found: dict[tuple[str, int], list[int]] = {}
    for row in trace.locations.to_arrow().to_pylist():
        if row["location"] in device.locations:
            name = re.sub(r" \(lane \d+\)$", "", row["name"])
            found.setdefault((name, row["thread_id"]), []).append(row["location"])
    return [(name, locations) for (name, _), locations in found.items()]


def _running(found: Work, numbers: Ints, streams: int, begin_ns: int, end_ns: int) -> tuple[Ints, Ints]:
    """Return how long each stream ran something in [begin_ns, end_ns), and how long it alone did."""
    import numpy as np

    from strobe.structure.device_work import busy

    busy_ns, alone_ns = np.zeros(streams, dtype=np.int64), np.zeros(streams, dtype=np.int64)
    edges, which = [], []
    stream = numbers[found.location]
    for number in np.unique(stream):
        start, end = (np.clip(each, begin_ns, end_ns) for each in busy(found.chosen(stream == number)))
        busy_ns[number] = (end - start).sum()
        edges += [start, end]
        which += [np.full(len(start), number + 1), np.full(len(end), -number - 1)]
    if not edges:
        return busy_ns, alone_ns
    times, signed = np.concatenate(edges), np.concatenate(which)
    order = np.argsort(times, kind="stable")
    times, signed = times[order], signed[order]
    running, name = np.cumsum(np.sign(signed)), np.cumsum(signed) - 1
    (one,) = np.nonzero(running[:-1] == 1)
    np.add.at(alone_ns, name[one], np.diff(times)[one])
    return busy_ns, alone_ns


def _priority(trace: Trace, locations: Sequence[int]) -> int | None:
    """Return what the kernels of a stream say."""
    where = ", ".join(map(str, locations))
    rows = trace.sql(f"select min(priority) as priority from kernel_spans where location in ({where})").to_pylist()
    found = rows[0]["priority"]
    return None if found is None else int(str(found))


ANALYSIS = Analysis("streams", "What did each stream of each GPU do: how long was it busy, and how long alone?", run)
