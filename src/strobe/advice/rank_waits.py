"""Rule `rank.waits`: ranks spend much of their steps waiting for one another; for whom, why, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.host_time import Place, at_work, host_times
from strobe.breakdown.longer_work import LongerWork, longer_work
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.delays.timelines import BEFORE, Causes
from strobe.ranks.mesh.pipelines import BUBBLE_SHARE, bubble_share
from strobe.ranks.step_waits import StepWaits, step_waits
from strobe.ranks.waits.wait_columns import STATES
from strobe.steps.thread_spans import main_location
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import ranks_of, regions_where
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the steps: less is not worth a line
_UNEVEN = 0.5  # a rank that waits less than this part of the mean has more to do
_MOSTLY = 0.5
_STANDS_OUT = 0.3  # of the work of a rank
_LEAST = 0.7  # of a part that each rank gets: tokens, files, blocks are never quite even
_ALONE = 0.2  # what the others spend less of the same time in is work of one rank
# A rank that costs more than so many times what the next one does stands out, also where a busy machine makes all of
# them late at times; less is enough where one of its functions takes longer than on the others. It waits itself for
# less than this part of what any other rank does.
_TIMES_THE_NEXT, _LONGER_THAN_THE_NEXT, _MUCH_LESS = 2, 1.3, 0.75
_OF_MESSAGES = ("late_sender", "late_receiver")  # in a chain, the first rank delays all others
# Of waits for whoever happens to be late: noise of a busy machine is up to a tenth, and its median is far below its
# mean, which waits for repeated work are not.
_ROTATES, _REPEATED = 0.1, 0.5
# Part of the waits for messages in which the sender had waited itself: 1/3 in a chain of three ranks, more in longer.
_CHAINED = 0.25
_WORDS = {
    "late_sender": "until a message is sent",
    "late_receiver": "until a message is received",
    "wait_at_barrier": "until all have come to a barrier",
    "wait_at_nxn": "until all have come to a collective",
    "late_broadcast": "until the root has come to a broadcast or scatter",
    "early_reduce": "until all have come to a reduction or gather",
    "early_scan": "until those before have come to a scan",
    "late_collective": "until all have asked for a collective",
    "wait_at_fence": "until all have come to a fence of one-sided communication",
    "late_post": "until the target of one-sided communication exposes its memory",
    "early_wait": "until all origins of one-sided communication are done",
    "lock_contention": "for locks of memory that another rank has",
}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding where ranks wait more than 5 % of their steps for one another, with the cause if it is known.

    Share: waits that are longer than twice the error of the clocks, by the steps in which they began, of the steady
    steps of all ranks. Silent if a needless barrier or the bubbles of a pipeline are the cause, which are rules of
    their own.
    """
    found = step_waits(trace)
    if found is None or found.barrier is not None or bubble_share(trace) > BUBBLE_SHARE:
        return
    if found.share < LEAST_SHARE:
        yield Below(found.share, LEAST_SHARE)
        return
    waits, ranks, count = found.waits, ranks_of(trace), len(found.processes)
    step_ns = found.wait_ns / count / found.steps
    state, of_state = _most(waits.state, waits.wait_ns)
    in_state = waits.chosen(waits.state == state)
    path, of_path = _most(in_state.call_path, in_state.wait_ns)
    cause = _cause(trace, found)
    if cause is None:
        longest = in_state.chosen(in_state.call_path == path)
        awaited, of_awaited = _most(found.late, waits.wait_ns)
        why = f"{format_share(of_state)} of that {_WORDS[STATES[state]]}"
        do = f"rank {ranks[awaited]} is waited for most, {format_share(of_awaited)}: look at what it does before that"
        do, where = f"{do}; strobe waits --by pair", call_path_text(trace, path) if path >= 0 else ""
        confidence, low_ns, gain_ns = "high" if of_path > _MOSTLY else "medium", 0, 0
    else:
        longest, why, do, where = waits.chosen(cause.waits), cause.why, cause.do, cause.where
        confidence = "high" if cause.share > _MOSTLY else "medium"
        low_ns, gain_ns = (round(ns / found.steps) for ns in (cause.least_ns, cause.gain_ns))
    at = int(longest.wait_ns.argmax())
    yield Finding(
        rule="rank.waits",
        what=f"ranks wait {format_ns(step_ns)} of a step for one another, "
        f"{format_share(found.share)} of it (mean of {count} ranks): {why}",
        do=do,
        where=where,
        gain_low_ns=low_ns,
        gain_high_ns=gain_ns,
        confidence=confidence,
        informative=cause is None,
        evidence=(
            {
                "start_ns": int(longest.call_ns[at]),
                "duration_ns": int(longest.wait_ns[at]),
                "location": int(longest.location[at]),
            },
        ),
    )


@dataclass(frozen=True)
class _Cause:
    """Why ranks wait. waits: those of this cause. share: of all waits. gain_ns: of a rank in all steps, at most.

    Of work that only one rank has, all that the others wait longer is gained if it is gone, a part of each rank's if it
    is divided among them; `_LEAST` of the latter counts for sure (least_ns).
    """

    why: str
    do: str
    where: str
    waits: Bools
    share: float
    gain_ns: float
    least_ns: float = 0.0


