"""What was copied and set on each GPU: how much, how long, how fast, and from which kind of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.errors import UsageError
from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.copies import Floats, Ints
    from strobe.structure.device_work import Device

# Parts of the time: more would be more memory than rows that anybody reads.
_MOST_POINTS = 1_000_000


def run(trace: Trace, *, by: str = "kind", points: int = 500) -> Table:
    """Sum the copies and memory sets of every GPU by direction and kinds of memory; sizes and times (nsys: mem_*_sum).

    share = total / total of all copies and sets of the GPU; stddev that of a sample, 0 for one. bandwidth = bytes /
    time of those whose size is known (1 GB/s is a byte per ns); the peak is the highest of a single copy. A copy is
    pageable where the host's memory is not pinned: the driver copies it twice, and it cannot overlap with the host.

    by time: the bandwidth of each kind in each of `points` equal parts of the time of the GPU's work, those in which
    something is copied; 0: from change to change, the sum of what runs at once (HTA: memory bandwidth time series). A
    copy counts as equally fast all along; those without length or size are left out.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device

    if points > _MOST_POINTS:
        raise UsageError(f"{points} points are too many", do=f"--points: up to {_MOST_POINTS}")
    rows = rows_of_processes(trace, _of_process, by=by, points=points)
    note = (
        folded_note(trace, devices(trace))
        if len(rows)
        else "no GPU copied or set memory in this trace"
        if devices(trace)
        else no_device(trace)
    )
    table = Table(rows, name="copies", about="copies and memory sets of all GPUs", note=note)
    return table if by == "time" else table.sort("total_ns")


def _of_process(part: Trace, by: str, points: int) -> pa.Table:
    """Return the rows of one process."""
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices

    there = devices(part)
    if by == "time":
        rows = [row for device in there for row in _over_time(part, device, points)]
        return make_table(_time_columns(), rows).to_arrow()
    return make_table(_columns(), [row for device in there for row in _of_device(part, device)]).to_arrow()


def _columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        Column("kind", "string", "", "from where to where: HtoD, DtoH, DtoD, PtoP, ...; set where memory was set"),
        Column(
            "source", "string", "", "memory copied from: Pageable, Pinned, Device, ..., null where unknown", extra=True
        ),
        Column("destination", "string", "", "memory copied to, or set", extra=True),
        Column("pageable", "bool", "", "whether memory of the host took part that was not pinned, null where unknown"),
        Column("share", "float64", "", "part of the time of all copies and sets of the GPU, 0 to 1"),
        Column("total_ns", "int64", "ns", "sum of the durations"),
        Column("calls", "int64", "", "copies or sets"),
        Column("avg_ns", "float64", "ns", "mean duration", extra=True),
        Column("median_ns", "float64", "ns", "median duration", extra=True),
        Column("min_ns", "int64", "ns", "shortest", extra=True),
        Column("max_ns", "int64", "ns", "longest", extra=True),
        Column("stddev_ns", "float64", "ns", "standard deviation of the durations", extra=True),
        Column("size_bytes", "int64", "bytes", "bytes copied or set; null where no size is known"),
        Column("avg_size_bytes", "float64", "bytes", "mean size", extra=True),
        Column("median_size_bytes", "float64", "bytes", "median size", extra=True),
        Column("min_size_bytes", "int64", "bytes", "smallest", extra=True),
        Column("max_size_bytes", "int64", "bytes", "largest", extra=True),
        Column("stddev_size_bytes", "float64", "bytes", "standard deviation of the sizes", extra=True),
        Column("bandwidth_gb_s", "float64", "GB/s", "bytes by time in it"),
        Column("peak_gb_s", "float64", "GB/s", "the same of the fastest copy", extra=True),
    )


def _time_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        Column("kind", "string", "", "from where to where: HtoD, DtoH, DtoD, PtoP, ...; set where memory was set"),
        Column("start_ns", "int64", "ns", "start of the part of time"),
        Column("duration_ns", "int64", "ns", "its length"),
        Column("busy_ns", "int64", "ns", "time of it in which something is copied"),
        Column("bandwidth_gb_s", "float64", "GB/s", "bytes copied in it by its length"),
        Column("peak_gb_s", "float64", "GB/s", "highest bandwidth at any moment of it, the sum of what runs at once"),
        Column("copies", "int64", "", "most that ran at once", extra=True),
    )


