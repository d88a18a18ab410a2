"""Clocks checked by impossible events: a message received before it was sent, a barrier left before all have come.

And repaired if there are some. First each clock is shifted, as little as needed, so that no message arrives before it
was sent, if one shift for the whole run can do that. The rest is repaired by the controlled logical clock
(Rabenseifner, 1997) with forward amortisation: a receive that comes too early is moved to its send, what follows on
that clock is moved too, and the clock runs 1 % slow until it is back. All processes of a node are moved together. So
the order of events on a clock stays, no stretch becomes shorter by more than 1 %, and only those in which a moved
receive ends become longer. Without backward amortisation: that stretch takes all of the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from strobe.ranks.collective_kinds import kind_of
from strobe.ranks.messages import MessageEnds, matched, message_ends, numbered, places
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Floats, Ints, place_of
from strobe.trace.clocks.node_clocks import Points, Repairs, write_repairs
from strobe.trace.definition_rows import process_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace

_ALL_NEED_ALL = {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"}
# Slower by this while a clock goes back to if it was: gamma = 0.99, as Scalasca has it.
_BACK = 0.01
_ROUNDS = 1000
_MOST_SHIFTED = 256  # clocks: each is compared with each
_ROUNDING_NS = 4
CHEAP_ROWS = 2_000_000  # some seconds
_AROUND_NS = 1_000_000_000
_ALWAYS = 1 << 61  # later than every moment of a run, ns


@dataclass(frozen=True)
class Meetings:
    """Messages and collectives, which order events of different clocks; columns of equal length, ns of the trace.

    No party of a meeting ends before those have begun that it needs. A message is a meeting of two: the sender only
    begins (`ends` false), the receiver only ends; in a collective all do both.
    """

    clocks: list[str]
    meeting: Ints
    clock: Ints
    begin_ns: Ints
    end_ns: Ints
    begins: Bools
    ends: Bools
    messages: int  # the first so many meetings are messages

    def early(self, moved_begin_ns: Ints | int = 0, moved_end_ns: Ints | int = 0) -> Ints:
        """Return for each entry how much too early it ends (0 or less: it does not)."""
        low = np.iinfo(np.int64).min // 4
        begin = np.where(self.begins, self.begin_ns + moved_begin_ns, low)
        if not len(begin):
            return begin
        # The last to begin, and the last of another clock than that one's.
        top = self._last_to_begin(begin)
        others = np.where(self.clock != self.clock[top], begin, low)
        second = self._last_to_begin(others)
        needed = np.where(self.clock == self.clock[top], others[second], begin[top])
        return np.where(self.ends & (needed > low), needed - self.end_ns - moved_end_ns, low)

    def _last_to_begin(self, begin: Ints) -> Ints:
        """Return for each entry the one that begins last in its meeting."""
        order = np.lexsort((begin, self.meeting))
        return order[np.flatnonzero(np.diff(self.meeting[order], append=-1))][self.meeting]


@dataclass(frozen=True)
class Found:
    """The number of messages and collectives between clocks, how many of them are impossible, and the worst one."""

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
    """Count the messages and collectives between processes of different clocks that are impossible by these clocks.

    Messages are matched as MPI does: the n-th of a sender, receiver, communicator and tag; blocking collectives in
    which all need all by their order in the communicator. If iterations were folded, those before the first of them.
    """
    return counted(meetings(trace))


def counted(met: Meetings) -> Found:
    """Count the impossible meetings."""
    early = met.early()
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
    """Check the clocks of a trace, write repairs into the trace's folder, and return them; None if all share a clock.

    The repairs apply whenever the trace is opened from now on.
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
    clocks = list(dict.fromkeys(trace.clocks))
    clock_of = np.array([clocks.index(name) for name in trace.clocks], dtype=np.int64)
    until = np.array([_complete_until(trace, process) for process in range(len(clock_of))], dtype=np.int64)
    texts = Texts()
    ends = _messages(trace, until)
    process = np.array(processes_of_locations(trace), dtype=np.int64)[ends.place]
    send, receive = matched(ends, complete=bool((until == _ALWAYS).all()))
    between = clock_of[process[send]] != clock_of[process[receive]]
    send, receive = send[between], receive[between]
    parties = _collectives(trace, texts, clock_of, until)
    count, nothing = len(send), np.zeros(len(send), dtype=np.int64)
    message, is_end, every = np.arange(count), np.ones(count, dtype=bool), np.ones(len(parties), dtype=bool)
    return Meetings(
        clocks,
        meeting=np.concatenate((message, message, parties.meeting + count)),
        clock=np.concatenate((clock_of[process[send]], clock_of[process[receive]], parties.clock)),
        begin_ns=np.concatenate((ends.time_ns[send], nothing, parties.begin_ns)),
        end_ns=np.concatenate((nothing, ends.time_ns[receive], parties.end_ns)),
        begins=np.concatenate((is_end, ~is_end, every)),
        ends=np.concatenate((~is_end, is_end, every)),
        messages=count,
    )


