"""Copies and memory sets of a GPU: source, destination, bytes, and bandwidth over time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import Device
from strobe.gpu.work import COPY, beginning, stretches
from strobe.sums.attributes import Attributes, integers, reals
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Columns, Floats, Ints
from strobe.trace.trace import Trace

# `Memcpy HtoD (Pageable -> Device)`, `[CUDA memcpy HtoD]`; others set memory: `Memset (Device)`.
_COPY = re.compile(r"memcpy (?P<kind>\w+)(?: \((?P<source>\w+) -> (?P<destination>\w+)\))?", re.IGNORECASE)
_SET = re.compile(r"memset(?: \((?P<destination>\w+)\))?", re.IGNORECASE)
SET = "set"
_COLUMNS = ("copy_kind", "source_kind", "destination_kind", "size_bytes", "bandwidth_gb_s")


@dataclass(frozen=True)
class Copies(Columns):
    """Copies and sets, by stream and in order of start.

    kind (HtoD, ..., set), source, destination: numbers of texts, -1 if unknown. size: bytes, -1 if unknown.
    bandwidth: bytes a nanosecond (GB/s) by the tool, NaN if it has none.
    """

    kind: Ints
    source: Ints
    destination: Ints
    start_ns: Ints
    end_ns: Ints
    size: Ints
    bandwidth: Floats


def copies(trace: Trace, device: Device, texts: Texts) -> Iterator[tuple[int, Copies]]:
    """Yield the copies and sets of a GPU by stretches of time, each with its end, in constant memory."""
    attributes = {at: Attributes(trace, "copy_spans", at, _COLUMNS) for at in device.locations}
    names = trace.regions.to_arrow().column("name").to_pylist()
    in_names = np.array([[texts.number(word) for word in parts_of_name(name)] for name in names])
    for begin, stop in stretches(device):
        found = beginning(trace, device, begin, stop)
        parts = []
        for location, own in attributes.items():
            (at,) = np.nonzero((found.location == location) & (1 << found.kind == COPY))
            if not len(at):
                continue
            rows = own.of(found.row[at])
            known = [texts.numbers(rows.column(name)) for name in _COLUMNS[:3]]
            words = (np.where(k >= 0, k, in_names[found.region[at], n]) for n, k in enumerate(known))
            kind, source, destination = words
            size, bandwidth = integers(rows.column("size_bytes")), reals(rows.column("bandwidth_gb_s"))
            parts.append(Copies(kind, source, destination, found.start_ns[at], found.end_ns[at], size, bandwidth))
        yield stop, Copies.joined(parts)


def parts_of_name(name: str) -> tuple[str | None, str | None, str | None]:
    """Return kind, source and destination of a copy or set by its name, each None if missing."""
    if found := _COPY.search(name):
        return found["kind"], found["source"], found["destination"]
    found = _SET.search(name)
    return SET if found else None, None, found["destination"] if found else None


@dataclass(frozen=True)
class Speeds:
    """How fast one kind of copies was, piece by piece.

    Between start_ns and end_ns the same copies run: `running` of them, with `speed` bytes a nanosecond (GB/s) in all.
    """

    kind: int
    start_ns: Ints
    end_ns: Ints
    speed: Floats
    running: Ints


def speeds(trace: Trace, device: Device, texts: Texts, cuts: Ints) -> Iterator[Speeds]:
    """Yield the pieces of time in which copies of each kind run, also cut at `cuts`, in order of time for each kind.

    A copy has one speed: its size by its duration, else the tool's bandwidth. Copies without a duration or a known
    speed are left out. HTA: memory bandwidth time series.
    """
    running: dict[int, tuple[Ints, Ints, Floats]] = {}
    for stop_ns, found in copies(trace, device, texts):
        duration = found.end_ns - found.start_ns
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = np.where(found.size >= 0, found.size / duration, found.bandwidth)
        timed = (duration > 0) & np.isfinite(speed)
        for kind in {*running, *np.unique(found.kind[timed]).tolist()}:
            own = timed & (found.kind == kind)
            new = found.start_ns[own], found.end_ns[own], speed[own]
            start, end, speeds_of = (np.concatenate(pair) for pair in zip(running.pop(kind, _NONE), new, strict=True))
            yield _pieces(kind, start, end, speeds_of, cuts, stop_ns)
            left = end > stop_ns
            if left.any():
                running[kind] = np.full(int(left.sum()), stop_ns), end[left], speeds_of[left]
    for kind, (start, end, speeds_of) in running.items():
        yield _pieces(kind, start, end, speeds_of, cuts, int(end.max()))


_NONE = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def _pieces(kind: int, start: Ints, end: Ints, speed: Floats, cuts: Ints, stop_ns: int) -> Speeds:
    end = np.minimum(end, stop_ns)
    first, last = np.searchsorted(cuts, (int(start.min(initial=stop_ns)), stop_ns))
    times = np.unique(np.concatenate((start, end, cuts[first:last])))
    begins, ends = np.searchsorted(times, start), np.searchsorted(times, end)
    count = np.cumsum(np.bincount(begins, minlength=len(times)) - np.bincount(ends, minlength=len(times)))
    change = np.bincount(begins, speed, len(times)) - np.bincount(ends, speed, len(times))
    level = np.cumsum(change)
    # Sums of real numbers do not come back to 0: each busy stretch counts from if nothing ran.
    idle = np.maximum.accumulate(np.where(count == 0, np.arange(len(times)), 0))
    level -= np.where(idle > 0, level[idle], 0)
    (at,) = np.nonzero(count[:-1])
    return Speeds(kind, times[at], times[at + 1], level[at], count[at])
