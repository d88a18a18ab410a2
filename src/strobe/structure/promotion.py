"""Promotion: when a level around the one that scores best is the step, and when one inside of it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.structure.events import CALLS, MPI, Events
from strobe.structure.levels import Level
from strobe.structure.stream import Bools, Ints, Stream

# An outer level spans this share of the inner one's time; all its iterations hold the same number of inner ones if that
# varies so little (coefficient of variation).
_AS_LONG = 0.8
_EQUAL_TRIPS = 0.05

# An outer level is the step if all its iterations (so many at least, or fewer of a loop with much in it: spine) hold
# the same, small number of inner ones ...
_MOST_TRIPS = 64
_FEWEST_OUTER = 8
_FEWER_OUTER, _MUCH_IN_IT = 5, 10
# ... and it is as much of a loop (share of the inner one's spine), or what it does besides the inner loop is a good
# part of it (share of its events) and done nowhere in the inner loop (share of these): an update after micro-batches.
_LIKE_INNER = 0.5
_OWN_WORK = 0.1
_UNLIKE_INNER = 0.1

# A function (called so often at least) that holds a loop whose number of iterations varies so much is the step: how
# many tokens a request takes, how many iterations a solver needs, depends on the data; how many batches an epoch has
# does not. So many of the inner iterations must lie inside of that function.
_VARYING_TRIPS = 0.15
_FEWEST_CALLS = 20
_ENCLOSED = 0.9

# On the other hand, what comes once in so many iterations of an inner loop is done every so often, and the inner loop
# is the step: if it brings no more than itself (spine) where the mark of the inner loop alone takes most of the time;
_EVERY_SO_OFTEN = 8
_NO_MORE = 3
_ALONE_TAKES = 0.5
# or if it brings little more (output, a new list of neighbours) to inner iterations that follow each other nearly as
# regularly (variation at most) as if there were nothing else. Both must be called by the same function.
_LITTLE_MORE = 10
_NEARLY_REGULAR = 0.5


def trips(inner: Ints, outer: Ints) -> Ints:
    """How many of the inner positions lie in each interval between two outer ones."""
    counts: Ints = np.diff(np.searchsorted(inner, outer))
    return counts


def promoted(stream: Stream, events: Events, inner: Level, levels: Sequence[Level]) -> tuple[Level, str, bool] | None:
    """Return the next outer level that is the step rather than this one, why, and whether it is a function."""
    for outer in sorted(levels, key=lambda level: -level.count):
        least = _FEWER_OUTER if outer.spine >= _MUCH_IN_IT else _FEWEST_OUTER
        if not least <= outer.count < inner.count or outer.coverage < _AS_LONG * inner.coverage:
            continue
        inside = trips(inner.positions, outer.positions)
        mean = float(inside.mean())
        if mean < 2:
            continue
        if inside.std() < _EQUAL_TRIPS * mean:
            if mean > _MOST_TRIPS or outer.cvn > max(0.15, inner.cvn):
                continue
            if outer.spine >= _LIKE_INNER * inner.spine:
                return outer, f"each holds {mean:.0f} equal iterations of a loop", False
            if events.kind != CALLS and _does_something_else(events, inner, outer):
                return outer, f"each ends {mean:.0f} equal iterations with work of its own", False
        elif _varies(inside) and outer.count >= _FEWEST_CALLS and _encloses(stream, events, inner, outer):
            return outer, f"a function that holds {inside.min()} to {inside.max()} iterations of a loop", True
    return None


def demoted(stream: Stream, events: Events, outer: Level, levels: Sequence[Level]) -> Level | None:
    """Return the inner level that is the step rather than this one, where something is only done every so often."""
    for inner in sorted(levels, key=lambda level: level.count):
        if inner.count < (_EVERY_SO_OFTEN - 1) * outer.count or inner.marker_source is not None:
            continue
        inside = trips(inner.positions, outer.positions)
        if inside.min() < _EVERY_SO_OFTEN or inside.std() >= _EQUAL_TRIPS * inside.mean():
            continue
        if not _side_by_side(stream, events, inner, outer):
            continue
        if outer.spine <= _NO_MORE and _takes_most(stream, events, inner, outer):
            return inner
        little_more = outer.spine <= _LITTLE_MORE and events.kind in (CALLS, MPI) and inside.max() <= _MOST_TRIPS
        if little_more and inner.cvn <= _NEARLY_REGULAR and inner.coverage >= _AS_LONG * outer.coverage:
            return inner
    return None


def _varies(inside: Ints) -> bool:
    return bool(inside.std() > _VARYING_TRIPS * inside.mean())


def _side_by_side(stream: Stream, events: Events, inner: Level, outer: Level) -> bool:
    """Whether the same calls of functions hold the marks of both levels."""
    above = [np.unique(stream.parent[events.rows[level.positions]]) for level in (inner, outer)]
    return np.array_equal(above[0], above[1])


def _takes_most(stream: Stream, events: Events, inner: Level, outer: Level) -> bool:
    """Whether the mark of the inner level alone takes most of the time of the outer one."""
    first, last = outer.positions[0], outer.positions[-1]
    marks = inner.positions[(inner.positions >= first) & (inner.positions < last)]
    alone_ns = stream.duration_ns[events.rows[marks]].sum()
    return bool(alone_ns >= _ALONE_TAKES * (events.starts_ns[last] - events.starts_ns[first]))


def _does_something_else(events: Events, inner: Level, outer: Level) -> bool:
    """Whether an outer iteration does much that its inner iterations never do."""
    low, high = int(outer.positions[0]), int(outer.positions[-1])
    marks = inner.positions[(inner.positions >= low) & (inner.positions < high)]
    # An inner iteration is as long as most are; what follows until the next begins is outer.
    ends = np.minimum(marks + int(np.median(np.diff(marks))), np.append(marks[1:], high))
    edges = np.zeros(len(events) + 1, dtype=np.int64)
    np.add.at(edges, marks, 1)
    np.add.at(edges, ends, -1)
    body = np.cumsum(edges[:-1]) > 0
    own = ~body
    own[:low] = own[high:] = False
    known = np.zeros(int(events.ids.max()) + 1, dtype=bool)
    known[events.ids[body]] = True
    strange: Bools = ~known[events.ids[own]]
    return bool(len(strange) >= _OWN_WORK * (high - low) and strange.mean() >= _UNLIKE_INNER)


def _encloses(stream: Stream, events: Events, inner: Level, outer: Level) -> bool:
    """Whether each outer iteration has one call of a function that holds its inner iterations."""
    marks = events.rows[outer.positions]
    at = events.rows[inner.positions]
    while (at := stream.parent[at[at >= 0]]).size:
        calls = np.unique(at[at >= 0])
        if len(calls) < outer.count - 1:
            return False
        once = np.mean(trips(calls, marks) == 1) >= _ENCLOSED
        if once and abs(len(calls) - outer.count) <= 1 and np.count_nonzero(at >= 0) >= _ENCLOSED * inner.count:
            return True
    return False