def _complete_until(trace: Trace, process: int) -> int:
    """Return until when a process has all its rows: to the first folded iteration."""
    records = trace.iterations(process)
    return int(records.start_ns[records.detail != 2].min(initial=_ALWAYS))


def _messages(trace: Trace, until: Ints) -> MessageEnds:
    """Return the sends and receives between known ranks; `place` is the location."""
    ends = message_ends(trace)
    process = np.array(processes_of_locations(trace), dtype=np.int64)[ends.place]
    return ends.chosen((ends.sender >= 0) & (ends.receiver >= 0) & (ends.time_ns < until[process]))


@dataclass(frozen=True)
class _Parties(Columns):
    """Spans of collectives in which all need all: whose, and when. `meeting`: the same number for the same one."""

    communicator: Ints
    size: Ints
    kind: Ints
    process: Ints
    clock: Ints
    begin_ns: Ints
    end_ns: Ints
    meeting: Ints


def _collectives(trace: Trace, texts: Texts, clock_of: Ints, until: Ints) -> _Parties:
    """Return the parties of the collectives that ranks of several clocks ran."""
    parts, ranks = [], ranks_of(trace)
    for location, process in enumerate(processes_of_locations(trace)):
        batches = list(trace.side_batches("collective_spans", location))
        if not batches or ranks[process] is None:
            continue
        table = pa.concat_tables(batches)
        table = table.filter(pa.array(integers(table.column("request")) < 0))
        rows, size = integers(table.column("row")), integers(table.column("group_size"))
        communicator = texts.numbers(table.column("communicator"))
        kind = _kinds(texts, texts.numbers(table.column("collective")))
        for spans in trace.span_batches(location):
            at = place_of(rows, spans["row"])
            here = at >= 0
            begin = spans["start_ns"][at[here]]
            end = begin + spans["duration_ns"][at[here]]
            own, clock, unknown = (np.full(len(begin), value) for value in (process, clock_of[process], -1))
            found = _Parties(communicator[here], size[here], kind[here], own, clock, begin, end, unknown)
            parts.append(found.chosen(end < until[process]))
    found = _Parties.joined(parts)
    found = found.chosen(found.communicator >= 0)
    found = found.chosen(np.argsort(found.begin_ns, kind="stable"))
    meeting = numbered(found.communicator, places(numbered(found.communicator, found.process)))
    members = np.bincount(meeting, minlength=1)
    lowest, highest = np.full(len(members), 1 << 40), np.full(len(members), -1)
    np.minimum.at(lowest, meeting, found.clock)
    np.maximum.at(highest, meeting, found.clock)
    good = (found.kind >= 0) & (lowest < highest)[meeting] & (members[meeting] == found.size)
    return replace(found.chosen(good), meeting=numbered(meeting[good]))


def _kinds(texts: Texts, names: Ints) -> Ints:
    good = np.array([kind_of(text) in _ALL_NEED_ALL for text in texts.texts] + [False])
    return np.where(good[names], names, -1)


Knots = tuple[Floats, Floats]


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
        early = met.early(begin, end)
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
    """Return the shifts by knots at moments of clocks, ns."""
    out = np.zeros(len(time), dtype=np.int64)
    for number, (at, jump) in knots.items():
        own = clock == number
        reach = np.maximum.accumulate(jump + _BACK * at)
        place = np.searchsorted(at, time[own], side="right") - 1
        value = np.where(place >= 0, reach[np.maximum(place, 0)] - _BACK * time[own], 0.0)
        out[own] = np.ceil(np.maximum(value, 0.0)).astype(np.int64)
    return out


def _shifts(met: Meetings) -> Ints:
    """Return the least shifts of whole clocks that repair everything, the first one's 0; all 0 if none do."""
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
        last_begin = last[met.meeting]
        ends = met.ends & (met.clock != clock) & (last_begin > low)
        np.maximum.at(need[clock], met.clock[ends], last_begin[ends] - met.end_ns[ends])
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
    """Return the new points of each clock that is moved."""
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
        given = note.get("clock_points")
        base: Points = given if isinstance(given, list) else []
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
