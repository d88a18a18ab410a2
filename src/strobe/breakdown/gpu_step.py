"""One GPU in the steady steps: what it ran, what of that a step waits for, and why it was idle. Rules share it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from strobe.gpu.communication import lies_elsewhere
from strobe.gpu.copies import parts_of_name
from strobe.gpu.devices import Device, devices
from strobe.gpu.idle import COPY, DATA, HOST, SYNC, gaps
from strobe.gpu.launches import Calls, Launches, Spans, launches
from strobe.gpu.work import Work, busy, sweep
from strobe.model.kinds import GPU_PARADIGMS
from strobe.model.plugins import Evidence, Finding
from strobe.model.units import format_ns, format_number_of, format_share
from strobe.operators.labels import innermost_line, line_of_stack
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import innermost
from strobe.steps.training_activities import PROFILER_STEP
from strobe.steps.usual_steps import usual_steps
from strobe.sums.attributes import Attributes
from strobe.tables.column_arrays import Bools, Columns, Ints, interval_at, place_of
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.definition_rows import path_tree, region_rows, regions_where
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Whose fault an idle gap is. `data` belongs to the rule data.wait, `other` are waits between streams.
CAUSES = ("data", "allocation", "sync", "copy", "launch", "host", "other")
# A thread that launches one operator after the other takes less between two; more is other work (5 to 30 us is what an
# operator of PyTorch takes).
LAUNCH_GAP_NS = 100_000
_KERNEL_GAP_NS = 1_000
# A call that waits returns a little after what it waited for: the clocks differ, and the thread must wake up.
_RETURN_NS = 20_000
_OF_GAP = 0.25  # a call that is shorter than this part of a gap is not its cause
# A call that launches takes some microseconds; this long it waits for a place in a full queue.
_BLOCKED_NS = 200_000
# A repair changes what is beside it, too: gaps between kernels, caches. It may bring more than what it removes, and
# brought less in none of 90 simulated repairs (benchmarks/gpu_advice.py).
MODEL_ERROR, MODEL_ERROR_HIGH = 0.15, 0.3
_LEAST_UNSURE = 0.1  # of a step: what may be nothing must be able to be as much
_MOST_GAPS = 2_000  # whose host work is looked at
_MOST = 500_000  # activities: some seconds
WAITS = re.compile(r"(cuda|hip|cu)(Memcpy|Memset(?!.*Async)|\w*Synchronize|MemcpyWithStream)")
_ALLOCATES = re.compile(r"(cuda|hip|cu)(Malloc|Free|MemAlloc|MemFree|Host(Alloc|Register|Unregister))(?!\w*Async)")


_Places = tuple[npt.NDArray[np.uint32], Ints, Ints]  # location, start, end


class Advice(NamedTuple):
    """The texts of a Finding."""

    rule: str
    what: str
    do: str
    confidence: str


@dataclass(frozen=True)
class Gaps(Columns):
    """Times in which nothing ran because the host was late. `ended_by`: index of the activity after it.

    cause: index in CAUSES. lost_ns: the time, but for what the data took. call, path: region and call path of the call
    in which the thread was when the gap began (of the cause `host`: of what took most of it), -1 for none; waited_ns:
    how long it had been there; call_ns: its length (of the cause `host`: its time in the gap).
    """

    start_ns: Ints
    end_ns: Ints
    ended_by: Ints
    cause: Ints
    lost_ns: Ints
    call: Ints
    path: Ints
    waited_ns: Ints
    call_ns: Ints


@dataclass(frozen=True)
class GpuStep:
    """What a GPU ran in `steps` steps; of_steps: false where it is the whole run, or the steps are not its own.

    duration_ns: of these steps together, on the host, or the GPU if that is behind. step_ns: from the end of what a
    step launched to that of the next one, where these follow each other.

    work: activities in order of start; `wanted`: those that were launched in these steps. call, operator, path: as in
    `Launches`. gaps: in these steps.
    """

    trace: Trace
    device: Device
    steps: int
    of_steps: bool
    duration_ns: int
    step_ns: Ints
    work: Work
    wanted: Bools
    call: Calls
    operator: Spans
    path: Ints
    gaps: Gaps
    burst_end_ns: Ints
    burst_waited_ns: Ints

    @cached_property
    def names(self) -> list[str]:
        """Names of all regions."""
        return [each.name for each in region_rows(self.trace)]

    def named(self, pattern: re.Pattern[str]) -> Bools:
        """Return which activities have such a name."""
        found: Bools = np.array([bool(pattern.search(name)) for name in self.names], dtype=bool)[self.work.region]
        return found

    def under(self, pattern: re.Pattern[str], but_for: re.Pattern[str] | None = None) -> Bools:
        """Return which activities were launched inside of a region with such a name.

        `but_for`: without those inside of another one with this name, in turn.
        """
        parent, region = path_tree(self.trace)
        there = np.array([bool(pattern.search(name)) for name in self.names], dtype=bool)[region]
        others = np.array([bool(but_for and but_for.search(name)) for name in self.names], dtype=bool)[region]
        nearest = innermost(parent, there | others)
        inside: Bools = np.append((nearest >= 0) & there[nearest], False)[self.path]
        return inside

    def exposed_ns(self, which: Bools) -> float:
        """Return the time of these activities that the steps wait for, ns: at most so much is saved without them.

        Of the time in which nothing else runs, a burst (until the host is late) counts as far as the host waited in it.
        Where it is late without having waited, a faster kernel would only make the gap longer.
        """
        which = which & self.wanted
        if not which.any():
            return 0.0
        edges, mask = sweep(self.work.start_ns, self.work.end_ns, which.astype(np.int8))
        alone = np.diff(edges) * (mask[:-1] == 2)
        burst = np.searchsorted(self.burst_end_ns, edges[:-1], side="right")
        waited_ns = np.append(self.burst_waited_ns, np.inf)
        return float(np.minimum(np.bincount(burst, alone, len(waited_ns)), waited_ns).sum())

    def per_step(self, time_ns: float) -> float:
        """Return a time of all these steps as that of one, ns."""
        return time_ns / self.steps

    def share(self, time_ns: float) -> float:
        """Return a time of all these steps as a part of them."""
        return time_ns / max(1, self.duration_ns)

    def text(self, time_ns: float) -> str:
        """Return a time of all these steps in words: `1.2 ms (10 %) of a step`."""
        unit = "a step" if self.of_steps else "the run"
        return f"{format_ns(self.per_step(time_ns))} ({format_share(self.share(time_ns))}) of {unit}"

    def often(self, count: int) -> str:
        """Return how often something happens: `12 a step`, `3 times in 20 steps`."""
        if self.of_steps and count < self.steps:
            return f"{format_number_of(count, 'time')} in {format_number_of(self.steps, 'step')}"
        return f"{count / self.steps:.4g} {'a step' if self.of_steps else 'in all'}"

    def longest(self, which: Bools) -> int:
        """Return the index of the longest of these activities."""
        return int(np.where(which & self.wanted, self.work.end_ns - self.work.start_ns, -1).argmax())

    def finding(self, text: Advice, which: Bools, low_ns: float, high_ns: float) -> Finding:
        """Return a finding about activities, the longest as evidence; gains in ns, of all steps together."""
        at = self.longest(which)
        line = innermost_line(self.trace, int(self.path[at]))
        location, row = int(self.operator.location[at]), self.operator.row[at : at + 1]
        if not line and row[0] >= 0:
            rows = Attributes(self.trace, "operator_spans", location, ("call_stack",)).of(row)
            line = line_of_stack(rows.column("call_stack")[0].as_py() or "")[0] or ""
        work = self.work.chosen(which & self.wanted)
        return self._finding(text, line, (work.location, work.start_ns, work.end_ns), low_ns, high_ns)

    def gap_finding(self, text: Advice, which: Bools, low_ns: float, high_ns: float) -> Finding:
        """Return a finding about idle gaps, the longest as evidence; gains in ns, of all steps together."""
        own = self.gaps.chosen(which)
        line = innermost_line(self.trace, int(own.path[own.lost_ns.argmax()]))
        return self._finding(text, line, (self.work.location[own.ended_by], own.start_ns, own.end_ns), low_ns, high_ns)

    def _finding(self, text: Advice, line: str, places: _Places, low_ns: float, high_ns: float) -> Finding:
        location, start, end = places
        bounds = min(low_ns, high_ns) * (1 - MODEL_ERROR), min(high_ns * (1 + MODEL_ERROR_HIGH), self.duration_ns)
        low, high = (round(self.per_step(max(0.0, each))) * self.of_steps for each in bounds)
        evidence: tuple[Evidence, ...] = tuple(
            {"location": int(location[at]), "start_ns": int(start[at]), "duration_ns": int(end[at] - start[at])}
            for at in np.argsort(start - end, kind="stable")[:3].tolist()
        )
        # Without steps, nothing is promised, nor a little that is not sure.
        unsure = low <= 0 and high < _LEAST_UNSURE * self.per_step(self.duration_ns)
        return Finding(
            **text._asdict(), where=line, gain_low_ns=low, gain_high_ns=high, informative=not self.of_steps or unsure,
            evidence=evidence,
        )  # fmt: skip

    def attributes(self, table: str, columns: Sequence[str], which: Bools) -> Iterator[tuple[Ints, pa.Table]]:
        """Yield what a side table holds of these activities, by location: their indices, and the columns as long."""
        for location in np.unique(self.work.location[which]).tolist():
            at = np.flatnonzero(which & (self.work.location == location))
            at = at[np.argsort(self.work.row[at])]
            yield at, Attributes(self.trace, table, location, columns).of(self.work.row[at])

    def gaps_of(self, cause: str) -> Bools:
        """Return which gaps have a cause."""
        found: Bools = self.gaps.cause == CAUSES.index(cause)
        return found


@cached_on_trace
def gpu_step(trace: Trace) -> GpuStep | None:
    """Return what the busiest GPU of the main process did in its steady steps in detail; None if no GPU is known here.

    Without steps, or where an unsure loop holds less than half of the GPU's work, it is the whole run as one.
    """
    if lies_elsewhere(trace):
        return None
    usual, found = usual_steps(trace), devices(trace)
    steps = usual.steps if usual is not None else None
    own = [each for each in found if steps is None or each.process == steps.process] or found
    if not own:
        return None
    device = max(own, key=lambda each: each.spans)
    work, who, last_ns = _activities(trace, device)
    if not len(work):
        return None
    begin, end = _windows(steps if steps is not None and device.process == steps.process else None, last_ns)
    call, operator, path = who
    launched_ns = np.where(call.row >= 0, call.start_ns, work.start_ns)
    first_ns = begin[:1]
    if len(begin) > 2 and interval_at(begin, end, launched_ns[:1])[0] >= 0:
        begin, end = begin[1:], end[1:]  # why the GPU was idle before its first activity is unknown
    number = interval_at(begin, end, launched_ns)
    wanted, last_end = number >= 0, np.zeros(len(begin), dtype=np.int64)
    np.maximum.at(last_end, number[wanted], work.end_ns[wanted])
    step_ns = np.diff(last_end)[(begin[1:] == end[:-1]) & (last_end[1:] > 0) & (last_end[:-1] > 0)]
    took = [int((until - since).sum()) for since, until in (busy(work.chosen(wanted)), busy(work))]
    of_steps = len(begin) > 0 and (steps is None or steps.confidence != "low" or 2 * took[0] > took[1])
    if not of_steps:
        begin, end, wanted = work.start_ns[:1], np.array([work.end_ns.max()]), np.ones(len(work), dtype=bool)
    all_gaps, burst_end_ns, burst_waited_ns = _gaps(trace, device, work, call, path)
    in_steps = wanted[all_gaps.ended_by]
    if of_steps:  # what lies before the steps, or between them, is not known to be theirs
        since = np.maximum.accumulate(np.where(np.append(True, begin[1:] != end[:-1]), begin, 0))
        since[since == begin[0]] = first_ns[0]
        in_steps = in_steps & (all_gaps.start_ns >= since[number[all_gaps.ended_by]])
    inside = all_gaps.chosen(in_steps)
    duration_ns = max(int((end - begin).sum()), took[0])
    return GpuStep(
        trace, device, len(begin), of_steps, duration_ns, step_ns, work, wanted, call, operator, path, inside,
        burst_end_ns, burst_waited_ns,
    )  # fmt: skip


def _activities(trace: Trace, device: Device) -> tuple[Work, tuple[Calls, Spans, Ints], int]:
    """Return the first activities of a device, the calls, operators and call paths of each, and when the last began."""
    works, whose, count = list[Work](), list[Launches](), 0
    for work, who in launches(trace, device):
        works.append(work)
        whose.append(who)
        count += len(work)
        if count > _MOST:
            break
    path = np.concatenate([np.zeros(0, dtype=np.int64), *(each.path for each in whose)])
    joined = Calls.joined(each.call for each in whose), Spans.joined(each.operator for each in whose), path
    work = Work.joined(works)
    return work, joined, int(work.start_ns[-1]) if count > _MOST else 2**62


def _windows(steps: ProcessSteps | None, last_ns: int) -> tuple[Ints, Ints]:
    """Return begins and ends of the steady steps in detail that end before a moment.

    Slow ones, too, unless steps were folded: then all of the slow ones are kept, but few of the others.
    """
    if steps is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    chosen = steps.steady & steps.kept & (steps.end_ns <= last_ns)
    chosen &= ~steps.outlier | bool(steps.kept.all())
    return steps.start_ns[chosen], steps.end_ns[chosen]


def _gaps(trace: Trace, device: Device, work: Work, call: Calls, path: Ints) -> tuple[Gaps, Ints, Ints]:
    """Return gaps for which the host was late; where the bursts between them end, and how long it waited in each."""
    waiting = _Waiting(trace, np.unique(call.location[call.row >= 0]).tolist(), _of_copies_beside(trace, work, call))
    key = _key(work.location, work.row)
    in_order = np.argsort(key)
    parts = [Gaps.joined(())]
    last_ns = int(work.start_ns[-1])
    for each in takewhile(
        lambda g: not len(g.start_ns) or g.start_ns[0] <= last_ns,
        gaps(trace, device, per_stream=False, kernel_gap_ns=_KERNEL_GAP_NS),
    ):
        late = each.time_ns[[DATA, SYNC, COPY, HOST]].sum(axis=0)
        ended_by = np.append(in_order, -1)[place_of(_key(each.location, each.row), key[in_order])]
        # A call that is still on its way when the gap begins is late, too.
        at = np.flatnonzero((ended_by >= 0) & ((late > 0) | (call.end_ns[ended_by] > each.start_ns)))
        parts.append(waiting.gaps(each.start_ns[at], each.end_ns[at], ended_by[at], each.time_ns[DATA, at], call))
    found = Gaps.joined(parts)
    found = found.chosen(np.argsort(found.start_ns, kind="stable"))
    # What a copy to the GPU held up is the copy's.
    order = np.argsort(work.end_ns, kind="stable")
    before = order[np.maximum(0, np.searchsorted(work.end_ns[order], found.start_ns, side="right") - 1)]
    to_gpu = regions_where(trace, lambda r: r.role == "copy" and parts_of_name(r.name)[0] == "HtoD")
    of_copy = (found.cause == CAUSES.index("sync")) & to_gpu[work.region[before]]
    small = (found.cause == CAUSES.index("launch")) & to_gpu[work.region[before]] & to_gpu[work.region[found.ended_by]]
    found.cause[of_copy | small] = CAUSES.index("copy")
    waiting.add_host_work(found, call)
    _add_lost_lead(found)
    begin_ns = np.append(work.start_ns[:1], found.end_ns)[: len(found)]
    return found, found.start_ns, waiting.waited_ns(begin_ns, found.start_ns)


def _of_copies_beside(trace: Trace, work: Work, call: Calls) -> Ints:
    """Return the keys of calls that copy and never wait for the copy: inside of a device, or from or to pinned memory.

    CUDA Driver API, API synchronization behavior. HIP's names do not have whether memory is pinned.
    """
    inside = regions_where(trace, lambda r: r.role == "copy" and parts_of_name(r.name)[0] == "DtoD")
    pinned = regions_where(trace, lambda r: r.role == "copy" and "Pinned" in parts_of_name(r.name))
    is_async = np.append(regions_where(trace, lambda r: "Async" in r.name), False)
    beside = (inside[work.region] | (pinned[work.region] & is_async[call.region])) & (call.row >= 0)
    return np.unique(_key(call.location, call.row)[beside])


def _key(location: npt.NDArray[np.integer], row: Ints) -> Ints:
    return (location.astype(np.int64) << 40) + row


class _Waiting:
    """Calls in which launching threads wait for the GPU, or allocate its memory; one inside another does not count.

    `beside`: keys of calls that do not, in order; where one is blocked nevertheless, the queue of launches is full.
    """

    def __init__(self, trace: Trace, threads: list[int], beside: Ints) -> None:
        calls = regions_where(trace, lambda r: r.paradigm in GPU_PARADIGMS and r.role in ("function", "sync", "wait"))
        waits = regions_where(trace, lambda r: r.role in ("sync", "wait") or WAITS.match(r.name) is not None) & calls
        allocates = regions_where(trace, lambda r: _ALLOCATES.match(r.name) is not None) & calls
        self._trace, self._allocates = trace, np.append(allocates, False)
        known = waits | allocates
        self._spans: dict[int, Ints] = {}
        for thread in threads:
            parts = [np.zeros((5, 0), dtype=np.int64)]
            for spans in trace.span_batches(thread):
                region, length = spans["region"], spans["duration_ns"]
                own = known[region]
                at = np.flatnonzero(own)
                own[at] = place_of(_key(np.full(len(at), thread), spans["row"][at].astype(np.int64)), beside) < 0
                chosen = own | (calls[region] & (length >= _BLOCKED_NS))
                start = spans["start_ns"][chosen]
                columns = start, start + length[chosen], region[chosen], spans["call_path"][chosen], own[chosen]
                parts.append(np.stack([each.astype(np.int64) for each in columns]))
            found = np.concatenate(parts, axis=1)
            found = found[:, np.argsort(found[0], kind="stable")]
            outer = found[1] > np.concatenate(([-1], np.maximum.accumulate(found[1])[:-1]))
            self._spans[thread] = found[:, outer]

    def waited_ns(self, begin: Ints, end: Ints) -> Ints:
        """Return how long the threads waited, or were blocked in a launch, in each [begin, end): their sum."""
        total = np.zeros(len(begin), dtype=np.int64)
        for start_of, end_of, *_ in self._spans.values():
            if len(start_of):
                until = np.concatenate(([0], np.cumsum(end_of - start_of)))
                for time, sign in ((end, 1), (begin, -1)):
                    at = np.searchsorted(start_of, time, side="right")
                    total += sign * (until[at] - np.where(at > 0, np.maximum(0, end_of[at - 1] - time), 0))
        return total

    def gaps(self, begin: Ints, end: Ints, ended_by: Ints, data_ns: Ints, call: Calls) -> Gaps:
        """Return gaps [begin, end) with their causes."""
        count = len(begin)
        cause, (in_call, path) = np.zeros(count, dtype=np.int64), np.full((2, count), -1, dtype=np.int64)
        (waited, length), lost = np.zeros((2, count), dtype=np.int64), end - begin - data_ns
        thread = call.location[ended_by]
        for own in np.unique(thread).tolist():
            at = np.flatnonzero(thread == own)
            start_of, end_of, region_of, path_of, waits = self._spans.get(own, np.zeros((5, 0), dtype=np.int64))
            if not len(start_of):
                continue
            # The call that the thread is in when the gap begins, or that has just returned; else one that began in it.
            last = np.searchsorted(start_of, begin[at], side="right") - 1
            there = (last >= 0) & (end_of[last] >= begin[at] - _RETURN_NS) & (waits[last] > 0)
            there &= end_of[last] <= call.start_ns[ended_by[at]]
            following = np.minimum(last + 1, len(start_of) - 1)
            inside = ~there & (start_of[following] >= begin[at]) & (end_of[following] <= end[at])
            inside &= waits[following] > 0
            chosen = np.where(there, last, following)
            call_ns = (end_of - start_of)[chosen]
            known = (there | inside) & (call_ns >= _OF_GAP * lost[at])
            in_call[at[known]], path[at[known]] = region_of[chosen[known]], path_of[chosen[known]]
            length[at[known]] = call_ns[known]
            waited[at[there]] = np.maximum(0, np.minimum(begin[at], end_of[last]) - start_of[last])[there]
        cause[:] = np.where(lost < LAUNCH_GAP_NS, CAUSES.index("launch"), CAUSES.index("host"))
        cause[in_call >= 0] = CAUSES.index("sync")
        cause[self._allocates[in_call]] = CAUSES.index("allocation")
        cause[data_ns > lost] = CAUSES.index("data")
        return Gaps(begin, end, ended_by, cause, lost, in_call, path, waited, length)

    def add_host_work(self, found: Gaps, call: Calls) -> None:
        """Give the longest gaps the region that takes most of them: then they are of the cause `host`, or `allocation`.

        A gap is one of launches if what was recorded takes half of it, but nothing of that half of it by itself: these
        are the costs of Python and of the framework, however slow. So is the operator that launches what comes next,
        and code that Inductor generated: it does nothing but launch.
        """
        trace, regions = self._trace, region_rows(self._trace)
        is_call = regions_where(trace, lambda r: r.paradigm in GPU_PARADIGMS) & ~self._allocates[:-1]
        is_step = regions_where(trace, lambda r: r.name.startswith(PROFILER_STEP))
        generated = regions_where(trace, lambda r: "/torchinductor_" in (r.file or ""))
        host, sync = CAUSES.index("host"), CAUSES.index("sync")
        looked_at = (found.lost_ns >= LAUNCH_GAP_NS) & np.isin(found.cause, (host, sync))
        for at in np.argsort(-found.lost_ns * looked_at, kind="stable")[
            : min(_MOST_GAPS, int(looked_at.sum()))
        ].tolist():
            begin, end = int(found.start_ns[at]), int(found.end_ns[at])
            # The thread that launched before the gap may have handed on to another one (the backward pass) in it.
            threads = {int(call.location[max(0, found.ended_by[at] - back)]) for back in (0, 1)} - {-1}
            every = [
                own_time_in(trace.span_arrays(thread, begin, end), begin, end, is_step) for thread in sorted(threads)
            ]
            spans, own = max(every, key=lambda each: int(each[1].sum()))
            region = spans["region"]
            time_ns = np.bincount(region, own * ~is_call[region], minlength=len(regions))
            most = int(time_ns.argmax())
            mostly = 2 * int(time_ns[most]) >= found.lost_ns[at]
            if 2 * int((own * self._allocates[region]).sum()) >= found.lost_ns[at]:
                most, found.cause[at] = int((time_ns * self._allocates[:-1]).argmax()), CAUSES.index("allocation")
            elif found.cause[at] == sync and not mostly:
                continue
            elif 2 * own.sum() >= found.lost_ns[at] and (
                not mostly or most == call.operator_region[found.ended_by[at]] or generated[most]
            ):
                found.cause[at] = CAUSES.index("launch")
                continue
            else:
                found.cause[at] = host
            first = np.flatnonzero((region == most) & (own > 0))[:1]
            if len(first):
                found.call[at], found.path[at] = most, int(spans["call_path"][first[0]])
                found.call_ns[at] = int(time_ns[most])


def own_time_in(spans: SpanArrays, begin: int, end: int, without: Bools) -> tuple[SpanArrays, Ints]:
    """Return spans, and how long each takes by itself in [begin, end); 0 for regions in `without`."""
    start, parent = spans["start_ns"], spans["parent"]
    own = np.clip(np.minimum(start + spans["duration_ns"], end) - np.maximum(start, begin), 0, None)
    inner = np.flatnonzero((parent >= 0) & np.isin(parent, spans["row"]))
    np.subtract.at(own, np.searchsorted(spans["row"], parent[inner]), own[inner].copy())
    own[without[spans["region"]]] = 0
    return spans, own


def _add_lost_lead(found: Gaps) -> None:
    """Give gaps of launches to the wait before them while the host had waited longer: it would be ahead by that."""
    sync, launch, left, last = CAUSES.index("sync"), CAUSES.index("launch"), 0, -1
    for at, cause in enumerate(found.cause.tolist()):
        if cause == sync:
            left, last = max(0, left + int(found.call_ns[at] - found.lost_ns[at])), at
        elif cause == launch and 0 < found.lost_ns[at] <= left:
            left -= int(found.lost_ns[at])
            found.cause[at], found.call[at], found.path[at] = sync, found.call[last], found.path[last]
            found.call_ns[at] = found.lost_ns[at]
