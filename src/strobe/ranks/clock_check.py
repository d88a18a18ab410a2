"""Clocks checked by what cannot be: a message that is there before it was sent, a barrier left before all have come.

And repaired where they show it. First each clock is shifted, as little as is needed, so that no message arrives before
it was sent, if one shift for the whole run can do that. What is left is repaired by the controlled logical clock
(Rabenseifner, 1997) with forward amortisation: a receive that comes too early is moved to its send, what follows on
that clock is moved too, and the clock goes 1 % slow until it is back. All processes of a node are moved together. So
the order of events on a clock stays, no stretch becomes shorter by more than 1 %, and only those in which a moved
receive ends become longer. Without backward amortisation: that stretch takes it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from strobe.ranks.collective_kinds import kind_of
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.trace.clocks.node_clocks import Points, Repairs, write_repairs
from strobe.trace.definition_rows import process_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]

_ALL_NEED_ALL = {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"}
# Slower by this while a clock goes back to where it was: gamma = 0.99, as Scalasca has it.
_BACK = 0.01
_ROUNDS = 1000
_MOST_SHIFTED = 256  # clocks: each is compared with each
_ROUNDING_NS = 4
CHEAP_ROWS = 2_000_000  # some seconds
_AROUND_NS = 1_000_000_000


@dataclass(frozen=True)
class Meetings:
    """What orders the events of different clocks; columns of equal length, ns since the trace's zero.

    meeting, clock, begin_ns, end_ns: nobody ends before those have begun whom it needs. A message is a meeting of two:
    the sender only begins (`ends` false), the receiver only ends; in a collective all do both.
    """

    clocks: list[str]
    meeting: Ints
    clock: Ints
    begin_ns: Ints
    end_ns: Ints
    begins: npt.NDArray[np.bool_]
    ends: npt.NDArray[np.bool_]
    messages: int  # the first so many meetings are messages

    def early(self, shift: tuple[Ints, Ints] | None = None) -> tuple[Ints, Ints, Ints]:
        """Return by entry by how much it ends too early (0 and less: it does not), and for whom: the clock and moment
        of the last of another clock to begin. `shift`: what begins and ends are moved by."""
        begin = self.begin_ns + (shift[0] if shift else 0)
        end = self.end_ns + (shift[1] if shift else 0)
        low = np.iinfo(np.int64).min // 4
        begin = np.where(self.begins, begin, low)
        if not len(begin):
            return begin, begin, begin
        # The last to begin, and the last of another clock than that one's.
        order = np.lexsort((begin, self.meeting))
        last = np.flatnonzero(np.diff(self.meeting[order], append=-1))
        top = order[last][self.meeting]
        others = np.where(self.clock != self.clock[top], begin, low)
        order = np.lexsort((others, self.meeting))
        last = np.flatnonzero(np.diff(self.meeting[order], append=-1))
        second = order[last][self.meeting]
        whom = np.where(self.clock == self.clock[top], second, top)
        needed = np.where(self.clock == self.clock[top], others[second], begin[top])
        early = np.where(self.ends & (needed > low), needed - end, low)
        return early, whom, begin[whom]


@dataclass(frozen=True)
class Found:
    """How many messages and collectives between clocks were looked at, and how many of them cannot be; the worst."""

    messages: int
    bad_messages: int
    collectives: int
    bad_collectives: int
    worst_ns: int

    @property
    def bad(self) -> int:
        """Messages and collectives that are impossible by these clocks."""
        return self.bad_messages + self.bad_collectives


def check(trace: Trace) -> Found:
    """Count the messages and collectives between processes of different clocks that the clocks put into no order.

    Messages are matched as MPI does: the n-th of a sender, receiver, communicator and tag; blocking collectives in
    which all need all by their order in the communicator. Where iterations were folded, those before the first of them.
    """
    return counted(meetings(trace))


def counted(met: Meetings) -> Found:
    """Count what is wrong in meetings."""
    early, _, _ = met.early()
    several = np.unique(met.meeting[early > np.iinfo(np.int64).min // 8])
    bad = np.unique(met.meeting[early > 0])
    first = met.messages
    return Found(
        int((several < first).sum()),
        int((bad < first).sum()),
        int((several >= first).sum()),
        int((bad >= first).sum()),
        max(0, int(early.max(initial=0))),
    )


def repair(trace: Trace) -> Repairs | None:
    """Check the clocks of a trace, repair what is wrong, write it into the trace's folder, and return it.

    Returns None where all processes share a clock. What was repaired is seen by who opens the trace from now on.
    """
    if len(set(trace.clocks)) < 2:
        return None
    met = meetings(trace)
    before = counted(met)
    checked = {"messages_checked": before.messages, "collectives_checked": before.collectives}
    repairs = Repairs(checked, {})
    if before.bad:
        shifts, knots = solve(met)
        checked |= {"clock_violations": before.bad, "clock_violations_worst_ns": before.worst_ns}
        repairs = Repairs(checked, _points(trace, met, shifts, knots))
        write_repairs(trace.path, repairs)
        checked["clock_violations_left"] = check(Trace.read(trace.path)).bad
    write_repairs(trace.path, repairs)
    return repairs


def rows_to_check(trace: Trace) -> int:
    """Return how many rows of messages and collectives a check looks at."""
    tables = [reader.tables() for reader in trace.readers]
    return sum(each.get(name, 0) for each in tables for name in ("messages", "collective_spans"))


def meetings(trace: Trace) -> Meetings:
    """Return the messages and collectives that processes of different clocks have in common."""
    names = trace.clocks
    clocks = list(dict.fromkeys(names))
    number = np.array([clocks.index(name) for name in names], dtype=np.int64)
    until = [_complete_until(trace, process) for process in range(len(names))]
    texts = Texts()
    sent, received = _messages(trace, texts, number, until)
    met = _collectives(trace, texts, number, until)
    count = sent.shape[1]
    nothing, yes = np.zeros(count, dtype=np.int64), np.ones(count, dtype=bool)
    every = np.ones(met.shape[1], dtype=bool)
    return Meetings(
        clocks,
        np.concatenate((np.arange(count), np.arange(count), met[0] + count)),
        np.concatenate((sent[0], received[0], met[1])),
        np.concatenate((sent[1], nothing, met[2])),
        np.concatenate((nothing, received[1], met[3])),
        np.concatenate((yes, ~yes, every)),
        np.concatenate((~yes, yes, every)),
        count,
    )


def _complete_until(trace: Trace, process: int) -> int:
    """Return up to when all rows of a process are there: to the first iteration that was folded."""
    records = trace.iterations(process)
    folded = records.start_ns[records.detail != 2]
    return int(folded.min()) if len(folded) else 1 << 61


def _locations(trace: Trace) -> Iterator[tuple[int, int, int]]:
    ranks = ranks_of(trace)
    for location, process in enumerate(processes_of_locations(trace)):
        rank = ranks[process]
        if rank is not None:
            yield location, process, rank


def _messages(trace: Trace, texts: Texts, clock: Ints, until: list[int]) -> tuple[Ints, Ints]:
    """Return clock and moment of the two ends of each message between clocks: two arrays of two rows."""
    parts = [np.zeros((7, 0), dtype=np.int64)]  # sender, receiver, communicator, tag, whether sent, clock, time
    for location, process, rank in _locations(trace):
        for batch in trace.side_batches("messages", location):
            direction = texts.numbers(batch.column("direction"))
            sent = direction == texts.number("send")
            peer, own = integers(batch.column("peer_rank")), np.full(len(batch), rank)
            time = integers(batch.column("time_ns"))
            chosen = (sent | (direction == texts.number("receive"))) & (peer >= 0) & (time < until[process])
            of = texts.numbers(batch.column("communicator")), integers(batch.column("tag"))
            pair = np.where(sent, own, peer), np.where(sent, peer, own)
            columns = (*pair, *of, sent, np.full(len(batch), clock[process]), time)
            parts.append(np.stack(columns)[:, chosen].astype(np.int64))
    whole = np.concatenate(parts, axis=1)
    key = _numbered(whole[:4])
    place = _places(key * 2 + whole[4], whole[6])
    send, receive = (np.flatnonzero(whole[4] == side) for side in (1, 0))
    if all(each == 1 << 61 for each in until):  # else one side may have more of its messages
        size = int(key.max(initial=-1)) + 1
        as_many = np.bincount(key[send], minlength=size) == np.bincount(key[receive], minlength=size)
        send, receive = send[as_many[key[send]]], receive[as_many[key[receive]]]
    _, first, second = np.intersect1d(
        _pair(key[send], place[send]), _pair(key[receive], place[receive]), return_indices=True
    )
    send, receive = send[first], receive[second]
    between = whole[5, send] != whole[5, receive]
    return whole[5:7, send[between]], whole[5:7, receive[between]]


def _collectives(trace: Trace, texts: Texts, clock: Ints, until: list[int]) -> Ints:
    """Return number, clock, begin and end of each party of the collectives that ranks of several clocks ran."""
    parts = [np.zeros((7, 0), dtype=np.int64)]  # communicator, size, kind, process, clock, begin, end
    for location, process, _ in _locations(trace):
        rows = [
            np.stack((texts.numbers(batch.column("communicator")), integers(batch.column("group_size")),
                      _kinds(texts, texts.numbers(batch.column("collective"))), integers(batch.column("row"))))
            [:, integers(batch.column("request")) < 0]
            for batch in trace.side_batches("collective_spans", location)
        ]  # fmt: skip
        if not rows:
            continue
        own = np.concatenate(rows, axis=1)
        for spans in trace.span_batches(location):
            at = np.searchsorted(spans["row"], own[3])
            here = (at < len(spans["row"])) & (spans["row"][np.minimum(at, len(spans["row"]) - 1)] == own[3])
            begin = spans["start_ns"][at[here]]
            end = begin + spans["duration_ns"][at[here]]
            who = np.full(len(begin), process), np.full(len(begin), clock[process])
            found = np.stack((*own[:3, here], *who, begin, end))
            parts.append(found[:, end < until[process]])
    whole = np.concatenate(parts, axis=1)
    whole = whole[:, whole[0] >= 0]
    place = _places(_numbered(whole[[0, 3]]), whole[5])
    meeting = _numbered(np.stack((whole[0], place)))
    members = np.bincount(meeting, minlength=1)
    lowest, highest = np.full(len(members), 1 << 40), np.full(len(members), -1)
    np.minimum.at(lowest, meeting, whole[4])
    np.maximum.at(highest, meeting, whole[4])
    good = (whole[2] >= 0) & (lowest < highest)[meeting] & (members[meeting] == whole[1])
    return np.stack((_numbered(meeting[good][None, :]), *whole[4:7, good]))


def _kinds(texts: Texts, names: Ints) -> Ints:
    known = list(texts.texts)
    good = np.array([kind_of(text) in _ALL_NEED_ALL for text in known] + [False])
    return np.where(good[names], names, -1)


def _numbered(columns: Ints) -> Ints:
    """Number the different columns."""
    if not columns.shape[1]:
        return np.zeros(0, dtype=np.int64)
    _, number = np.unique(columns, axis=1, return_inverse=True)
    return number.ravel().astype(np.int64)


def _places(group: Ints, time: Ints) -> Ints:
    """Return the place of each entry in its group, in order of time."""
    order = np.lexsort((np.arange(len(group)), time, group))
    ordered = group[order]
    begin = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - np.repeat(begin, np.diff(begin, append=len(group)))
    return place


def _pair(first: Ints, second: Ints) -> Ints:
    return first * 2**32 + second


Knots = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def solve(met: Meetings) -> tuple[Ints, dict[int, Knots]]:
    """Return by how much each clock is shifted, and by clock the moments (after that) at which it jumps, and how far.

    A jump is the least that is added at its moment; what is added after it is less by 1 % of the time since, 0 at
    least.
    """
    shifts = _shifts(met)
    moved = shifts[met.clock]
    knots: dict[int, Knots] = {}
    for _ in range(_ROUNDS):
        begin, end = (moved + added(knots, met.clock, time + moved) for time in (met.begin_ns, met.end_ns))
        early, _, _ = met.early((begin, end))
        (bad,) = np.nonzero(early > 0)
        if not len(bad):
            break
        at = (met.end_ns + moved)[bad]
        least = (end - moved)[bad] + early[bad] + _ROUNDING_NS
        for clock in np.unique(met.clock[bad]).tolist():
            own = met.clock[bad] == clock
            old = knots.get(clock, (np.zeros(0), np.zeros(0)))
            time, jump = np.concatenate((old[0], at[own])), np.concatenate((old[1], least[own]))
            order = np.lexsort((-jump, time))
            first = np.concatenate(([True], np.diff(time[order]) > 0))
            knots[clock] = time[order][first], jump[order][first]
    return shifts, knots


def added(knots: dict[int, Knots], clock: Ints, time: Ints) -> Ints:
    """Return what the knots add at moments of clocks, ns."""
    out = np.zeros(len(time), dtype=np.int64)
    for number, (at, jump) in knots.items():
        own = clock == number
        reach = np.maximum.accumulate(jump + _BACK * at)
        place = np.searchsorted(at, time[own], side="right") - 1
        value = np.where(place >= 0, reach[np.maximum(place, 0)] - _BACK * time[own], 0.0)
        out[own] = np.ceil(np.maximum(value, 0.0)).astype(np.int64)
    return out


def _shifts(met: Meetings) -> Ints:
    """Return the least shifts of whole clocks that repair everything, the first one's 0; all 0 where none do."""
    count = len(met.clocks)
    none = np.zeros(count, dtype=np.int64)
    if not 1 < count <= _MOST_SHIFTED or not len(met.meeting):
        return none
    low = np.iinfo(np.int64).min // 4
    need = np.full((count, count), low)  # by the one who begins, and the one who ends: begin - end
    size = int(met.meeting.max()) + 1
    for clock in range(count):
        begins = met.begins & (met.clock == clock)
        last = np.full(size, low)
        np.maximum.at(last, met.meeting[begins], met.begin_ns[begins])
        of = last[met.meeting]
        ends = met.ends & (met.clock != clock) & (of > low)
        np.maximum.at(need[clock], met.clock[ends], of[ends] - met.end_ns[ends])
    need = np.where(need > low, need + _ROUNDING_NS, low)
    shift = none
    for _ in range(count + 1):
        more = np.maximum(shift, (shift[:, None] + need).max(axis=0))
        if (more == shift).all():
            shifts: Ints = shift - shift[0]
            return shifts
        shift = more
    return none


