"""The work of GPUs: kernels, copies and memory sets of all streams of a device, by stretches in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.gpu.communication import communicating_by_evidence
from strobe.gpu.devices import Device
from strobe.gpu.folded_work import folded_work
from strobe.steps.folded_time import folded_stretches
from strobe.sums.attributes import Attributes, integers
from strobe.tables.column_arrays import Columns, Floats, Ints
from strobe.trace.definition_rows import region_rows, regions_where
from strobe.trace.group_rules import group_by_rules
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Kinds of activities. A set of kinds is a mask: bit k stands for KINDS[k].
KINDS = ("computation", "communication", "copy")
COMPUTATION, COMMUNICATION, COPY = (1 << k for k in range(3))
MASKS = 1 << len(KINDS)
# The side tables of activities.
WORK_TABLES = ("kernel_spans", "copy_spans")
# Approximate number of activities in a stretch.
_STRETCH = 1 << 19
# Later than every moment of a run, ns.
_NEVER = 2**61


@dataclass(frozen=True)
class Work(Columns):
    """Activities of a device in order of start; equally long columns. `kind` counts from 0, as KINDS does."""

    location: npt.NDArray[np.uint32]
    row: Ints
    start_ns: Ints
    end_ns: Ints
    region: npt.NDArray[np.uint32]
    kind: npt.NDArray[np.int8]


@cached_on_trace
def kind_of_region(trace: Trace) -> npt.NDArray[np.int8]:
    """Return the kind of every region as a number; -1 for those that are not work of a device (ranges, waits).

    What a kernel does follows from the user's rules, from its name, else from what is known of its launches.
    """
    regions = region_rows(trace)
    number_of = {"copy": KINDS.index("copy"), "kernel": KINDS.index("computation")}
    kinds = np.array([number_of.get(each.role, -1) for each in regions], dtype=np.int8)
    kernels = regions_where(trace, lambda each: each.role == "kernel")
    communicates = kernels & regions_where(trace, lambda each: each.group == "communication")
    ruled = regions_where(trace, lambda each: each.role == "kernel" and group_by_rules(each.name) is not None)
    if (open_question := kernels & ~communicates & ~ruled).any():
        communicates |= communicating_by_evidence(trace, open_question)
    kinds[communicates] = KINDS.index("communication")
    return kinds


class WorkNumbers:
    """Whole numbers from the side tables of activities, which are asked for in order of time."""

    def __init__(self, trace: Trace, device: Device, columns: Sequence[str]) -> None:
        self._columns = columns
        self._tables = {
            location: [Attributes(trace, table, location, columns) for table in WORK_TABLES]
            for location in device.locations
        }

    def of(self, found: Work) -> list[Ints]:
        """Return the columns as long as `found`; -1 where a number is missing, or not above 0."""
        out = [np.full(len(found), -1, dtype=np.int64) for _ in self._columns]
        for location, tables in self._tables.items():
            (at,) = np.nonzero(found.location == location)
            at = at[np.argsort(found.row[at])]
            for table in tables:
                known = table.of(found.row[at])
                for column, name in zip(out, self._columns, strict=True):
                    values = integers(known.column(name))
                    column[at[values > 0]] = values[values > 0]
        return out


def work(trace: Trace, device: Device, start_ns: int | None = None, end_ns: int | None = None) -> Work:
    """Return the activities that overlap [start_ns, end_ns), all of them by default, in order of start."""
    kinds = kind_of_region(trace)
    parts = []
    for location in device.locations:
        spans = trace.span_arrays(location, start_ns, end_ns)
        chosen = kinds[spans["region"]] >= 0
        begin = spans["start_ns"][chosen]
        region = spans["region"][chosen]
        where = np.full(len(begin), location, dtype=np.uint32)
        end = begin + spans["duration_ns"][chosen]
        parts.append(Work(where, spans["row"][chosen], begin, end, region, kinds[region]))
    found = Work.joined(parts)
    return found.chosen(np.argsort(found.start_ns, kind="stable"))


def stretches(device: Device, most: int = _STRETCH) -> Iterator[tuple[int, int]]:
    """Divide the device's time into stretches [start, end) of about `most` activities each."""
    width = (device.last_ns - device.first_ns) // max(1, -(-device.spans // most)) + 1
    for begin in range(device.first_ns, device.last_ns + 1, width):
        yield begin, min(begin + width, device.last_ns + 1)