def _cause(trace: Trace, found: StepWaits) -> _Cause | None:
    """Return the cause of most waits; None if it is itself communication, or not known."""
    costs, waits, causes = found.costs, found.waits, found.causes
    cost_ns = costs.direct_ns + costs.long_term_ns
    late = found.late[costs.wait]
    key, _ = _most(late * (causes.unknown + 1) + costs.cause, cost_ns)
    process, number = divmod(key, causes.unknown + 1)
    if number == causes.unknown or causes.communicates(np.array([number]))[0]:
        return None
    of_cause, of_rank = costs.cause == number, late == process
    delayed = np.zeros(len(waits), dtype=bool)
    delayed[costs.wait[of_cause & of_rank & (costs.direct_ns > 0)]] = True
    state = STATES[_most(waits.state[delayed], waits.wait_ns[delayed])[0]]
    waited = np.array([waits.wait_ns[found.waiting == each].sum() for each in found.processes.tolist()])
    own_ns, mean_ns = float(waited[found.processes == process][0]), float(waited.mean())
    others = [each for each in found.processes.tolist() if each != process]
    function, where = _function(trace, causes, process, number), causes.path(number) or ""
    longer = longer_work(trace, process, others) if causes.is_before(np.array([number]))[0] else None
    task = function
    if longer is not None:
        function, task, where = _longer_text(longer, found), f"`{longer.name}`", longer.where
    elif function.endswith(")") and (place := _at_work(trace, process)) is not None:
        where = place.where
    rank = f"rank {ranks_of(trace)[process]}"
    on_ranks = np.array([cost_ns[of_cause & (late == each)].sum() for each in found.processes.tolist()])
    total = found.wait_ns
    share = float(on_ranks.max()) / total
    step_ns = share * mean_ns / found.steps
    for_it = f"{format_ns(step_ns)} of that for {rank}, because of {function}"
    by_rank = np.sort([cost_ns[late == each].sum() for each in found.processes.tolist()])
    times = _TIMES_THE_NEXT if longer is None else _LONGER_THAN_THE_NEXT
    stands_out = by_rank[-1] > times * by_rank[-2] and state not in _OF_MESSAGES
    least_ns = min(float(waited[found.processes == each][0]) for each in others)
    uneven = own_ns < _UNEVEN * mean_ns and cost_ns[of_rank].sum() > _MOSTLY * total
    if uneven or (stands_out and cost_ns[of_rank].sum() == by_rank[-1] and own_ns < _MUCH_LESS * least_ns):
        others_ns = (float(waited.sum()) - own_ns) / (len(waited) - 1)
        own = f"{rank} itself waits {format_ns(own_ns / found.steps)}, the others {format_ns(others_ns / found.steps)}"
        if causes.is_before(np.array([number]))[0]:
            usual = np.median([_gaps(trace, causes, each, number)[1].sum() for each in others])
            alone = bool(usual < _ALONE * _gaps(trace, causes, process, number)[1].sum())
        else:
            alone = not costs.on_both[of_cause & of_rank].any()
        if alone and state == "late_broadcast":
            why = f"{for_it}, which the root does alone while the others wait; {own}"
            do = f"divide {task} among the ranks, or let them compute meanwhile: a non-blocking collective"
        else:
            why = f"{for_it}, which {'only it does' if alone else 'takes it longer than the others'}; {own}"
            if longer is not None:
                why = f"{for_it}; {own}"
            do = f"give {rank} less of {task}, or divide that among the ranks"
        return _Cause(why, do, where, delayed, share, others_ns - own_ns, _LEAST * (mean_ns - own_ns))
    share = float(on_ranks.sum()) / total
    if not stands_out and longer is None and _rotates(found, state):
        several = np.isin(np.arange(len(waits)), costs.wait[of_cause & (costs.direct_ns > 0)])
        why = f"{format_share(share)} of that because of {function}, on another rank each time: no rank is late most"
        do = f"let all ranks do the longer part of {function} in the same step, or some of it in every step"
        return _Cause(why, do, where, several, share, mean_ns)
    on_direct = [costs.direct_ns[of_cause & (late == each)].sum() for each in found.processes.tolist()]
    messages = np.flatnonzero(waits.state == STATES.index("late_sender"))
    of_messages = np.isin(costs.wait, messages)
    chained = costs.indirect_ns[of_messages].sum() / max(1, waits.wait_ns[messages].sum())
    if len(found.processes) > 2 and chained > _CHAINED and (on_ranks > 0).sum() > 1 and share > _MOSTLY:
        receives = np.isin(found.processes, found.waiting[messages])  # the first of a chain does not
        middle = int(found.processes[np.argmax(np.where(receives, on_direct, -1))])
        function = _function(trace, causes, middle, number)
        chain = f"ranks do {function} one after the other, each when it has the message of the one before"
        why = f"{format_share(share)} of that because {chain}"
        do = f"send before {function} what does not depend on it, or receive after it; else divide it into blocks and "
        return _Cause(why, f"{do}send each when it is done", where, delayed, share, mean_ns)
    if state == "late_sender":
        why = f"{for_it}, which it does before it sends"
        do = f"let {rank} send first, and do {function} after that, if what it sends does not depend on it"
        return _Cause(why, do, where, delayed, share, mean_ns)
    return None


