"""What was not complete when flight recorders were dumped: the operation that ranks wait in, and who differs there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strobe.ranks.collective_kinds import kind_of
from strobe.ranks.flight_recorder.entries import Call, Entry, Group, entries, listed, members
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

MISSING, NO_DUMP, OVERWRITTEN = "not called", "no dump", "overwritten"
OPERATION, SIZE, DTYPE = "operation", "size", "dtype"
# Ranks may put in, or get out, tensors of different sizes.
_OWN_INPUT, _OWN_OUTPUT = ("scatter", "alltoall"), ("gather", "alltoall")
# Only the root's tensors count, or it alone has some.
_INPUT_OF_ROOT, _OUTPUT_OF_ROOT = ("scatter", "broadcast"), ("gather",)


@dataclass(frozen=True)
class Part:
    """A rank in an unfinished operation.

    entry: what it called; None if it did not call it, has no dump, or its entry was overwritten by later ones. `state`
    is then MISSING, NO_DUMP or OVERWRITTEN, else that of the entry. difference: OPERATION, SIZE, DTYPE, or "" where
    it called what most ranks called. last: the last entry of the rank in any group, if it did not call the operation.
    """

    rank: int
    state: str
    entry: Entry | None = None
    difference: str = ""
    last: Entry | None = None


@dataclass(frozen=True)
class Unfinished:
    """An operation of a group that is not complete on all ranks: the first such one of the group, or of two ranks.

    usual: the entry of a rank that called what most ranks called. later: unfinished operations of the group behind it.
    """

    group: Group
    sequence: int
    usual: Entry
    parts: tuple[Part, ...]
    later: int

    @property
    def blamed(self) -> list[Part]:
        """The ranks that have not called it, or called something else."""
        return [each for each in self.parts if each.state == MISSING or each.difference]


@cached_on_trace
def unfinished(trace: Trace) -> list[Unfinished]:
    """Return the first unfinished operation of each group and pair of ranks; first those that others wait for.

    Those come first in which ranks are missing that wait in no other one, or called something else.
    """
    found = entries(trace)
    groups = dict.fromkeys(each.group for own in found.values() for each in own)
    out = [one for group in groups if (one := _collective(group, found)) is not None]
    out += [one for group in groups for one in _messages(group, found)]
    waiting = {each.rank for one in out for each in one.parts if each.entry is not None and not each.entry.complete}

    def order(one: Unfinished) -> tuple[int, int]:
        roots = [each for each in one.blamed if each.difference or each.rank not in waiting]
        return 0 if roots else 1 if one.blamed else 2, one.usual.start_ns

    return sorted(out, key=order)


def _collective(group: Group, found: Mapping[int, list[Entry]]) -> Unfinished | None:
    own = {rank: [each for each in rows if each.group == group and not each.message] for rank, rows in found.items()}
    open_ones = sorted({each.sequence for rows in own.values() for each in rows if not each.complete})
    if not open_ones:
        return None
    sequence = open_ones[0]
    here = {rank: [each for each in rows if each.sequence == sequence] for rank, rows in own.items()}
    ranks = sorted({*(members(group, found) or ()), *(rank for rank, rows in own.items() if rows)})
    usual, differences = _compared({rank: rows for rank, rows in here.items() if rows}, len(ranks))
    parts = []
    for rank in ranks:
        if rank not in found:
            parts.append(Part(rank, NO_DUMP))
        elif here[rank]:
            parts.append(Part(rank, here[rank][-1].state, here[rank][-1], differences[rank]))
        elif any(each.sequence > sequence for each in own[rank]):
            parts.append(Part(rank, OVERWRITTEN))
        else:
            parts.append(Part(rank, MISSING, last=found[rank][-1] if found[rank] else None))
    return Unfinished(group, sequence, usual, tuple(parts), len(open_ones) - 1)


def _messages(group: Group, found: Mapping[int, list[Entry]]) -> Iterator[Unfinished]:
    """Yield the first send or receive of each pair of ranks that is not complete.

    Each rank counts its messages with all others, so that their numbers do not match those of another one: what one
    has called and the other has not is known by their order.
    """
    ranks = members(group, found)
    if ranks is None:
        return
    ends: dict[tuple[int, int], dict[int, list[Entry]]] = {}
    for rank, rows in found.items():
        for each in rows:
            both = [ranks[at] for at in (each.source, each.destination) if at is not None and at < len(ranks)]
            if each.group == group and len(both) == 2 and rank in both:
                ends.setdefault((both[0], both[1]), {}).setdefault(rank, []).append(each)
    for pair, of_rank in ends.items():
        open_ones = {rank: [each for each in rows if not each.complete] for rank, rows in of_rank.items()}
        first = [(rank, rows[0]) for rank, rows in open_ones.items() if rows]
        if not first or pair[0] == pair[1]:
            continue
        rank, usual = min(first, key=lambda each: each[1].start_ns)
        other = pair[0] if rank == pair[1] else pair[1]
        parts = [Part(rank, usual.state, usual)]
        if other not in found:
            parts.append(Part(other, NO_DUMP))
        elif open_ones.get(other):
            answer = open_ones[other][0]
            parts.append(Part(other, answer.state, answer, _of_messages(usual, answer)))
        elif _has_answered(of_rank.get(other, []), of_rank[rank], found[other]):
            parts.append(Part(other, "completed", of_rank[other][-1]))
        else:
            parts.append(Part(other, MISSING, last=found[other][-1] if found[other] else None))
        parts.sort(key=lambda each: each.rank)
        yield Unfinished(group, usual.sequence, usual, tuple(parts), max(map(len, open_ones.values())) - 1)


def _has_answered(own: Sequence[Entry], others: Sequence[Entry], all_own: Sequence[Entry]) -> bool:
    """Return whether a rank has more complete calls than the other one: small messages are sent before they are
    received. Of a rank whose first entries are overwritten that is not known."""
    first = bool(all_own) and all_own[0].record == 0
    return first and len(own) > sum(each.complete for each in others)


def _of_messages(one: Entry, other: Entry) -> str:
    send, receive = (one, other) if one.call.operation == "send" else (other, one)
    if send.call.in_shapes != receive.call.out_shapes:
        return SIZE
    return "" if send.call.in_types == receive.call.out_types else DTYPE


def _compared(here: Mapping[int, list[Entry]], members_count: int) -> tuple[Entry, dict[int, str]]:
    """Return an entry of what most ranks called (of equally many, the lowest rank), and how each rank differs."""
    calls = {rank: tuple(_comparable(each.call) for each in rows) for rank, rows in sorted(here.items())}
    often = Counter(calls.values())
    usual = max(calls, key=lambda rank: often[calls[rank]])
    differences = {rank: _difference(calls[usual], each) for rank, each in calls.items()}
    if len(here) == members_count and not any(differences.values()) and not _even(here):
        differences = dict.fromkeys(differences, SIZE)
    return here[usual][-1], differences


def _comparable(call: Call) -> Call:
    """Return a call without what may differ between ranks, by the rules of PyTorch's own analyser."""
    kind = kind_of(call.operation)
    in_types, out_types = (" ".join(sorted({*map(str, listed(types))})) for types in (call.in_types, call.out_types))
    return Call(
        call.operation,
        "" if kind in _OWN_INPUT else call.in_shapes,
        "" if kind in _INPUT_OF_ROOT else in_types,
        "" if kind in _OWN_OUTPUT else call.out_shapes,
        "" if kind in _OUTPUT_OF_ROOT else out_types,
    )


def _difference(usual: Sequence[Call], other: Sequence[Call]) -> str:
    """Return how what a rank called differs from what most ranks called; "" if it does not."""
    if [each.operation for each in usual] != [each.operation for each in other]:
        return OPERATION
    if [(each.in_shapes, each.out_shapes) for each in usual] != [(each.in_shapes, each.out_shapes) for each in other]:
        return SIZE
    return "" if usual == other else DTYPE


def _even(here: Mapping[int, list[Entry]]) -> bool:
    """Return whether the ranks of an all-to-all put in as much as they get out; true of other operations."""
    calls = [each.call for rows in here.values() for each in rows]
    if len(calls) != len(here) or any(kind_of(each.operation) != "alltoall" for each in calls):
        return True
    return sum(_elements(each.in_shapes) for each in calls) == sum(_elements(each.out_shapes) for each in calls)


def _elements(shapes: str) -> int:
    return sum(math.prod(shape) for shape in listed(shapes))