def beginning(trace: Trace, device: Device, start_ns: int, end_ns: int) -> Work:
    """Return the activities that begin in [start_ns, end_ns), in order of start: over all stretches each comes once."""
    # From the moment before, to include activities of length 0.
    found = work(trace, device, start_ns - 1, end_ns)
    return found.chosen((found.start_ns >= start_ns) & (found.start_ns < end_ns))


def divided(trace: Trace, device: Device, start_ns: int | None = None, end_ns: int | None = None) -> Ints:
    """Return how long each set of kinds ran on a device in [start_ns, end_ns), as `divide` does.

    Without them: from the first start to the last end of its activities, or of a folded iteration; zeros if it has
    none. The time of folded iterations is that of their lanes (strobe.gpu.lanes); of a lane that the stretch cuts,
    each set counts by the part that lies in it. Where an older strobe recorded no lanes see `divided_by_spans`.
    """
    lanes = _lanes_beside_folded(trace, device)
    if lanes is None:
        return divided_by_spans(trace, device, start_ns, end_ns)
    begin, end, set_ns, whole = lanes
    low = -_NEVER if start_ns is None else start_ns
    high = _NEVER if end_ns is None else end_ns
    inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0, None) / (end - begin)
    sums: Ints = (set_ns * inside[:, None]).astype(np.int64).sum(axis=0)
    sums[0] += int(np.clip(np.minimum(end, high) - np.maximum(begin, low), 0, None).sum() - sums.sum())
    (apart,) = np.nonzero(begin[1:] > end[:-1])
    for since, until in zip(end[apart].tolist(), begin[1:][apart].tolist(), strict=True):
        if max(since, low) < min(until, high):
            sums += divided_by_spans(trace, device, max(since, low), min(until, high), folds=False)
    if low < begin[0]:
        sums += divided_by_spans(trace, device, start_ns, min(int(begin[0]), high), folds=False)
    if high > end[-1]:
        sums += divided_by_spans(trace, device, max(int(end[-1]), low), end_ns, folds=not whole)
    return sums


@cached_on_trace
def _lanes_beside_folded(trace: Trace, device: Device) -> tuple[Ints, Ints, Ints, bool] | None:
    """Return when the known lanes of a device begin and end, their times, and whether all are known.

    None if none is, or nothing was folded.
    """
    lanes = trace.gpu_lanes(device.process).get(device.number)
    if lanes is None or not len(folded_stretches(trace, device.process)):
        return None
    length = lanes.set_ns.sum(axis=1)
    there = lanes.chosen(lanes.known & (length > 0))
    if not len(there):
        return None
    return there.start_ns, there.start_ns + there.set_ns.sum(axis=1), there.set_ns, bool(lanes.known.all())


def divided_by_spans(
    trace: Trace, device: Device, start_ns: int | None, end_ns: int | None, *, folds: bool = True
) -> Ints:
    """Return what `divided` does, from the spans that are there.

    `folds`: folded iterations count by the sums of their launches, spread evenly over their time, and beyond it if the
    GPU is behind: at most all of the time in which nothing else ran. Kinds overlap as they do in detail.
    """
    first, last = device.last_ns, device.first_ns
    sums = np.zeros(MASKS, dtype=np.int64)
    for begin, end in stretches(device):
        begin = begin if start_ns is None else max(begin, start_ns)
        end = end if end_ns is None else min(end, end_ns)
        if begin >= end:
            continue
        found = work(trace, device, begin, end)
        if len(found):
            first, last = min(first, int(found.start_ns[0])), max(last, int(found.end_ns.max()))
            sums += divide(found, begin, end)
    if folds and len(folded := folded_stretches(trace, device.process)):
        last = max(last, int(folded.end_ns.max()))
    begin, end = first if start_ns is None else start_ns, last if end_ns is None else end_ns
    if folds:
        sums += _folded(trace, device, begin, end, max(0, end - begin - int(sums[1:].sum())))
    sums[0] = max(0, end - begin - int(sums[1:].sum()))
    return sums