def _rotates(found: StepWaits, state: str) -> bool:
    """Return whether ranks wait for each other in turn, at the same calls, and about as long each time."""
    waits = found.waits
    of_state = waits.state == STATES.index(state)
    size = int(found.processes.max()) + 1
    mutual, paths = 0.0, np.unique(waits.call_path[of_state])
    for path in paths.tolist():
        (own,) = np.nonzero(of_state & (waits.call_path == path))
        pairs = np.zeros((size, size))
        np.add.at(pairs, (found.waiting[own], found.late[own]), waits.wait_ns[own])
        mutual += float(np.minimum(pairs, pairs.T).sum())
    (own,) = np.nonzero(of_state)
    _, which = np.unique(waits.cause_ns[own], return_inverse=True)
    each = np.bincount(which, waits.wait_ns[own])
    repeated = np.median(each) > _REPEATED * each.mean()
    return bool(repeated and mutual > max(_MOSTLY * waits.wait_ns[own].sum(), _ROTATES * found.duration_ns))


def _function(trace: Trace, causes: Causes, process: int, cause: int) -> str:
    """Return the name of a cause; of a time before a call of MPI where it is: see `_between`.

    Of a time before a collective that another thread runs, it is what the main thread works in most.
    """
    before, gap_ns = _gaps(trace, causes, process, cause)
    if not len(before):
        place = _at_work(trace, process) if causes.is_before(np.array([cause]))[0] else None
        of_it = f" ({format_share(place.share)} of its work is in `{place.name}`)" if place is not None else ""
        return f"`{causes.name(cause)}`{of_it}"
    paths = [causes.path(_most(before, gap_ns)[0]), causes.path(cause)]
    return _between(*((path or "").removeprefix(BEFORE).split(" < ") for path in paths))


def _longer_text(longer: LongerWork, found: StepWaits) -> str:
    own, usual = (format_ns(round(ns / found.steps)) for ns in (longer.time_ns, longer.usual_ns))
    return f"`{longer.name}`, {own} of a step there and {usual} on the other ranks"


def _at_work(trace: Trace, process: int) -> Place | None:
    """Return the function in which most of what a main thread does passes; None if none stands out."""
    place = next((at_work(trace, each) for each in host_times(trace) if each.process == process), None)
    return place if place is not None and place.share >= _STANDS_OUT else None


def _gaps(trace: Trace, causes: Causes, process: int, cause: int) -> tuple[Ints, Ints]:
    """Return the causes of the calls of MPI from whose end a process's time before a call runs, and how long, ns.

    In detail only; empty for other causes.
    """
    location = main_location(trace, process)
    if location is None or not causes.is_before(np.array([cause]))[0]:
        return np.zeros((2, 0), dtype=np.int64)[0], np.zeros(0, dtype=np.int64)
    spans = trace.span_arrays(location)
    (at,) = np.nonzero(regions_where(trace, lambda region: region.of_ranks)[spans["region"]])
    calls, start, duration = (spans[name][at].astype(np.int64) for name in ("call_path", "start_ns", "duration_ns"))
    calls = causes.of(calls)
    own = causes.before(calls[1:]) == cause
    return calls[:-1][own], np.maximum(0, (start[1:] - start[:-1] - duration[:-1])[own])


def _between(first: Sequence[str], last: Sequence[str]) -> str:
    """Return where the time between two calls passes, each with its callers: `the work of main between swap (a.c:4)`.

    That is the innermost function that both calls come from. Its lines are those that call what leads to each.
    """
    common = -1
    for place, (one, other) in enumerate(zip(reversed(first), reversed(last), strict=False)):
        if one.partition(" (")[0] != other.partition(" (")[0]:
            break
        common = place
        if one != other:
            break
    common = min(common, len(first) - 2, len(last) - 2)
    ends = []
    for frames in (first, last):
        frame, inner = (frames[-1 - common], frames[-2 - common]) if common >= 0 else ("", frames[0])
        name, _, place_of_call = frame.partition(" (")
        ends.append(" (".join(filter(None, (inner.partition(" (")[0], place_of_call))))
    both = f"before each {ends[0]}" if ends[0] == ends[1] else f"between {ends[0]} and {ends[1]}"
    return f"the work {'' if common < 0 else f'of {name} '}{both}"


def _most(group: Ints, amount: Ints) -> tuple[int, float]:
    """Return the group that has most, and its part of all."""
    numbers, which = np.unique(group, return_inverse=True)
    sums = np.bincount(which, amount)
    return int(numbers[sums.argmax()]), float(sums.max() / max(1, sums.sum()))


RULE = Rule("rank.waits", "Ranks wait for one another, and why", run, of_waits=True)