def _points(trace: Trace, met: Meetings, shifts: Ints, knots: dict[int, Knots]) -> dict[str, Points]:
    """Return the points by which each clock that is moved goes from now on."""
    points: dict[str, Points] = {}
    for number, name in enumerate(met.clocks):
        own = knots.get(number)
        if own is None and not shifts[number]:
            continue
        process = trace.clocks.index(name)
        zero = trace.zero_of(process)
        row = process_rows(trace)[process]
        first, last = row.started_ns, row.ended_ns
        # Beyond the first and the last point clocks go on as between the two before: nothing happens there.
        moments = {first - _AROUND_NS, first, max(last, first + 1), last + _AROUND_NS}
        note = trace.job.processes.get(trace.files[process].blocks.stem, {})
        base = cast(Points, note.get("clock_points") or [])
        moments |= {at - zero for _, at in base}
        if own is not None:
            jumps = own[0].astype(np.int64) - int(shifts[number])
            moments |= set((jumps - 1).tolist()) | set(jumps.tolist()) | set(_rests(own, int(shifts[number])))
        axis = np.array(sorted(moments), dtype=np.int64)
        shifted = axis + shifts[number]
        goal = shifted + added(knots, np.full(len(axis), number), shifted)
        local = axis + zero
        if base:
            at_local, at_axis = (np.array(column, dtype=np.int64) for column in zip(*sorted(base), strict=True))
            local = _line(at_axis, at_local, local)
        points[name] = list(zip(local.tolist(), (goal + zero).tolist(), strict=True))
    return points


def _rests(knots: Knots, shift: int) -> Iterator[int]:
    """Yield the moments at which a clock is back."""
    at, jump = knots
    back = np.ceil(np.maximum.accumulate(jump + _BACK * at) / _BACK)
    for moment, following in zip(back.tolist(), [*at[1:].tolist(), np.inf], strict=True):
        if moment < following:
            yield int(moment) - shift


def _line(x: Ints, y: Ints, at: Ints) -> Ints:
    """Return the straight lines through points, and beyond the first and the last of them."""
    if len(x) == 1:
        moved: Ints = at - x[0] + y[0]
        return moved
    last = np.clip(np.searchsorted(x, at, side="right"), 1, len(x) - 1)
    wide, gained = np.diff(x)[last - 1], (np.diff(y) - np.diff(x))[last - 1]
    since = at - x[last - 1]
    return y[last - 1] + since + np.round(since * (gained / wide)).astype(np.int64)