def _folded(trace: Trace, device: Device, start_ns: int, end_ns: int, most_ns: int) -> Ints:
    """Return how long each set of kinds ran for folded iterations in [start_ns, end_ns), together at most `most_ns`."""
    folded = folded_stretches(trace, device.process)
    if not len(folded) or not (inside := folded.inside_ns(start_ns, max(start_ns, end_ns))):
        return np.zeros(MASKS, dtype=np.int64)
    whole = int((folded.end_ns - folded.begin_ns).sum())
    sums = _folded_sums(trace, device) * inside / whole
    share: Ints = (sums * min(1.0, most_ns / max(1.0, sums.sum()))).astype(np.int64)
    return share


@cached_on_trace
def _folded_sums(trace: Trace, device: Device) -> Floats:
    """Return how long each set of kinds ran for all folded iterations: their sums by kind, overlapping as in detail."""
    out = np.zeros(MASKS)
    done = folded_work(trace, device)
    if done is None:
        return out
    kinds = kind_of_region(trace)
    detail, took = np.zeros(MASKS), np.zeros(len(KINDS))
    for begin, end in stretches(device):
        detail += divide(work(trace, device, begin, end), begin, end)
        found = beginning(trace, device, begin, end)
        np.add.at(took, found.kind, found.end_ns - found.start_ns)
    folded = np.array([done.ns[kinds == kind].sum() for kind in range(len(KINDS))])
    times = np.divide(folded, took, out=np.zeros(len(KINDS)), where=took > 0)
    for mask in range(1, MASKS):
        out[mask] = detail[mask] * min(times[kind] for kind in range(len(KINDS)) if mask >> kind & 1)
    for kind in range(len(KINDS)):
        with_it = [mask for mask in range(MASKS) if mask >> kind & 1]
        wanted = times[kind] * detail[with_it].sum() if took[kind] else folded[kind]
        out[1 << kind] += max(0.0, wanted - out[with_it].sum())
    return out


def divide(found: Work, start_ns: int, end_ns: int) -> Ints:
    """Return how long each set of kinds ran in [start_ns, end_ns): nanoseconds by mask, MASKS of them.

    Element 0 is the time in which nothing ran, element COMPUTATION that of computation alone, element
    COMPUTATION | COMMUNICATION that of both at once. They add up to the length of the stretch.
    """
    begin, end = np.clip(found.start_ns, start_ns, end_ns), np.clip(found.end_ns, start_ns, end_ns)
    out = np.zeros(MASKS, dtype=np.int64)
    edges, mask = sweep(begin, end, found.kind)
    times = np.concatenate(([start_ns], edges, [end_ns]))
    np.add.at(out, np.concatenate(([0], mask)), np.diff(times))
    return out


def busy(found: Work) -> tuple[Ints, Ints]:
    """Return the stretches in which anything runs: starts and ends, disjoint and in order."""
    if not len(found):
        return found.start_ns, found.end_ns
    reach = np.maximum.accumulate(found.end_ns)
    first = np.concatenate(([True], found.start_ns[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return found.start_ns[first], reach[last]


def sweep(begin: Ints, end: Ints, kind: npt.NDArray[np.int8]) -> tuple[Ints, Ints]:
    """Return the moments at which something begins or ends, in order, and the mask of kinds that run from then on."""
    times = np.concatenate((begin, end))
    order = np.argsort(times, kind="stable")
    mask = np.zeros(len(times), dtype=np.int64)
    for k in range(len(KINDS)):
        of_kind = (kind == k).astype(np.int64)
        running = np.cumsum(np.concatenate((of_kind, -of_kind))[order])
        mask |= (running > 0).astype(np.int64) << k
    return times[order], mask
