"""What was copied and set on each GPU: how much, how long, how fast, and from which kind of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.gpu.copies import ANALYSIS
from strobe.errors import UsageError
from strobe.gpu.answers import gpu_note, rows_of_gpus
from strobe.gpu.copies import SET, copies, parts_of_name, speeds
from strobe.gpu.devices import Device
from strobe.gpu.folded_work import folded_rows
from strobe.gpu.work import COPY, kind_of_region
from strobe.sums.folded_durations import with_folded
from strobe.sums.groups import Groups, Spread, Texts
from strobe.tables.column_arrays import Floats, Ints
from strobe.tables.table import Table
from strobe.trace.trace import Trace

# Parts of the time: more would be more memory than rows that anybody reads.
_MOST_POINTS = 1_000_000


def run(trace: Trace, *, by: str, points: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.copies`."""
    if points > _MOST_POINTS:
        raise UsageError(f"{points} points are too many", do=f"--points: up to {_MOST_POINTS}")
    columns = ANALYSIS.columns_with(by=by)
    if by == "time":
        rows = rows_of_gpus(trace, _over_time, columns, points=points)
    else:
        rows = rows_of_gpus(trace, _of_device, columns, sums=True)
    note = gpu_note(trace, rows, "no GPU copied or set memory in this trace")
    table = Table(rows, about="copies and memory sets of all GPUs", note=note)
    return table if by == "time" else table.sort("total_ns")


def _of_device(trace: Trace, device: Device) -> Iterator[Mapping[str, object]]:
    texts, groups, times, sizes = Texts(), Groups(), Spread(), Spread()
    timed, peaks = np.zeros(0, dtype=np.int64), np.zeros(0)
    for _, found in copies(trace, device, texts):
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
    folded = None if device.spans else folded_rows(trace, device)
    if folded is not None:  # a profile, which has sums by name
        names = trace.regions.to_arrow().column("name").to_pylist()
        copied = 1 << np.maximum(0, kind_of_region(trace)[folded[1]]) == COPY
        words = [[texts.number(word) for word in parts_of_name(names[region])] for region in folded[1][copied]]
        group = groups.numbers(list(np.array(words, dtype=np.int64).reshape(-1, 3).T))
        ran = with_folded(times, len(groups), group, folded[0].chosen(copied))
        timed, peaks = np.zeros(len(groups), dtype=np.int64), np.zeros(len(groups))
    else:
        ran = times.summary(len(groups))
    held = sizes.summary(len(groups))
    everything = max(1, int(ran.total.sum()))
    for k, key_of in enumerate(groups.keys):
        kind, source, destination = (texts.text(number) for number in key_of)
        if kind == SET and destination is None:  # nvprof has one kind of memory for a set, and calls it the source
            source, destination = None, source
        memory = [each for each in (source, destination) if each is not None]
        yield {
            **device.cells,
            "kind": kind,
            "source": source,
            "destination": destination,
            "pageable": "Pageable" in memory if memory else None,
            "share": int(ran.total[k]) / everything,
            **ran.cells(k),
            **{name: value if held.count[k] else None for name, value in _sizes(held.cells(k)).items()},
            "bandwidth_gb_s": int(held.total[k]) / int(timed[k]) if timed[k] else None,
            "peak_gb_s": float(peaks[k]) or None,
        }


def _sizes(cells: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the cells about sizes, from those of their statistics: `total_ns` is `size_bytes`, `avg_ns` their mean."""
    of_sizes = {name.removesuffix("_ns") + "_size_bytes": value for name, value in cells.items() if name != "calls"}
    return {"size_bytes": of_sizes.pop("total_size_bytes"), **of_sizes}


def _over_time(trace: Trace, device: Device, points: int) -> Iterator[Mapping[str, object]]:
    """Yield the bandwidth of each kind in each part of the time, or in each piece between changes."""
    texts = Texts()
    width = max(1, -(-(device.last_ns - device.first_ns) // max(1, points)))
    edges = device.first_ns + np.arange(points + 1 if points > 0 else 0) * width
    sums: dict[int, tuple[Ints, Floats, Floats, Ints]] = {}

    def row(kind: int, *cells: float) -> Mapping[str, object]:
        names = ("start_ns", "duration_ns", "busy_ns", "bandwidth_gb_s", "peak_gb_s", "copies")
        return {**device.cells, "kind": texts.text(kind), **dict(zip(names, cells, strict=True))}

    for piece in speeds(trace, device, texts, edges):
        length = piece.end_ns - piece.start_ns
        if points <= 0:
            columns = (piece.start_ns, length, length, piece.speed, piece.speed, piece.running)
            for cells in zip(*(column.tolist() for column in columns), strict=True):
                yield row(piece.kind, *cells)
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
            yield row(kind, int(edges[k]), width, int(busy[k]), float(size[k]) / width, float(peak[k]), int(most[k]))
