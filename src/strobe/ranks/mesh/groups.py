"""Groups of ranks that communicate, and every call in which a rank does so, with its group, bytes and waiting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from strobe.ranks.collective_columns import NOBODY, Collectives
from strobe.ranks.collective_log import ranks_in
from strobe.ranks.collectives import collectives
from strobe.ranks.messages import message_texts
from strobe.ranks.waits.message_calls import messages
from strobe.ranks.waits.wait_states import wait_states
from strobe.steps.thread_spans import read_streams
from strobe.steps.training_activities import BACKWARD, FORWARD, activities
from strobe.sums.groups import Texts
from strobe.sums.side_columns import side_columns
from strobe.tables.column_arrays import Columns, Ints, interval_at, rows_by
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Where in a step a call was asked for: in the forward pass of a module, in the backward pass, or outside of both.
PHASES = ("forward", "backward", "outside")
SEND, RECEIVE = "send", "receive"
_NAMES = ("group", "group_ranks", "group_description")
_Value = TypeVar("_Value")
_Defined = Mapping[tuple[int, str], list[tuple[tuple[int, ...], str]]]


@dataclass(frozen=True)
class Group:
    """A process group or communicator: its name, what it is for ("" unknown), and its ranks, in its own order."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class GroupCalls(Columns):
    """Calls in which ranks communicate. group, kind: numbers in `Communication`. phase: number in PHASES.

    begin_ns, end_ns: of the call or kernel in which the collective runs, or the message is complete. asked_ns: when it
    was asked for. wait_ns: what of the call is waiting for a rank that came later. peer: of a message, else -1. event:
    the same number for all calls of a collective, and for both ends of a message; -1 where the other side is missing.
    sent_bytes, received_bytes: -1 unknown.
    """

    group: Ints
    kind: Ints
    process: Ints
    rank: Ints
    phase: Ints
    asked_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    wait_ns: Ints
    peer: Ints
    event: Ints
    sent_bytes: Ints
    received_bytes: Ints


@dataclass(frozen=True)
class Communication:
    """All groups of a job that communicate, the kinds of calls (`allreduce`, `send`), and the calls."""

    groups: tuple[Group, ...]
    kinds: tuple[str, ...]
    calls: GroupCalls


@cached_on_trace
def communication(trace: Trace) -> Communication:
    """Return what ranks communicate, by group; computed once per open trace. Processes without a rank are left out."""
    defined = _defined(trace)
    groups, kinds = _Numbers[Group](), _Numbers[str]()
    phases = _phases(trace)
    waits = _Waits(trace)
    parts = [_collectives(trace, defined, groups, kinds), _messages(trace, defined, groups, kinds, waits)]
    calls = GroupCalls.joined(parts)
    for process, own in rows_by(calls.process):
        calls.phase[own] = phases(process, calls.asked_ns[own])
    return Communication(tuple(groups.values), tuple(kinds.values), calls.chosen(calls.rank >= 0))


class _Numbers(Generic[_Value]):
    def __init__(self) -> None:
        self.values: list[_Value] = []
        self._known: dict[_Value, int] = {}

    def of(self, value: _Value) -> int:
        if value not in self._known:
            self._known[value] = len(self.values)
            self.values.append(value)
        return self._known[value]


def _defined(trace: Trace) -> _Defined:
    """Return ranks and descriptions of the groups that rows of collectives name, by process and name."""
    found = dict[tuple[int, str], list[tuple[tuple[int, ...], str]]]()
    texts = Texts()
    process_of = np.array(processes_of_locations(trace), dtype=np.int64)
    for table in ("collective_spans", "folded_collectives"):
        location, columns = side_columns(trace, table, _NAMES, texts)
        cells = np.unique(np.column_stack((process_of[location], *(columns[name] for name in _NAMES))), axis=0)
        for process, *numbers in cells.tolist():
            name, ranks, description = (texts.text(number) for number in numbers)
            if name is not None and (members := ranks_in(ranks)):
                of_name = found.setdefault((process, name), [])
                if (members, description or "") not in of_name:
                    of_name.append((members, description or ""))
    return found


class _Waits:
    """Waits for other ranks, by the call in which a location waits."""

    def __init__(self, trace: Trace) -> None:
        process_of = np.array(processes_of_locations(trace), dtype=np.int64)
        waits = wait_states(trace).waits
        waits = waits.chosen(waits.for_another & ~waits.for_gpu)
        waits = waits.chosen((process_of[waits.location] != process_of[waits.cause]) & ~waits.uncertain)
        self._of = {location: self._sorted(waits.call_ns[own], waits.wait_ns[own])
                    for location, own in rows_by(waits.location)}  # fmt: skip

    @staticmethod
    def _sorted(call_ns: Ints, wait_ns: Ints) -> tuple[Ints, Ints]:
        order = np.argsort(call_ns, kind="stable")
        return call_ns[order], wait_ns[order]

    def of(self, location: Ints, begin_ns: Ints) -> Ints:
        """Return how long each call waits, by its location and begin."""
        out = np.zeros(len(location), dtype=np.int64)
        for where, own in rows_by(location):
            if where in self._of:
                call_ns, wait_ns = self._of[where]
                at = np.minimum(np.searchsorted(call_ns, begin_ns[own]), len(call_ns) - 1)
                out[own] = np.where(call_ns[at] == begin_ns[own], wait_ns[at], 0)
        return out


