"""What was copied and set on each GPU: how much, how long, how fast, and from which kind of memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device
    from strobe.structure.groups import Texts

# `Memcpy HtoD (Pageable -> Device)`, `[CUDA memcpy HtoD]`; what is no copy sets memory: `Memset (Device)`.
_COPY = re.compile(r"memcpy (?P<kind>\w+)(?: \((?P<source>\w+) -> (?P<destination>\w+)\))?", re.IGNORECASE)
_SET = re.compile(r"memset(?: \((?P<destination>\w+)\))?", re.IGNORECASE)
SET = "set"


def run(trace: Trace) -> Table:
    """Sum the copies and memory sets of every GPU by direction and kinds of memory; sizes and times (nsys: mem_*_sum).

    share = total / total of all copies and sets of the GPU; stddev that of a sample, 0 for one. bandwidth = bytes /
    time of those whose size is known (1 GB/s is a byte per ns); the peak is the highest of a single copy. A copy is
    pageable where the host's memory is not pinned: the driver copies it twice, and it cannot overlap with the host.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.device_work import NO_DEVICE, devices

    there = devices(trace)
    rows = [row for device in there for row in _of_device(trace, device)]
    columns = (
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
    note = "" if rows else "no GPU copied or set memory in this trace" if there else NO_DEVICE
    return make_table(columns, rows, name="copies", about="copies and memory sets of all GPUs", note=note).sort(
        "total_ns"
    )


def _of_device(trace: Trace, device: Device) -> Iterator[tuple[object, ...]]:
    import numpy as np

    from strobe.structure.attributes import Attributes, integers
    from strobe.structure.device_work import COPY, beginning, stretches
    from strobe.structure.groups import Groups, Spread, Texts

    columns = ("size_bytes", "copy_kind", "source_kind", "destination_kind")
    attributes = {at: Attributes(trace, "copy_spans", at, columns) for at in device.locations}
    texts, groups, times, sizes = Texts(), Groups(), Spread(), Spread()
    in_names = np.array([_in_name(name, texts) for name in trace.regions.to_arrow().column("name").to_pylist()])
    timed, peaks = np.zeros(0, dtype=np.int64), np.zeros(0)
    for begin, end in stretches(device):
        found = beginning(trace, device, begin, end)
        for location, own in attributes.items():
            (at,) = np.nonzero((found.location == location) & (1 << found.kind == COPY))
            if not len(at):
                continue
            said = own.of(found.row[at])
            key = []
            for k, column in enumerate(columns[1:]):
                known = texts.numbers(said.column(column))
                key.append(np.where(known >= 0, known, in_names[found.region[at], k]))
            group = groups.numbers(key)
            duration, size = (found.end_ns - found.start_ns)[at], integers(said.column("size_bytes"))
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


def _in_name(name: str, texts: Texts) -> tuple[int, int, int]:
    """Return kind, source and destination as the name of the region says them: numbers of texts."""
    found = _COPY.search(name)
    if found:
        return texts.number(found["kind"]), texts.number(found["source"]), texts.number(found["destination"])
    found = _SET.search(name)
    return texts.number(SET if found else None), -1, texts.number(found["destination"] if found else None)


ANALYSIS = Analysis("copies", "What is copied to, from and on each GPU, and how fast?", run)
