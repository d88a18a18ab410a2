"""Waits of threads for work of GPUs, of streams for events of other streams, and of GPUs for launches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from strobe.gpu.devices import Device, devices
from strobe.ranks.collective_columns import NOBODY
from strobe.ranks.critical_path.gpu_edges import (
    JITTER_NS,
    Activities,
    Calls,
    activities_of,
    awaited_by_calls,
    awaited_by_streams,
    before_in_stream,
    calls_of,
    syncs_of,
)
from strobe.ranks.critical_path.longest_path import Builder
from strobe.ranks.critical_path.thread_edges import chain
from strobe.ranks.waits.wait_columns import Side, Waits, longest_of_calls, waits_of_calls
from strobe.steps.folded_time import Stretches, folded_stretches
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import threads_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_STRETCH = 1 << 19  # spans that are looked at together: more than a GPU can be behind


@cached_on_trace
def gpu_waits(trace: Trace) -> Waits:
    """Return the waits for and of GPUs that have their spans in the trace, by the rules of the critical path.

    late_gpu: min(end of the last work that a call waits for, L) - E; that work is `kernel`, the stream that ran it the
    cause. Time before a copy in which its stream did nothing is not counted: the call prepared it. late_stream: from
    when some work was launched, and the work before it in the stream was over, until the end of the work that an event
    of another stream stands for; the call path is that of what waited. late_host: from when a GPU was done with all it
    had begun until a thread launched what it did next, on the stream of that; not where iterations were folded in it.
    """
    parts = []
    for process in sorted({each.process for each in devices(trace)}):
        own, threads = [each for each in devices(trace) if each.process == process], threads_of(trace, process)
        spans = sum(each.span_count for each in threads) + sum(each.spans for each in own)
        begin = min([each.first_ns for each in threads] + [each.first_ns for each in own])
        end = max([each.last_ns for each in threads] + [each.last_ns for each in own]) + 1
        for first, last in pairwise(np.linspace(begin, end, spans // _STRETCH + 2).astype(np.int64).tolist()):
            # With what ran beside it, for calls that begin in a stretch may wait for what is not in it.
            beside = last - first if spans >= _STRETCH else 0
            for waits in _in_window(trace, process, own, first - beside, last + beside):
                parts.append(waits.chosen((waits.call_ns >= first) & (waits.call_ns < last)))
    return Waits.joined(parts)


def _in_window(trace: Trace, process: int, own: list[Device], start_ns: int, end_ns: int) -> Iterator[Waits]:
    builder = Builder()
    threads = [at for at in threads_of(trace, process) if at.first_ns < end_ns and at.last_ns > start_ns]
    chains = [chain(trace, builder, at.location, start_ns, end_ns, main=False) for at in threads]
    calls = calls_of(trace, chains)
    work = activities_of(trace, builder, own, calls, start_ns, end_ns, whole=True)
    syncs = syncs_of(trace, own, calls, start_ns, end_ns)
    before_ns = np.append(work.end_ns, start_ns)[before_in_stream(work)]
    for number, each in enumerate(chains):
        start, path = each.spans["start_ns"], each.spans["call_path"].astype(np.int64)
        until = start + each.spans["duration_ns"]
        found = list(awaited_by_calls(trace, each.spans, until, number, calls, work, syncs))
        span, at = (np.concatenate(side) for side in zip(*found, strict=True))
        known = at >= 0
        known[known] = _outermost(start[span[known]], until[span[known]])
        span, at = span[known], at[known]
        waiter = Side(np.full(len(span), each.location), start[span], start[span], until[span], path[span])
        copies = (np.append(calls.chain, -1)[work.call[at]] == number) & (
            np.append(calls.span, -1)[work.call[at]] == span
        )
        idle_ns = np.where(copies, np.maximum(0, work.start_ns[at] - np.maximum(start[span], before_ns[at])), 0)
        yield _waits("late_gpu", waiter, idle_ns, work, at, JITTER_NS)
    awaited = awaited_by_streams(calls, work, syncs)
    (at,) = np.nonzero(awaited >= 0)
    launch_ns = np.append(calls.start_ns, start_ns)[work.call[at]]  # -1, an unknown one, is the last entry
    ready = np.maximum(before_ns[at], launch_ns)
    waiter = Side(work.location[at], ready, ready, work.start_ns[at], work.call_path[at])
    yield _waits("late_stream", waiter, np.zeros_like(ready), work, awaited[at], 0)
    folded = folded_stretches(trace, process)
    for device in own:
        yield _late_hosts(work.chosen(np.isin(work.location, device.locations)), calls, folded)


def _late_hosts(work: Activities, calls: Calls, folded: Stretches) -> Waits:
    """Return the waits of a GPU for launches."""
    done_ns = np.maximum.accumulate(np.append(work.start_ns[:1], work.end_ns))[:-1]
    launch = calls.or_missing(work.call)
    launch_ns = np.where(work.call >= 0, launch.start_ns, NOBODY)
    until = np.minimum(launch_ns, work.start_ns)
    (at,) = np.nonzero((until > done_ns) & (folded.before(done_ns) == folded.before(until)))
    waiter = Side(work.location[at], done_ns[at], done_ns[at], work.start_ns[at], work.call_path[at])
    none = np.zeros_like(at)
    other = Side(launch.location[at], none, none, none, none)
    found = waits_of_calls("late_host", waiter, other, until[at], launch_ns[at])
    found.error_ns[:] = JITTER_NS
    return found


def _outermost(start: Ints, until: Ints) -> Bools:
    """Return which spans of a thread are in no other one."""
    order = np.lexsort((-until, start))
    reach = np.maximum.accumulate(until[order])
    out = np.ones(len(start), dtype=bool)
    out[order[1:]] = (until[order[1:]] > reach[:-1]) | (np.diff(start[order]) == 0)
    return out


def _waits(state: str, waiter: Side, idle_ns: Ints, work: Activities, awaited: Ints, error_ns: int) -> Waits:
    """Return the longest wait of each call for the end of some work, less idle_ns."""
    none, ends = np.zeros(len(waiter), dtype=np.int64), work.end_ns[awaited]
    other = Side(work.location[awaited], none, none, none, none)
    found = waits_of_calls(state, waiter, other, np.minimum(ends, waiter.end_ns) - idle_ns, ends)
    found.kernel[:], found.error_ns[:] = work.region[awaited], error_ns
    found = found.chosen(found.wait_ns > 0)
    return found.chosen(longest_of_calls(found))
