"""Which executions of collectives belong together: by number, by order or by time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strobe.ranks.collective_columns import ALL_NEED_ALL, Collectives
from strobe.ranks.messages import numbered, places
from strobe.tables.column_arrays import Ints, rows_by

# Matching by order is right if at least this part of the matched collectives run at the same moment everywhere.
_TOGETHER = 0.5
# This part of the ends of collectives lies within the error of the clocks.
_WITHIN = 0.9


def matched(found: Collectives, of_communicator: list[bool]) -> Collectives:
    """Return collectives with the numbers of those that belong together, and the errors of clocks.

    of_communicator: by line, whether it is that of a communicator of MPI, all of whose collectives are there. See
    `strobe.ranks.collectives`.
    """
    collective = np.full(len(found), -1, dtype=np.int64)
    count = 0
    off = np.sort(np.maximum(found.clock_error_ns, 0))
    tolerance = int(off[-2:].sum())
    handed_over = np.array([party.hands_over for party in found.parties], dtype=bool)
    for line, at in rows_by(found.line):
        if (found.sequence[at] >= 0).all():
            number = _by_number(found.party[at], found.sequence[at])
        elif handed_over[found.party[at]].any():  # they need not overlap, and that they are of one group is not known
            number = np.arange(len(at))
        else:
            all_wait = found.lines[line][0] in ALL_NEED_ALL
            counted = _by_order(found, at, tolerance, together=all_wait and not of_communicator[line])
            if counted is None:
                counted = _by_time(found, at, tolerance) if all_wait else np.arange(len(at))
            number = counted
        _, inverse, members = np.unique(number, return_inverse=True, return_counts=True)
        several = members[inverse] > 1
        collective[at[several]] = inverse[several] + count
        count += len(members)
    known = replace(found, collective=collective)
    return replace(known, clock_error_ns=_errors(known))


def _by_number(party: Ints, sequence: Ints) -> Ints:
    """Return the same number for the executions with the same sequence number; of several of a party by their order."""
    occurrence = places(numbered(party, sequence))  # they are in order of start
    return sequence * (int(occurrence.max()) + 1) + occurrence


def _by_order(found: Collectives, at: Ints, tolerance: int, *, together: bool) -> Ints | None:
    """Return the place of every execution in its party's order, None if the order does not match them.

    `together`: nobody ends before all have come, so that most must have run at the same moment.
    """
    parties, count = np.unique(found.party[at], return_counts=True)
    if len(parties) < 2 or (count != count[0]).any():
        return None
    start, end = (column[at].reshape(len(parties), -1) for column in (found.start_ns, found.end_ns))
    if together and np.mean(start.max(axis=0) <= end.min(axis=0) + tolerance) < _TOGETHER:
        return None
    return np.tile(np.arange(count[0]), len(parties))


def _by_time(found: Collectives, at: Ints, tolerance: int) -> Ints:
    """Return the same number for executions that overlap, one a party.

    In order of their ends, those of a collective come one after the other: the next one ends on nobody before
    everybody has come to it, and so has left the last one.
    """
    order = np.argsort(found.end_ns[at], kind="stable")
    columns = (column[at[order]] for column in (found.party, found.start_ns, found.end_ns))
    out, number, until, members = [], -1, -(2**62), set[int]()
    # Collectives are few: about one in a thousand spans.
    for party, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if party in members or start > until:
            number, until, members = number + 1, end + tolerance, set()
        members.add(party)
        out.append(number)
    numbers = np.empty(len(at), dtype=np.int64)
    numbers[order] = out
    return numbers


def _errors(found: Collectives) -> Ints:
    """Return the error of the clocks; if the trace lacks it, how far apart the ends of the same collective are."""
    out = found.clock_error_ns.copy()
    handed_over = np.array([party.hands_over for party in found.parties], dtype=bool)
    all_wait = found.of_kinds(ALL_NEED_ALL) & found.blocking
    (at,) = np.nonzero((found.collective >= 0) & ~handed_over[found.party] & all_wait)
    at = at[np.lexsort((found.end_ns[at], found.collective[at]))]
    begin = np.flatnonzero(np.diff(found.collective[at], prepend=-1))
    count = np.diff(begin, append=len(at))
    middle = found.end_ns[at][begin + (count - 1) // 2]
    apart = np.abs(found.end_ns[at] - np.repeat(middle, count))
    unknown = out < 0
    out[unknown] = 0
    for party, own in rows_by(found.party[at]) if unknown.any() else ():
        if unknown[party]:
            out[party] = int(np.ceil(np.quantile(apart[own], _WITHIN)))
    return out