def _collectives(trace: Trace, defined: _Defined, groups: _Numbers[Group], kinds: _Numbers[str]) -> GroupCalls:
    found = collectives(trace)
    ranks = np.array([-1 if party.rank is None else party.rank for party in found.parties], dtype=np.int64)
    process = np.array([party.process for party in found.parties], dtype=np.int64)
    members = defaultdict[str, set[int]](set)  # of communicators whose ranks nobody wrote down
    pairs = np.unique(np.column_stack((found.party, found.line)), axis=0).tolist() if len(found) else []
    for party, line in pairs:
        members[found.lines[line][1] or ""].add(int(ranks[party]))
    group_of = np.full((max(1, len(found.parties)), max(1, len(found.lines))), -1, dtype=np.int64)
    for party, line in pairs:
        name = found.lines[line][1] or ""
        known = defined.get((int(process[party]), name), [])
        same = [each for each in known if found.members[line] in ((), each[0])] or known
        (of_ranks, description) = same[0] if same else (tuple(sorted(members[name])), "")
        group_of[party, line] = groups.of(Group(name, description, of_ranks))
    kind_of = np.array([kinds.of(kind) for kind, _ in found.lines] or [-1], dtype=np.int64)
    return GroupCalls(
        group=group_of[found.party, found.line],
        kind=kind_of[found.line],
        process=process[found.party],
        rank=ranks[found.party],
        phase=np.zeros(len(found), dtype=np.int64),
        asked_ns=found.start_ns,
        begin_ns=found.call_ns,
        end_ns=found.end_ns,
        wait_ns=_until_all_came(found),
        peer=np.full(len(found), -1, dtype=np.int64),
        event=found.collective,
        sent_bytes=found.sent_bytes,
        received_bytes=found.received_bytes,
    )


def _until_all_came(found: Collectives) -> Ints:
    """Return how long each rank is in a collective before the last of its ranks has come.

    Also the root of a broadcast, which needs nobody by the definition of its wait states: gloo holds it until then.
    """
    last = np.full(int(found.collective.max(initial=-1)) + 2, NOBODY)
    common = found.collective >= 0
    np.maximum.at(last, found.collective[common], found.start_ns[common])
    length = np.minimum(last[found.collective], found.end_ns) - found.call_ns
    known = common & (length > 2 * found.clock_error_ns[found.party])
    return np.where(known, length, 0)


def _messages(
    trace: Trace, defined: _Defined, groups: _Numbers[Group], kinds: _Numbers[str], waits: _Waits
) -> GroupCalls:
    log = messages(trace)
    ends, calls = log.ends, log.calls
    process = np.array(processes_of_locations(trace), dtype=np.int64)[ends.place]
    texts, all_ranks = message_texts(trace), tuple(sorted({rank for rank in ranks_of(trace) if rank is not None}))
    group = np.full(len(ends), -1, dtype=np.int64)
    for key, own in rows_by(process * (len(texts.texts) + 1) + ends.communicator + 1):
        of_process, text = divmod(key, len(texts.texts) + 1)
        name = texts.text(text - 1) or ""
        (members, description), *_ = defined.get((of_process, name)) or [(all_ranks, "")]
        group[own] = groups.of(Group(name, description, members))
    event = np.full(len(ends), -1, dtype=np.int64)
    first = int(collectives(trace).collective.max(initial=-1)) + 1
    event[log.send] = event[log.receive] = first + np.arange(len(log.send))
    nothing = np.zeros(len(ends), dtype=np.int64)
    return GroupCalls(
        group=group,
        kind=np.where(ends.sent, kinds.of(SEND), kinds.of(RECEIVE)),
        process=process,
        rank=np.where(ends.sent, ends.sender, ends.receiver),
        phase=nothing.copy(),
        asked_ns=calls.asked_ns,
        begin_ns=calls.begin_ns,
        end_ns=calls.end_ns,
        wait_ns=waits.of(ends.place, calls.begin_ns),
        peer=np.where(ends.sent, ends.receiver, ends.sender),
        event=event,
        sent_bytes=np.where(ends.sent, ends.size_bytes, 0),
        received_bytes=np.where(ends.sent, 0, ends.size_bytes),
    )


def _phases(trace: Trace) -> Callable[[int, Ints], Ints]:
    """Return a function from a process and moments there to the places of their phases in PHASES."""
    found = {process: activities(stream) for process, stream in read_streams(trace)}

    def of(process: int, times_ns: Ints) -> Ints:
        out = np.full(len(times_ns), PHASES.index("outside"), dtype=np.int64)
        if process in found:
            acts = found[process]
            part = np.append(acts.part, -1)[interval_at(acts.start_ns, acts.end_ns, times_ns)]
            out[part == BACKWARD] = PHASES.index("backward")
            # Any other operator counts as of the forward pass; here only those in the call of a module do.
            in_model = np.append(acts.in_model, False)[interval_at(acts.start_ns, acts.end_ns, times_ns)]
            out[(part == FORWARD) & in_model] = PHASES.index("forward")
        return out

    return of