def _of_device(trace: Trace, device: Device) -> Iterator[tuple[object, ...]]:
    import numpy as np

    from strobe.structure.copies import SET, copies
    from strobe.structure.groups import Groups, Spread, Texts

    texts, groups, times, sizes = Texts(), Groups(), Spread(), Spread()
    timed, peaks = np.zeros(0, dtype=np.int64), np.zeros(0)
    for found in copies(trace, device, texts):
        group = groups.numbers([found.kind, found.source, found.destination])
        duration, size = found.end_ns - found.start_ns, found.size
        times.add(group, duration)
        sized = size >= 0
        sizes.add(group[sized], size[sized])
        more = len(groups) - len(timed)
        timed, peaks = np.pad(timed, (0, more)), np.pad(peaks, (0, more))
        np.add.at(timed, group[sized], duration[sized])
        fast = sized & (duration > 0)
        np.maximum.at(peaks, group[fast], size[fast] / duration[fast])
    count = len(groups)
    ran, held = times.summary(count), sizes.summary(count)
    everything = max(1, int(ran.total.sum()))
    for k, key_of in enumerate(groups.keys):
        kind, source, destination = (texts.text(number) for number in key_of)
        if kind == SET and destination is None:  # nvprof has one kind of memory for a set, and calls it the source
            source, destination = None, source
        memory = [each for each in (source, destination) if each is not None]
        cells = (int(held.total[k]), float(held.average[k]), float(held.median[k]), int(held.least[k]),
                 int(held.most[k]), float(held.stddev[k]))  # fmt: skip
        yield (
            device.rank,
            device.process,
            device.number,
            kind,
            source,
            destination,
            "Pageable" in memory if memory else None,
            int(ran.total[k]) / everything,
            *ran.cells(k),
            *(cells if held.count[k] else (None,) * 6),
            int(held.total[k]) / int(timed[k]) if timed[k] else None,
            float(peaks[k]) or None,
        )


def _over_time(trace: Trace, device: Device, points: int) -> Iterator[tuple[object, ...]]:
    """Yield the bandwidth of each kind in each part of the time, or in each piece between changes."""
    import numpy as np

    from strobe.structure.copies import speeds
    from strobe.structure.groups import Texts

    texts = Texts()
    width = max(1, -(-(device.last_ns - device.first_ns) // max(1, points)))
    edges = device.first_ns + np.arange(points + 1 if points > 0 else 0) * width
    sums: dict[int, tuple[Ints, Floats, Floats, Ints]] = {}
    for piece in speeds(trace, device, texts, edges):
        length = piece.end_ns - piece.start_ns
        if points <= 0:
            who = device.rank, device.process, device.number, texts.text(piece.kind)
            columns = (piece.start_ns, length, length, piece.speed, piece.speed, piece.running)
            yield from ((*who, *cells) for cells in zip(*(column.tolist() for column in columns), strict=True))
            continue
        empty = np.zeros(points, dtype=np.int64), np.zeros(points), np.zeros(points), np.zeros(points, dtype=np.int64)
        busy, size, peak, most = sums.setdefault(piece.kind, empty)
        part = (piece.start_ns - device.first_ns) // width
        np.add.at(busy, part, length)
        np.add.at(size, part, piece.speed * length)
        np.maximum.at(peak, part, piece.speed)
        np.maximum.at(most, part, piece.running)
    for kind, (busy, size, peak, most) in sums.items():
        for k in np.flatnonzero(busy).tolist():
            who = device.rank, device.process, device.number, texts.text(kind)
            times = int(edges[k]), width, int(busy[k])
            yield *who, *times, float(size[k]) / width, float(peak[k]), int(most[k])


ANALYSIS = Analysis(
    "copies",
    "What is copied to, from and on each GPU, and how fast?",
    run,
    options=(
        Option("by", "one row a kind, or a kind and part of the time", default="kind", choices=("kind", "time")),
        Option("points", "equal parts of the time; 0: from change to change", type=int, default=500),
    ),
)
