"""Why GPUs were idle: every gap between activities, and what the host did meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from strobe.gpu.devices import Device, streams_of
from strobe.gpu.folded_work import known_time
from strobe.gpu.launches import launches
from strobe.gpu.work import sweep
from strobe.model.kinds import GPU_PARADIGMS
from strobe.steps.batch_makers import making_regions
from strobe.steps.folded_time import folded_stretches
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

# Why a GPU (or a stream) waits for its next activity. The first four: the host had not launched it yet.
CAUSES = ("data", "sync", "copy", "host", "kernel", "other")
DATA, SYNC, COPY, HOST, KERNEL, OTHER = range(6)
# Stands for the time of a launch that is unknown.
NO_CALL = np.iinfo(np.int64).min
# A gap that is longer than this between two launched kernels is not the GPU's own.
KERNEL_GAP_NS = 30_000
# A kernel that was launched onto an idle GPU begins after some 10 us. Later, it waits for something.
_HELD_NS = 1_000_000
_SLOW_COPY = re.compile(r"(cuda|hip|cu)Memcpy(?!.*Async)")


@dataclass(frozen=True)
class Gaps:
    """Gaps between activities: equally long columns. `time_ns[k]`: the part of each gap that CAUSES[k] takes.

    `location`, `row`: the activity that ends the gap. `key`: 0, or the number of its stream's location. queued_ns: of
    each gap, the time for which that activity had been launched.
    """

    key: Ints
    start_ns: Ints
    end_ns: Ints
    location: Ints
    row: Ints
    time_ns: Ints  # (causes, gaps)
    queued_ns: Ints

    @property
    def cause(self) -> Ints:
        """The cause that takes most of each gap."""
        most: Ints = self.time_ns.argmax(axis=0)
        return most


def gaps(trace: Trace, device: Device, *, per_stream: bool, kernel_gap_ns: int) -> Iterator[Gaps]:
    """Yield the gaps of a device, or of each of its streams, stretch by stretch.

    A gap lies between the last end so far and the start of the next activity. Where the call that launched that
    activity began after the gap had, the host was late: what the launching thread did until then (waiting for data, for
    the GPU, in a copy, anything else) takes its part of the gap, and what follows the call is the host's.
    If the launch came before, the gap is the GPU's own if shorter than `kernel_gap_ns` (one kernel after the other);
    else, or if the launch is unknown, it is `other` (mostly waits between streams). The sums of the first four are
    Holistic Trace Analysis' `host_wait`. Of gaps that reach into the time of folded iterations only the known time
    (`known_time`) counts, each piece as a gap. A gap does not count if its activity had been launched before it, behind
    folded iterations: their launches ran in it.
    """
    stream_of = streams_of(trace, device) if per_stream else {}
    reach: dict[int, int] = {}  # the last end so far, by stream
    launched: dict[int, int] = {}  # the latest launch so far
    folded = folded_stretches(trace, device.process)
    host, known = HostWork(trace), known_time(trace, device)
    for found, who in launches(trace, device):
        where = found.location.astype(np.int64)
        keys = np.vectorize(stream_of.__getitem__, otypes=[np.int64])(where) if per_stream else np.zeros_like(where)
        for key in np.unique(keys).tolist():
            (at,) = np.nonzero(keys == key)
            start, end = found.start_ns[at], found.end_ns[at]
            before = np.maximum.accumulate(np.concatenate(([reach.get(key, int(start[0]))], end)))
            reach[key] = int(before[-1])
            idle = start > before[:-1]
            called = np.where(who.call.location[at] >= 0, who.call.start_ns[at], NO_CALL)
            if len(folded):
                at_ns = np.where(called == NO_CALL, start, called)
                latest = np.maximum.accumulate(np.concatenate(([launched.get(key, int(at_ns[0]))], at_ns)))
                launched[key] = int(latest[-1])
                idle &= (np.diff(folded.before(latest)) == 0) | (called == NO_CALL) | (called > before[:-1])
            at, begin, start, called = at[idle], before[:-1][idle], start[idle], called[idle]
            returned = who.call.end_ns[at]
            if known is not None:
                gap, begin, until = known.pieces(begin, start)
                # What follows such a piece was folded: it had not been launched by then.
                called = np.where((until < start[gap]) & (called[gap] != NO_CALL), until, called[gap])
                at, start, returned = at[gap], until, returned[gap]
            time = host.causes(begin, start, who.call.location[at], called, kernel_gap_ns)
            queued = np.where(called == NO_CALL, 0, np.maximum(0, start - np.maximum(begin, returned)))
            yield Gaps(np.full(len(at), key), begin, start, where[at], found.row[at], time, queued)


class LongestGap(NamedTuple):
    """The longest gap of a cause, and the activity that ended it: the longer of two is the greater."""

    longest_ns: int
    start_ns: int
    location: int
    row: int


@dataclass
class IdleSums:
    """Gaps summed by cause (CAUSES): their time, how many have most of theirs by it, and the longest of these.

    held_ns: the time for which work was launched and did not begin, of gaps in which that is long.
    """

    time_ns: Floats = field(default_factory=lambda: np.zeros(len(CAUSES)))
    gaps: Ints = field(default_factory=lambda: np.zeros(len(CAUSES), dtype=np.int64))
    longest: dict[int, LongestGap] = field(default_factory=dict)
    held_ns: float = 0.0


def idle_sums(
    trace: Trace,
    device: Device,
    *,
    per_stream: bool = False,
    kernel_gap_ns: int = KERNEL_GAP_NS,
    weights: Callable[[Ints], Floats] | None = None,
) -> dict[int, IdleSums]:
    """Return the sums of a device, or of each of its streams by the number of its location.

    weights: how many gaps each stands for, by their ends; 0: it does not count.
    """
    sums: dict[int, IdleSums] = {}
    for found in gaps(trace, device, per_stream=per_stream, kernel_gap_ns=kernel_gap_ns):
        weight = np.ones(len(found.end_ns)) if weights is None else weights(found.end_ns)
        for key in np.unique(found.key[weight > 0]).tolist():
            own, of_key = (found.key == key) & (weight > 0), sums.setdefault(key, IdleSums())
            of_key.time_ns += (found.time_ns * (weight * own)).sum(axis=1)
            of_key.held_ns += float((found.queued_ns * weight)[own & (found.queued_ns >= _HELD_NS)].sum())
            of_key.gaps += np.bincount(found.cause[own], minlength=len(CAUSES))
            for cause in np.unique(found.cause[own]).tolist():
                at = np.flatnonzero(own & (found.cause == cause))
                at = at[np.argmax((found.end_ns - found.start_ns)[at])]
                start = int(found.start_ns[at])
                one = LongestGap(int(found.end_ns[at]) - start, start, int(found.location[at]), int(found.row[at]))
                of_key.longest[cause] = max(of_key.longest.get(cause, one), one)
    return sums


class HostWork:
    """What keeps threads from launching: waiting for data, waiting for the GPU, copying."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        kinds, makes = [], making_regions(trace)
        for region in region_rows(trace):
            gpu = region.paradigm in GPU_PARADIGMS
            if region.group == "data" or makes[region.region]:
                kinds.append(DATA)
            elif gpu and region.role in ("sync", "wait"):
                kinds.append(SYNC)
            else:
                kinds.append(COPY if gpu and _SLOW_COPY.match(region.name) else -1)
        self._kind = np.array(kinds, dtype=np.int8)

    def causes(self, begin: Ints, end: Ints, thread: Ints, called: Ints, kernel_gap_ns: int) -> Ints:
        """Return the parts of gaps [begin, end) that each cause takes: (causes, gaps), by the rule of `gaps`.

        thread, called: on which thread the activity after each gap was launched, and when; NO_CALL if unknown.
        """
        time = np.zeros((len(CAUSES), len(begin)), dtype=np.int64)
        known = called != NO_CALL
        late = known & (called > begin)
        near = known & ~late & (end - begin < kernel_gap_ns)
        rest = ~late & ~near
        for cause, which in ((HOST, late), (KERNEL, near), (OTHER, rest)):
            time[cause, which] = (end - begin)[which]
        for number in np.unique(thread[late]).tolist():
            (own,) = np.nonzero(late & (thread == number))
            times = self.did(number, begin[own], np.minimum(called[own], end[own]))
            time[DATA : COPY + 1, own] = times
            time[HOST, own] -= times.sum(axis=0)
        return time

    def did(self, thread: int, begin: Ints, end: Ints) -> Ints:
        """Return the time that each of three causes takes in every [begin, end): of several at once, the first."""
        spans = self._trace.span_arrays(thread, int(begin.min()) - 1, int(end.max()) + 1)
        kind = self._kind[spans["region"]]
        chosen = kind >= 0
        start = spans["start_ns"][chosen]
        edges, mask = sweep(start, start + spans["duration_ns"][chosen], kind[chosen])
        if not len(edges):
            return np.zeros((3, len(begin)), dtype=np.int64)
        # Of a set of causes the first one counts: the lowest bit.
        lowest = mask & -mask
        out = []
        for cause in (DATA, SYNC, COPY):
            runs = lowest == 1 << cause
            until = np.concatenate(([0], np.cumsum(np.diff(edges) * runs[:-1])))
            out.append(_until(end, edges, runs, until) - _until(begin, edges, runs, until))
        return np.stack(out)


def _until(time: Ints, edges: Ints, runs: Bools, until: Ints) -> Ints:
    """Return how long a cause had run by each time; `until`: the same at the edges."""
    at = np.searchsorted(edges, time, side="right") - 1
    inside = np.maximum(at, 0)
    return np.where(at < 0, 0, until[inside] + (time - edges[inside]) * runs[inside])
