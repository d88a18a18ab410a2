"""The work of a GPU in folded iterations, which is known as sums only; and the time in which all work is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import Device
from strobe.model.units import format_count
from strobe.steps.folded_time import Stretches, folded_stretches
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows, path_tree
from strobe.trace.folded import Folded
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Later than every moment of a run, ns; sums of such still fit.
_NEVER = 2**61
# So busy in the time of folded iterations, a stream has no gaps worth speaking of.
_SATURATED = 0.95


@dataclass(frozen=True)
class KnownTime:
    """Stretches of time in which all that a GPU did is in the trace: begins and ends, disjoint and in order, ns."""

    begin_ns: Ints
    end_ns: Ints

    def pieces(self, start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the known pieces of each [start_ns, end_ns): number of the stretch, begins and ends."""
        first = np.searchsorted(self.end_ns, start_ns, side="right")
        count = np.maximum(0, np.searchsorted(self.begin_ns, end_ns, side="left") - first)
        which = np.repeat(np.arange(len(start_ns)), count)
        at = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
        begin, end = np.maximum(self.begin_ns[at], start_ns[which]), np.minimum(self.end_ns[at], end_ns[which])
        there = end > begin
        return which[there], begin[there], end[there]


def known_time(trace: Trace, device: Device) -> KnownTime | None:
    """Return the time in which the work of a GPU is known; None: always.

    A kernel is folded with the iteration that launched it, and may run later. So a stretch of the host's time that was
    kept (iterations in detail, and what is outside of them) is moved as far as its last kernel reaches beyond its end:
    what ran before that had been launched before it, in an iteration like these. Where folded iterations launched more
    than their time holds, nothing is known before the first kernel of the next stretch.
    """
    if not len(folded_stretches(trace, device.process)):
        return None
    return _moved(trace, device)


@cached_on_trace
def _moved(trace: Trace, device: Device) -> KnownTime:
    folded = folded_stretches(trace, device.process)
    begin = np.concatenate(([-_NEVER], folded.end_ns))
    end = np.concatenate((folded.begin_ns, [_NEVER]))
    kept = end > begin
    begin, end = begin[kept], end[kept]
    first, last = np.full(len(begin), _NEVER), np.full(len(begin), -_NEVER)
    for location in device.locations:
        for spans in trace.span_batches(location):
            start = spans["start_ns"]
            at = np.maximum(0, np.searchsorted(begin, start, side="right") - 1)
            np.minimum.at(first, at, start)
            np.maximum.at(last, at, start + spans["duration_ns"])
    following = np.append(begin[1:], _NEVER)
    lag = np.clip(last - end, 0, following - end)
    moved = np.where(begin > -_NEVER, begin + lag, begin)
    # A GPU behind its host still runs folded launches when the next stretch begins: up to that one's first kernel.
    # Of a stretch that launched none nothing is known.
    out_end = np.where(end < _NEVER, end + lag, end)
    known_from = np.where(first < _NEVER, first, out_end)
    out_begin = np.where((begin > -_NEVER) & _is_behind(trace, device, folded), known_from, np.minimum(moved, first))
    out_begin[1:] = np.maximum(out_begin[1:], out_end[:-1])
    return KnownTime(out_begin, np.maximum(out_begin, out_end))


def _is_behind(trace: Trace, device: Device, folded: Stretches) -> bool:
    """Whether the work of folded iterations on a stream takes about as long as they did, or longer."""
    found = folded_rows(trace, device)
    if found is None or not len(found[0].location):
        return False
    took = np.bincount(found[0].location, found[0].total_ns).max()
    return bool(took >= _SATURATED * (folded.end_ns - folded.begin_ns).sum())


@dataclass(frozen=True)
class FoldedWork:
    """The work of folded iterations on a GPU, by region: executions, and the sum of their durations in ns."""

    calls: Ints
    ns: Ints


def folded_work(trace: Trace, device: Device) -> FoldedWork | None:
    """Return the work of folded iterations on a GPU; None without folded iterations."""
    found = folded_rows(trace, device)
    if found is None:
        return None
    rows, region = found
    calls, ns = (np.zeros(len(trace.regions), dtype=np.int64) for _ in range(2))
    np.add.at(calls, region, rows.count)
    np.add.at(ns, region, rows.total_ns)
    return FoldedWork(calls, ns)


def folded_rows(trace: Trace, device: Device) -> tuple[Folded, Ints] | None:
    """Return the statistics of folded iterations on a GPU, and their regions; None without folded iterations."""
    folded = trace.folded.get(device.process)
    if folded is None:
        return None
    # Of a stream's locations some have nothing in detail.
    is_stream = [
        location.kind == "stream" and location.device == device.number and location.process == device.process
        for location in location_rows(trace)
    ]
    mine = folded.chosen(np.array(is_stream, dtype=bool)[folded.location] & (folded.count > 0))
    return mine, path_tree(trace)[1][mine.call_path]


def folded_note(trace: Trace, devices: Sequence[Device]) -> str:
    """Return a sentence about the activities that a table lacks because they were folded, or ""."""
    works = [folded_work(trace, device) for device in devices]
    missing = sum(int(each.calls.sum()) for each in works if each is not None)
    if not missing:
        return ""
    whole = missing + sum(device.spans for device in devices)
    return (
        f"{format_count(missing)} of {format_count(whole)} kernels, copies and sets belong to folded steps, which are "
        "sums only: this is about the others"
    )
