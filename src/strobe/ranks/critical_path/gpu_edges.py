"""The work of GPUs as moments and edges of the critical path: its launches, its waits, and those of the host for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.gpu.devices import Device, beside_streams, streams_of
from strobe.gpu.work import WorkNumbers, beginning
from strobe.model.kinds import GPU_PARADIGMS
from strobe.ranks.critical_path.longest_path import COMMUNICATION, COMPUTATION, COPY, LAUNCH, QUEUE, SYNC, Builder
from strobe.ranks.critical_path.thread_edges import Chain
from strobe.sums.attributes import Attributes, integers
from strobe.tables.column_arrays import Bools, Columns, Ints, place_of
from strobe.trace.definition_rows import Region, location_rows, regions_where
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

_NEVER = -(2**62)
# Phases of moments, see Builder.
_END, _START = 0, 1
# A kernel that begins later than this after its launch and after the one before it in its stream waited for another
# stream; a launch takes about 5 us, and the next kernel of a stream 1 us.
_SOON_NS = 30_000
JITTER_NS = 5_000  # by which times of a device may be wrong on the clock of the host
# A GPU is behind the host by at most this many times the window: a stream takes 1024 launches, then calls block.
_LATE = 64
# A thread that launches something and then does nothing else until it is done spins for it: the flag that it reads is
# set by the end of the work, to within this time and this part of the stretch. A short stretch ends then by chance.
_SPIN_NS = 100_000
_SPIN_PART = 50
_SPIN_LEAST_NS = 500_000
_KIND = np.array([COMPUTATION, COMMUNICATION, COPY])


@dataclass(frozen=True)
class Calls(Columns):
    """Calls of CUDA or HIP in order of their correlation: which thread, which of its spans, when and how it began."""

    correlation: Ints
    chain: Ints
    span: Ints
    start_ns: Ints
    node: Ints
    location: Ints
    row: Ints
    region: Ints
    call_path: Ints

    def find(self, correlation: Ints) -> Ints:
        """Return the place of the call with each correlation, -1 if there is none."""
        return place_of(correlation, self.correlation)


@dataclass(frozen=True)
class _Launched(Columns):
    """Work of GPUs. `call`: place of the launching call in `Calls`, -1 if unknown. `stream`: see `streams_of`."""

    location: Ints
    row: Ints
    region: Ints
    start_ns: Ints
    end_ns: Ints
    kind: Ints
    stream: Ints
    call: Ints


@dataclass(frozen=True)
class Activities(_Launched):
    """Work of GPUs in order of start.

    `free_ns`: when the stream was done with the launches from before the window that it ran before the activity.
    `begins`, `ends`: nodes.
    """

    call_path: Ints
    free_ns: Ints
    begins: Ints
    ends: Ints


def calls_of(trace: Trace, chains: list[Chain]) -> Calls:
    """Return the calls of the threads that have a correlation; of several with the same the outermost."""
    parts: list[Calls] = []
    for number, each in enumerate(chains):
        rows = each.spans["row"]
        correlation = integers(Attributes(trace, "call_spans", each.location, ("correlation",)).of(rows).column(1))
        (span,) = np.nonzero(correlation > 0)
        begins, (chain, location) = each.begins[span], (np.full(len(span), k) for k in (number, each.location))
        of_span = (each.spans[name][span].astype(np.int64) for name in ("row", "region", "call_path"))
        start, node = each.time_ns[begins], each.node[begins]
        parts.append(Calls(correlation[span], chain, span, start, node, location, *of_span))
    calls = Calls.joined(parts)
    calls = calls.chosen(np.lexsort((calls.start_ns, calls.correlation)))
    return calls.chosen(np.diff(calls.correlation, prepend=-1) > 0)


def activities_of(
    trace: Trace, builder: Builder, devices: list[Device], calls: Calls, start_ns: int, end_ns: int, *, whole: bool
) -> Activities:
    """Return what the calls launched, however late it ran; of a `whole` run, or if they launched nothing, all that
    begins in the window."""
    work = _Launched.joined(part for device in devices for part in _launched(trace, device, calls, start_ns, end_ns))
    launched = work.call >= 0
    chosen = launched if launched.any() and not whole else work.start_ns < end_ns
    free = _free(work, chosen)
    work = work.chosen(chosen)
    order = np.argsort(work.start_ns, kind="stable")
    work, free = work.chosen(order), free[order]
    paths = np.full(len(work), -1, dtype=np.int64)
    for at in np.unique(work.location).tolist():
        own = work.location == at
        spans = trace.span_arrays(at, int(work.start_ns[own].min()) - 1, int(work.end_ns[own].max()) + 1)
        paths[own] = spans["call_path"][np.searchsorted(spans["row"], work.row[own])]
    begins = builder.moments(work.start_ns, _START)
    ends = builder.moments(work.end_ns, np.where(work.end_ns > work.start_ns, _END, _START))
    columns = {**vars(work), "kind": _KIND[work.kind]}
    return Activities(**columns, call_path=paths, free_ns=free, begins=begins, ends=ends)


def _launched(trace: Trace, device: Device, calls: Calls, start_ns: int, end_ns: int) -> Iterator[_Launched]:
    """Yield what begins from `start_ns` on, until nothing is left that was launched before `end_ns`.

    A GPU may be late by any time: so each stretch is as long as all before it, until one holds none of it.
    """
    numbers, stream_of = WorkNumbers(trace, device, ("correlation",)), streams_of(trace, device)
    any_launched, begin, end = False, start_ns, end_ns
    while begin <= device.last_ns:
        found = beginning(trace, device, begin, end)
        columns = {name: values.astype(np.int64) for name, values in vars(found).items()}
        stream = np.array([stream_of[at] for at in found.location.tolist()], dtype=np.int64)
        work = _Launched(**columns, stream=stream, call=calls.find(*numbers.of(found)))
        yield work
        launched = bool((work.call >= 0).any())
        if (any_launched and not launched) or end - start_ns > _LATE * (end_ns - start_ns):
            break
        any_launched |= launched
        begin, end = end, end + (end - start_ns)


def _free(work: _Launched, chosen: Bools) -> Ints:
    """Return, for those chosen, when the last of the others in the stream was done before them; long ago: none was."""
    out = np.full(len(work), _NEVER, dtype=np.int64)
    for stream in np.unique(work.stream).tolist():
        own = work.stream == stream
        ends = np.concatenate(([_NEVER], np.sort(work.end_ns[own & ~chosen])))
        out[own] = ends[np.searchsorted(ends, work.start_ns[own], side="right") - 1]
    return out[chosen]


@dataclass(frozen=True)
class Syncs(Columns):
    """Waits that the driver recorded.

    The calls that waited and that recorded the event waited for (places in `Calls`, -1: unknown), the stream that
    waited, and the one that was waited for (locations, -1: none or all).
    """

    call: Ints
    record: Ints
    stream: Ints
    awaited: Ints
    of_stream: Ints  # 1: a stream waits for an event; 0: a thread waits


def syncs_of(trace: Trace, devices: list[Device], calls: Calls, start_ns: int, end_ns: int) -> Syncs:
    """Return the waits of the calls that the driver recorded; none if the profile lacks them."""
    threads = [each.thread_id for each in location_rows(trace)]
    parts: list[Syncs] = []
    for device in devices:
        stream_of = {threads[at]: at for at in sorted(device.locations, reverse=True)}
        for location in (*device.locations, *beside_streams(trace, device)):
            spans = trace.span_arrays(location, start_ns - 1, end_ns)
            columns = ("correlation", "sync_kind", "stream", "wait_on_stream", "wait_on_correlation")
            table = Attributes(trace, "sync_spans", location, columns).of(spans["row"])
            call = calls.find(integers(table.column("correlation")))
            (at,) = np.nonzero(call >= 0)
            if not len(at):
                continue
            kinds = [str(kind).lower() for kind in table.column("sync_kind").take(at).to_pylist()]
            stream, on = (
                np.array([stream_of.get(number, -1) for number in integers(table.column(name))[at].tolist()])
                for name in ("stream", "wait_on_stream")
            )
            context, event, of_stream = (
                np.array([word in kind for kind in kinds], dtype=bool) for word in ("context", "event", "wait")
            )
            record = calls.find(integers(table.column("wait_on_correlation"))[at])
            awaited = np.where(event, on, np.where(context, -1, stream))
            parts.append(Syncs(call[at], record, stream, awaited, of_stream.astype(np.int64)))
    return Syncs.joined(parts)


def in_order(builder: Builder, calls: Calls, work: Activities, syncs: Syncs) -> Activities:
    """Return the activities, none of which begins before the end of what its stream had to wait for.

    Times of a device are converted to those of the host, with errors of ns to some us: an activity may seem to begin a
    moment before the event that it waited for.
    """
    until = np.minimum(_ends(work, awaited_by_streams(calls, work, syncs)), work.end_ns)
    late = (until > work.start_ns) & (until - work.start_ns <= JITTER_NS)
    if not late.any():
        return work
    start = np.where(late, until, work.start_ns)
    return replace(work, start_ns=start, begins=builder.moments(start, _START))


def add_edges(
    trace: Trace, builder: Builder, chains: list[Chain], calls: Calls, work: Activities, syncs: Syncs, early: Bools
) -> Ints:
    """Add the edges of activities: their own time, and from all that they waited for; and add the waits of threads.

    Return the moments of those that waited last for work from before the window, whose time does not belong to it.

    An activity waits for its launch, the activity before it in its stream, and the awaited activity of a
    synchronisation between streams; if all of these were long before, for the last activity of any stream of the
    process, if that has just ended. The one that came last has the time until the start. `early`: a collective that
    another rank joined later: its end waits for that.
    """
    none = np.full(len(work), -1, dtype=np.int64)
    own = np.where(early, 0, work.end_ns - work.start_ns)
    builder.edges(work.begins, work.ends, own, work.kind, work.location, work.row, work.region,
                  work.call_path)  # fmt: skip
    before, awaited = before_in_stream(work), awaited_by_streams(calls, work, syncs)
    launch = calls.or_missing(work.call)
    launch_ns = np.where(work.call >= 0, launch.start_ns, _NEVER)
    latest = np.maximum.reduce([launch_ns, work.free_ns, _ends(work, before), _ends(work, awaited)])
    other = _last_ended(work, work.start_ns)
    ended = _ends(work, other)
    other[(work.start_ns - latest <= _SOON_NS) | (work.start_ns - ended > _SOON_NS) | (ended <= latest)] = -1
    activity = work.location, work.row, work.region, none
    waits: list[tuple[int, Ints, Ints, Sequence[Ints]]] = [
        (LAUNCH, launch.node, launch_ns, (launch.location, launch.row, launch.region, launch.call_path))
    ]
    for kind, source in ((QUEUE, before), (SYNC, awaited), (SYNC, other)):
        waits.append((kind, _nodes(work, source), _ends(work, source), activity))
    times = np.stack([source_ns for _, _, source_ns, _ in waits])
    times[times > work.start_ns] = _NEVER  # clocks that differ
    last = times.argmax(axis=0)
    for number, (kind, source, _, whose) in enumerate(waits):
        weight = np.where(last == number, work.start_ns - np.maximum(times[number], work.free_ns), 0)
        source = np.where(times[number] > _NEVER, source, -1)
        builder.edges(source, work.begins, weight, kind, *whose)
    _host_waits(trace, chains, calls, work, syncs)
    left_out: Ints = work.begins[work.free_ns > times.max(axis=0)]
    return left_out


def _ends(work: Activities, at: Ints) -> Ints:
    """Return the ends of activities; long ago for -1."""
    return np.append(work.end_ns, _NEVER)[at]


def _nodes(work: Activities, at: Ints) -> Ints:
    """Return the nodes of the ends of activities; -1 for -1."""
    return np.append(work.ends, -1)[at]


def _last_ended(work: Activities, time_ns: Ints, among: Ints | None = None) -> Ints:
    """Return the activity (of those `among`) that ended last until each time, -1 if none did."""
    among = np.arange(len(work)) if among is None else among
    order = among[np.argsort(work.end_ns[among], kind="stable")]
    return np.append(order, -1)[np.searchsorted(work.end_ns[order], time_ns, side="right") - 1]


def before_in_stream(work: Activities) -> Ints:
    """Return the activity that ended last before each began, in its stream; -1 if none did."""
    out = np.full(len(work), -1, dtype=np.int64)
    for stream in np.unique(work.stream).tolist():
        (own,) = np.nonzero(work.stream == stream)
        found = _last_ended(work, work.start_ns[own], own)
        # Without any length, the last to end may be the activity itself: then it is the one before.
        itself = found >= own
        found[itself] = np.concatenate(([-1], own[:-1]))[itself]
        found[itself & (_ends(work, found) > work.start_ns[own])] = -1
        out[own] = found
    return out


def _launched_until(calls: Calls, work: Activities, stream: int, time_ns: Ints, *, after: bool) -> Ints:
    """Return the last activity of a stream launched before each time, or the first launched after it; -1: none."""
    (own,) = np.nonzero((work.stream == stream) & (work.call >= 0))
    own = own[np.argsort(calls.start_ns[work.call[own]], kind="stable")]
    at = np.searchsorted(calls.start_ns[work.call[own]], time_ns, side="left") - (not after)
    return np.append(own, -1)[at]


def awaited_by_streams(calls: Calls, work: Activities, syncs: Syncs) -> Ints:
    """Return the activity that the stream of each had to wait for before it (cudaStreamWaitEvent), -1: none.

    It is the last one launched on the stream of the event before that was recorded; of several the last to end.
    """
    out = np.full(len(work), -1, dtype=np.int64)
    known = (syncs.of_stream == 1) & (syncs.record >= 0) & (syncs.stream >= 0) & (syncs.awaited >= 0)
    for stream, awaited in np.unique(np.stack((syncs.stream[known], syncs.awaited[known])), axis=1).T.tolist():
        (here,) = np.nonzero(known & (syncs.stream == stream) & (syncs.awaited == awaited))
        target = _launched_until(calls, work, stream, calls.start_ns[syncs.call[here]], after=True)
        source = _launched_until(calls, work, awaited, calls.start_ns[syncs.record[here]], after=False)
        both = (target >= 0) & (source >= 0)
        target, source = target[both], source[both]
        order = np.argsort(work.end_ns[source], kind="stable")
        target, source = target[order], source[order]
        better = work.end_ns[source] > _ends(work, out[target])
        out[target[better]] = source[better]
    return out


def _host_waits(trace: Trace, chains: list[Chain], calls: Calls, work: Activities, syncs: Syncs) -> None:
    """Add the waits of calls for the GPU, see `awaited_by_calls`."""
    for number, each in enumerate(chains):
        until = each.time_ns[each.ends]
        for span, found in awaited_by_calls(trace, each.spans, until, number, calls, work, syncs):
            each.wait(each.ends[span], _nodes(work, found), _ends(work, found), SYNC)
        _spinning(each, number, calls, work)


def awaited_by_calls(
    trace: Trace, spans: SpanArrays, until: Ints, number: int, calls: Calls, work: Activities, syncs: Syncs
) -> Iterator[tuple[Ints, Ints]]:
    """Yield places of spans of a thread that wait for a GPU, and the activity that each waits for, -1 for none.

    These are calls that wait, and copies that were done before they returned. until: when each span ends. number: of
    the thread in `calls`. If the driver recorded no activity, it is taken to be the last one that ended on any stream
    before the call returned, and of a call that waits for a device the last one of each stream.
    """
    waits, of_device = (regions_where(trace, which)[spans["region"]] for which in (_waits, _waits_for_device))
    awaited = np.where(waits, np.where(of_device, _ALL, _LAST), _NOTHING)
    record_ns = np.full(len(awaited), _NEVER, dtype=np.int64)
    own = syncs.chosen((syncs.of_stream == 0) & (calls.chain[syncs.call] == number))
    span, record = calls.span[own.call], own.record
    awaited[span] = own.awaited
    record_ns[span] = np.where(record < 0, _NEVER, calls.start_ns[record])
    for stream in np.unique(awaited[awaited != _NOTHING]).tolist():
        (span,) = np.nonzero(awaited == stream)
        if stream == _LAST:
            groups = [np.arange(len(work))]
        else:
            groups = [np.flatnonzero(work.stream == at) for at in np.unique(work.stream) if stream in (at, _ALL)]
        for among in groups:
            found = _last_ended(work, until[span], among)
            if stream >= 0:
                recorded = _launched_until(calls, work, stream, record_ns[span], after=False)
                found = np.where(record_ns[span] > _NEVER, recorded, found)
            yield span, found
    (copies,) = np.nonzero((work.kind == COPY) & (work.call >= 0))
    copies = copies[calls.chain[work.call[copies]] == number]
    span = calls.span[work.call[copies]]
    done = work.end_ns[copies] <= until[span]
    yield span[done], copies[done]


def _spinning(chain: Chain, number: int, calls: Calls, work: Activities) -> None:
    """Add the waits of a thread that reads a flag in a loop until what it launched last is done: no call waits.

    Work that ends a moment after it has set the flag is what the time since it began went into.
    """
    (own,) = np.nonzero(np.append(calls.chain, -1)[work.call] == number)  # -1, no known call, is the last entry
    own = own[np.argsort(calls.start_ns[work.call[own]], kind="stable")]
    launched = calls.start_ns[work.call[own]]
    begin, end = chain.time_ns[:-1], chain.time_ns[1:]
    at = np.searchsorted(launched, begin) - 1
    last, done = np.append(own, -1)[at], _ends(work, np.append(own, -1)[at])
    margin = np.minimum(_SPIN_NS, (end - begin) // _SPIN_PART)
    soon = begin - np.append(launched, _NEVER)[at] <= _SPIN_NS
    spins = (chain.span[:-1] >= 0) & (end - begin >= _SPIN_LEAST_NS) & soon & (done > begin)
    for ended, moments in ((done <= end, work.ends), (done > end, work.begins)):
        (here,) = np.nonzero(spins & ended & (np.abs(end - done) < margin))
        which = last[here]
        times = done[here] if moments is work.ends else work.start_ns[which]
        for kind in np.unique(work.kind[which]).tolist():
            one = work.kind[which] == kind
            spent = SYNC if moments is work.ends else kind
            chain.wait(here[one] + 1, moments[which[one]], times[one], spent)


# Streams that a call may wait for, beside the numbers of their locations.
_ALL, _LAST, _NOTHING = -1, -2, -3


def _waits(region: Region) -> bool:
    """Return whether a region is a call that waits for a GPU; a query does not wait."""
    return region.paradigm in GPU_PARADIGMS and region.role in ("sync", "wait") and "Query" not in region.name


def _waits_for_device(region: Region) -> bool:
    return "DeviceSynchronize" in region.name or "CtxSynchronize" in region.name
