"""What each stream of a GPU did: how long it was busy, how long alone, and with what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from strobe.analyses.gpu.streams import ANALYSIS
from strobe.gpu.answers import gpu_note, rows_of_gpus
from strobe.gpu.devices import Device, no_device, stream_name
from strobe.gpu.work import KINDS, Work, beginning, busy, stretches, work
from strobe.steps.thread_spans import Ints
from strobe.tables.table import Table
from strobe.trace.trace import Trace


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.gpu.streams`."""
    rows = rows_of_gpus(trace, _of_device, ANALYSIS.columns)
    note = gpu_note(trace, rows, no_device(trace))
    return Table(rows, about="streams of all GPUs", note=note)


def _of_device(trace: Trace, device: Device) -> Iterator[Mapping[str, object]]:
    """Yield a row for each stream on which something ran."""
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
            yield {
                **device.cells,
                "stream": name,
                "priority": _priority(trace, locations),
                "busy_ns": int(busy[at, 0]),
                "share": int(busy[at, 0]) / whole_ns,
                "alone_ns": int(alone[at, 0]),
                "kernels": int(counts[at, 0]),
                "kernel_ns": int(times[at, 0]),
                "copies": int(counts[at, 1]),
                "copy_ns": int(times[at, 1]),
                "first_ns": int(first[at]),
                "last_ns": int(last[at]),
            }


def _streams(trace: Trace, device: Device) -> list[tuple[str, list[int]]]:
    """Return name and locations of the streams: what a stream ran at once lies in several."""
    found: dict[tuple[str, int], list[int]] = {}
    for row in trace.locations.to_arrow().to_pylist():
        if row["location"] in device.locations:
            found.setdefault((stream_name(row["name"]), row["thread_id"]), []).append(row["location"])
    return [(name, locations) for (name, _), locations in found.items()]


def _running(found: Work, numbers: Ints, streams: int, begin_ns: int, end_ns: int) -> tuple[Ints, Ints]:
    """Return how long each stream ran something in [begin_ns, end_ns), and how long it alone did."""
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
    """Return the priority that the kernels of a stream have: the lowest number, null where none has one."""
    of_batches = (
        pc.min(batch.column("priority")).as_py()
        for location in locations
        for batch in trace.side_batches("kernel_spans", location)
    )
    return min((each for each in of_batches if each is not None), default=None)
