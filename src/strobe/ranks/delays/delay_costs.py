"""Delay costs: what made a rank late for whom, and what that cost all others.

Source: Scalasca, Delay.MPI.pattern, DelayOps.cpp, MpiDelayOps.cpp; Boehme et al., Identifying the root causes of wait
states in large-scale parallel applications, ACM TOPC 3(2), 2016. A wait of w ns of R for S has an interval on each:
from where these two synchronised last until R began to wait, and until S came. T is the time of a call path in it
without waits, D = max(0, T on S - T on R), summed over call paths, and W what S waited in its interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strobe.ranks.collective_columns import NOBODY
from strobe.ranks.delays.sync_points import sync_points, synchronised_in_process
from strobe.ranks.delays.timelines import Causes, Sums, folded_times, parts, summed, sums, timeline
from strobe.ranks.waits.message_calls import Spans
from strobe.ranks.waits.wait_columns import Waits
from strobe.ranks.waits.wait_states import wait_states
from strobe.tables.column_arrays import Bools, Columns, Floats, Ints, rows_by
from strobe.trace.definition_rows import location_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_PARTS = ("direct_ns", "indirect_ns", "long_term_ns", "unexplained_ns")
_PASSES = 100  # of the backward replay: more than one only where waits end in the same nanosecond, or clocks are wrong


@dataclass(frozen=True)
class Costs(Columns):
    """What causes cost: a row for each wait and cause of it. wait: its number in `Delays.waits`. cause: see Causes.

    direct_ns: the wait as far as the cause delayed the awaited one. indirect_ns: as far as that one waited itself, in
    the call that is the cause. long_term_ns: what others waited because of the wait, as far as the cause delayed it.
    unexplained_ns: the rest of the wait, of an unknown cause. Of each wait direct, indirect and unexplained add up to
    it; all direct, long-term and unexplained ones to all waits. on_both: whether the waiting location has it, too.
    for_gpu: whether the cost is one of waits for and of GPUs. A wait for another rank may have rows of both kinds: it
    passes on what GPUs and their hosts waited because of it; what ranks waited is never passed on to waits for GPUs.
    """

    wait: Ints
    cause: Ints
    direct_ns: Ints
    indirect_ns: Ints
    long_term_ns: Ints
    unexplained_ns: Ints
    on_both: Bools
    for_gpu: Bools


@dataclass(frozen=True)
class Delays:
    """The causes of the waits of a trace. carried_ns: by wait, what others waited because of it.

    waits: those for another that are longer than twice the error of the clocks, by location and begin of their call.
    """

    waits: Waits
    carried_ns: Ints
    costs: Costs
    causes: Causes


@dataclass(frozen=True)
class _Intervals(Columns):
    """The intervals of waits. first, last: the waits that the location had in it are those from first up to last."""

    location: Ints
    begin_ns: Ints
    end_ns: Ints
    first: Ints
    last: Ints


@cached_on_trace
def delays(trace: Trace) -> Delays:
    """Return what waits are due to; computed once per open trace. Memory: about 400 bytes per wait and cause of it."""
    found, causes = wait_states(trace), Causes(trace)
    waits = found.waits.chosen(slice(len(found.waits) - found.threads))
    waits = waits.chosen(waits.for_another & ~waits.uncertain)
    waits = waits.chosen(np.lexsort((waits.call_ns, waits.location)))
    late, own, calls = _intervals(trace, waits)
    sides = _Intervals.joined([late, own])
    times = [_extra_time(trace, waits, causes, calls, sides, in_process=each) for each in (False, True)]
    extra, on_both = Sums.joined(each for each, _ in times), np.concatenate([each for _, each in times])
    order = np.argsort(extra.interval, kind="stable")
    return _costs(waits, causes, late, extra.chosen(order), on_both[order])


def _intervals(trace: Trace, waits: Waits) -> tuple[_Intervals, _Intervals, list[Spans]]:
    """Return the intervals of the awaited locations, those of the ones that waited, and the calls of all locations."""
    points = sync_points(trace)
    ranks = ranks_of(trace)
    first_ns = min((row.first_ns for row in location_rows(trace) if ranks[row.process] is not None), default=0)
    for_gpu, process = waits.for_gpu, np.array(processes_of_locations(trace), dtype=np.int64)[waits.location]
    in_process = synchronised_in_process(trace, waits.chosen(for_gpu))
    sides = []
    for location, other, until, of_gpus in (
        (waits.cause, waits.location, waits.cause_ns, in_process[0]),
        (waits.location, waits.cause, waits.call_ns, in_process[1]),
    ):
        begin = points.last_before(location, other, until)
        begin[for_gpu] = of_gpus
        for each in trace.folded:
            # Where GPUs waited in folded time is not known.
            (of,) = np.nonzero(for_gpu & (process == each))
            ends = np.append(NOBODY, folded_times(trace, each)[1])
            begin[of] = np.maximum(begin[of], ends[np.searchsorted(ends, until[of], side="right") - 1])
        begin = np.minimum(np.where(begin == NOBODY, first_ns, begin), until)
        first, last = np.zeros((2, len(waits)), dtype=np.int64)
        for each, of in rows_by(location):
            low, high = np.searchsorted(waits.location, [each, each + 1]).tolist()
            first[of], last[of] = (low + np.searchsorted(waits.call_ns[low:high], at[of]) for at in (begin, until))
        sides.append(_Intervals(location, begin, until, first, last))
    return sides[0], sides[1], points.calls


def _extra_time(
    trace: Trace, waits: Waits, causes: Causes, calls: list[Spans], sides: _Intervals, *, in_process: bool
) -> tuple[Sums, Bools]:
    """Return by wait and cause the D of it, where there is one; and whether the location that waited has it, too.

    Of the waits for and of GPUs, or of all others. sides: the intervals of the awaited locations, and then those of the
    waiting ones. Where one of both has only statistics of its interval, both have only what is known of folded time.
    """
    count, asked = len(waits), np.tile(waits.for_gpu == in_process, 2)
    detail = np.tile(~_folded(trace, sides).reshape(2, -1).any(axis=0), 2)
    found, present = [], [np.zeros(0, dtype=np.int64)]
    waits_of = dict(rows_by(waits.location))
    for location, own in rows_by(sides.location[asked]):
        of = np.flatnonzero(asked)[own]
        waited, start_ns = waits.chosen(waits_of.get(location, of[:0])), int(sides.begin_ns[of].min())
        times = timeline(trace, location, calls[location], waited, causes, start_ns, in_process=in_process)
        each_part = sums(times, sides.begin_ns[of], sides.end_ns[of], detail[of])
        found += [replace(each, interval=of[each.interval]) for each in each_part]
        present.append(location * (causes.unknown + 1) + np.unique(np.append(times.cause, times.coarse)))
    times_of = Sums.joined(found)
    on_late = np.where(times_of.interval < count, times_of.time_ns, -times_of.time_ns)
    extra = summed(Sums(times_of.interval % max(1, count), times_of.cause, on_late))
    extra = extra.chosen((extra.time_ns > 0) & (waits.cause != waits.location)[extra.interval])
    key = waits.location[extra.interval] * (causes.unknown + 1) + extra.cause
    return extra, np.isin(key, np.concatenate(present)) | causes.is_before(extra.cause)


def _folded(trace: Trace, intervals: _Intervals) -> Bools:
    """Return which intervals are not wholly in detail."""
    process = np.array(processes_of_locations(trace), dtype=np.int64)[intervals.location]
    out = np.zeros(len(intervals), dtype=bool)
    for each in trace.folded:
        begin, end = folded_times(trace, each)
        (of,) = np.nonzero(process == each)
        next_one = np.searchsorted(end, intervals.begin_ns[of], side="right")
        out[of] = np.append(begin, np.iinfo(np.int64).max)[next_one] < intervals.end_ns[of]
    return out


def _costs(waits: Waits, causes: Causes, late: _Intervals, extra: Sums, on_both: Bools) -> Delays:
    """Return the costs of D and W of each wait."""
    inside_ns = _passed_on(waits)
    until = [np.append(0, np.cumsum(each)) for each in inside_ns]
    between, in_process = (each[late.last] - each[late.first] for each in until)
    waited = np.where(waits.cause != waits.location, np.where(waits.for_gpu, in_process, between), 0)
    delayed = np.zeros(len(waits), dtype=np.int64)
    np.add.at(delayed, extra.interval, extra.time_ns)
    whole = (delayed + waited).astype(np.float64)
    explained = np.minimum(waits.wait_ns, delayed + waited)
    direct = np.rint(explained * (delayed / np.maximum(1, whole))).astype(np.int64)
    indirect = explained - direct
    own = _inside(waits, late, causes.of(waits.call_path), indirect > 0)
    direct_of, indirect_of = _shared(extra, direct), _shared(own, indirect)
    parts_of, all_carried = list[Costs](), np.zeros(len(waits), dtype=np.int64)

    def add(for_gpu: bool, wait: Ints, cause: Ints, on_both: Bools | bool = False, **columns: Ints) -> None:
        nothing = {name: np.zeros(len(wait), dtype=np.int64) for name in _PARTS}
        flags = {"on_both": np.full(len(wait), on_both), "for_gpu": np.full(len(wait), for_gpu)}
        parts_of.append(Costs(wait, cause, **(nothing | columns | flags)))

    for for_gpu in (False, True):
        counts = waits.for_gpu == for_gpu
        carried = _replayed(waits, late, delayed, waited, np.where(counts, indirect, 0))
        all_carried += np.rint(carried).astype(np.int64)
        on, lost = carried / np.maximum(1, whole), np.where(whole > 0, 0, carried)
        (rest,) = np.nonzero((counts & (waits.wait_ns > explained)) | (lost > 0))
        amounts = np.concatenate((on[extra.interval] * extra.time_ns, lost[rest]))
        long_term = _whole(amounts, int(indirect[counts].sum()))
        of_extra, of_rest = long_term[: len(extra)], long_term[len(extra) :]
        (at,) = np.nonzero(counts[extra.interval] | (of_extra > 0))
        now = (direct_of * counts[extra.interval])[at]
        add(for_gpu, extra.interval[at], extra.cause[at], on_both[at], direct_ns=now, long_term_ns=of_extra[at])
        (at,) = np.nonzero(counts[own.interval])
        add(for_gpu, own.interval[at], own.cause[at], indirect_ns=indirect_of[at])
        unexplained = ((waits.wait_ns - explained) * counts)[rest]
        unknown = np.full(len(rest), causes.unknown)
        add(for_gpu, rest, unknown, long_term_ns=of_rest, unexplained_ns=unexplained)
    return Delays(waits, all_carried, Costs.joined(parts_of), causes)


def _passed_on(waits: Waits) -> tuple[Ints, Ints]:
    """Return how long each wait counts among those that an awaited rank had, and that an awaited GPU or host had."""
    return np.where(waits.for_gpu, 0, waits.wait_ns), waits.wait_ns


def _replayed(waits: Waits, late: _Intervals, delayed: Ints, waited: Ints, indirect: Ints) -> Floats:
    """Return what others waited because of each wait: K, ns. Backward: a wait hands what it costs to those before it.

    Of K of a wait, those in its interval inherit in proportion what is not due to D; and its indirect part.
    """
    passed_on = [each.astype(np.float64) for each in _passed_on(waits)]
    carried, new = np.zeros((2, len(waits)))
    share = np.where(waited > 0, 1 / np.maximum(1, delayed + waited), 0)
    rate = indirect / np.maximum(1, waited)
    (some,) = np.nonzero(waited > 0)
    order = some[np.lexsort((waits.call_ns[some], (waits.call_ns + waits.wait_ns)[some]))[::-1]]
    for _ in range(_PASSES):
        columns = (order, late.first[order], late.last[order], share[order], rate[order], waits.for_gpu[order])
        for at, first, last, of_carried, of_own, for_gpu in zip(*(each.tolist() for each in columns), strict=True):
            wait_ns, on = passed_on[for_gpu], new[at]
            carried[at] += on
            new[at] = 0
            inherited = of_own + on * of_carried
            if last == first + 1:  # most often, and in a fifth of the time of a slice
                new[first] += wait_ns[first] * inherited
            else:
                new[first:last] += wait_ns[first:last] * inherited
        rate[:] = 0
        order = order[new[order] > 0]
        if not len(order):
            break
    return np.asarray(carried + new)


def _inside(waits: Waits, late: _Intervals, cause: Ints, of: Bools) -> Sums:
    """Return by wait, of those that are wanted, how long the awaited location itself waited, in which calls."""
    passed_on = np.stack(_passed_on(waits))
    count = np.where(of, late.last - late.first, 0)
    found = []
    for part in parts(count):
        which = np.repeat(part, count[part])
        at = late.first[which] + np.arange(len(which)) - np.repeat(np.cumsum(count[part]) - count[part], count[part])
        time_ns = passed_on[waits.for_gpu[which].astype(np.int64), at]
        found.append(summed(Sums(which, cause[at], time_ns).chosen(time_ns > 0)))
    return Sums.joined(found)


def _shared(shares: Sums, amount: Ints) -> Ints:
    """Return the amount of each interval in whole ns by the shares of its causes, which are in order of interval."""
    begin = np.flatnonzero(np.diff(shares.interval, prepend=-1))
    if not len(begin):
        return shares.time_ns
    total = np.add.reduceat(shares.time_ns, begin)
    until = np.cumsum(shares.time_ns)
    count = np.diff(begin, append=len(shares))
    until -= np.repeat(until[begin] - shares.time_ns[begin], count)
    reached = np.rint(until / np.repeat(total, count) * amount[shares.interval]).astype(np.int64)
    before = np.append(0, reached[:-1])
    before[begin] = 0
    return np.asarray(reached - before)


def _whole(amounts: Floats, total: int) -> Ints:
    """Return amounts as whole numbers that add up to the total, which they do but for rounding."""
    until = np.cumsum(amounts)
    if not total or not until[-1]:
        return np.zeros(len(amounts), dtype=np.int64)
    return np.asarray(np.diff(np.rint(until * (total / until[-1])).astype(np.int64), prepend=0))
