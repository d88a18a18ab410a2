"""The twin of native/structure/step_choice.cpp in Python: the same rules, written to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.steps.loop_choice.events import CALLS, MPI, Events
from strobe.steps.loop_choice.levels import Level
from strobe.steps.thread_spans import Bools, Ints, Stream, within
from tests.unit.native_choice import Choice

# Below, nobody would call a level without an anchor the main loop: in a single forward pass, and where
# a model is loaded, the best level scores up to 0.7.
MIN_SCORE = 0.75
# Where little but start-up was recorded beside it, a loop takes a small part of the time. It must then be perfectly
# regular (variation at most) and run so often, take this share of the time, and hold that of the events that would make
# the score.
_STRICT_VARIATION = 0.05
_STRICT_COUNT = 20
_STRICT_COVERAGE = 0.25
_STRICT_SCORE = 0.65
# A compiled program's call of MPI from one place is a loop where it comes so often and is more than this share of them.
_FEWEST_OF_ONE = 5
_MOST_OF_ALL = 0.5
# Of this score, and with no rival around it or inside of it, a level is more than a guess.
_GOOD_SCORE = 1.0
_RIVAL = 0.8
# What is done once in more iterations than these is nobody's step.
_MOST_OFTEN = 64
# Two iterations are a loop where so much repeats (events and transitions), and nothing else stands out half as much.
_PAIR_SPINE = 50
_PAIR_SCORE = 1.5

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

# On the other hand, what is done every so often (output, statistics, new neighbours) is not a step, but the loop inside
# of it is. The same call of a function must hold both, and its own work takes less than this share of the time.
_MOST_OF_THE_TIME = 0.5
# It comes once in so many inner iterations, or in so many where functions are unknown; fewer are parts of a step.
_EVERY_SO_OFTEN = 5
_OFTEN = 8
# It brings little (spine), and next to nothing where functions are unknown.
_LITTLE_MORE = 10
_NO_MORE = 3
# A branch of a loop is taken in fewer than one of so many iterations, in this share of the cases in two in a row, and
# makes an iteration no longer than so many of the others.
_SOME_OF_THEM = 1.5
_IN_A_ROW = 0.05
_AS_MANY = 1.5
_NEARLY_ALL = 0.9
# Done first after the first of so many, it is done where a counter from zero is a multiple.
_FROM_ZERO = 4


@dataclass(frozen=True)
class CutOut(Events):
    """Events that were cut out of a longer sequence, at which end."""

    begins_before: bool = False
    goes_on: bool = False


def choose(stream: Stream, events: Events, levels: Sequence[Level] | None = None) -> Choice | None:
    """Choose the step among the levels of a sequence; None if none of them looks like a main loop."""
    levels = events.levels() if levels is None else levels
    best = levels[0] if levels else None
    pair = None if best is not None and best.score >= 2 * _PAIR_SCORE else _pair(events, best)
    if pair is not None:
        return Choice(events, [pair, *levels], pair, events.rows[events.occurrences(pair)])
    if best is not None and best.score < MIN_SCORE:
        found = (each for each in levels if _is_short_loop(events, each) or _is_of_one_call(stream, events, each))
        best = next(found, None)
    if best is None:
        return None
    chosen, promotion, enclosing = best, "", False
    while (inner := demoted(stream, events, chosen, levels) or taken_at_times(chosen, levels)) is not None:
        chosen = inner
    below = chosen is not best
    if not below:
        while (outer := promoted(stream, events, chosen, levels)) is not None:
            chosen, promotion, enclosing = outer
    promotion = promotion or _other_choice(stream, events, chosen, levels, below)
    rival = _has_rival(chosen, levels)
    sure = not promotion and not rival and chosen.score >= _GOOD_SCORE and chosen.count > 2
    rows = events.rows[events.occurrences(chosen)]
    return Choice(events, levels, chosen, rows, promotion, rival, enclosing, below, "medium" if sure else "low")


def _other_choice(stream: Stream, events: Events, chosen: Level, levels: Sequence[Level], below: bool) -> str:
    """Name what is done every so often and could be the step as well; "" where that is out of the question."""
    for outer in sorted(levels, key=lambda level: -level.count):
        if outer.count >= chosen.count or not is_every_so_often(stream, events, chosen, outer):
            continue
        often = round(float(np.median(trips(chosen.positions, outer.positions))))
        if not below and (often > _MOST_OFTEN or leaves_some_over(events, chosen, outer)):
            continue
        name = stream.names[stream.region[events.rows[outer.positions[0]]]]
        return f"each does the same, and something else is done every {often}: {name}, the other choice"
    return ""


def _pair(events: Events, best: Level | None) -> Level | None:
    """The level of two iterations that are nearly all there is."""
    found = events.levels(min_count=2, most=1)
    if not found or found[0].count != 2 or found[0].spine < _PAIR_SPINE or found[0].score < _PAIR_SCORE:
        return None
    return found[0] if best is None or found[0].score >= 2 * best.score else None


def _is_short_loop(events: Events, level: Level) -> bool:
    """Whether a level is a loop without doubt, but takes a small part of the time."""
    if level.cvn > _STRICT_VARIATION or level.count < _STRICT_COUNT or level.coverage < _STRICT_COVERAGE:
        return False
    held = (level.positions[-1] - level.positions[0]) * level.count / (level.count - 1) / len(events)
    return bool(level.score / level.coverage * min(1.0, max(held, level.coverage)) >= _STRICT_SCORE)


def _is_of_one_call(stream: Stream, events: Events, level: Level) -> bool:
    """Whether little but one call is repeated: by a loop, where no function is known."""
    if events.kind != "mpi" or level.marker_source is not None or level.count < _FEWEST_OF_ONE:
        return False
    seldom = level.count <= _MOST_OF_ALL * len(events) or level.coverage < _STRICT_COVERAGE
    return not seldom and bool(stream.parent[events.rows[level.positions[0]]] < 0)


def _has_rival(chosen: Level, levels: Sequence[Level]) -> bool:
    return any(
        level.score >= _RIVAL * chosen.score and not 0.9 <= level.count / chosen.count <= 1.1 and level is not chosen
        for level in levels
    )


def innermost_with(anchor: Ints, events: Events, levels: Sequence[Level]) -> Level | None:
    """The innermost level that has an anchor in at least 90 % of its iterations and is not more frequent than it."""
    fitting = [
        level
        for level in levels
        if level.count <= 1.1 * len(anchor)
        and np.mean(np.diff(np.searchsorted(anchor, events.rows[level.positions])) > 0) >= 0.9
    ]
    if not fitting:
        return None
    most = max(level.count for level in fitting)
    return max((level for level in fitting if level.count >= 0.9 * most), key=lambda level: level.score)


def trips(inner: Ints, outer: Ints) -> Ints:
    """How many of the inner positions lie in each interval between two outer ones."""
    return np.diff(np.searchsorted(inner, outer))


def usual_trips(inner: Level, outer: Level) -> int | None:
    """The number of inner iterations that every outer one holds; None if it varies.

    The first mark may lie before the loop: what is done every so often is often done once to begin with.
    """
    inside = trips(inner.positions, outer.positions)
    for counts in (inside, inside[1:]):
        if len(counts) and counts.std() < _EQUAL_TRIPS * counts.mean():
            return round(float(counts.mean()))
    return None


def promoted(stream: Stream, events: Events, inner: Level, levels: Sequence[Level]) -> tuple[Level, str, bool] | None:
    """Return the next outer level that is the step rather than this one, why, and whether it is a function."""
    for outer in sorted(levels, key=lambda level: -level.count):
        least = _FEWER_OUTER if outer.spine >= _MUCH_IN_IT else _FEWEST_OUTER
        if not least <= outer.count < inner.count or outer.coverage < _AS_LONG * inner.coverage:
            continue
        inside = trips(inner.positions, outer.positions)
        mean, varies = float(inside.mean()), inside.std() > _VARYING_TRIPS * inside.mean()
        if mean < 2:
            continue
        if usual_trips(inner, outer):
            if mean > _MOST_TRIPS or outer.cvn > max(0.15, inner.cvn):
                continue
            if events.kind in (CALLS, MPI) and is_every_so_often(stream, events, inner, outer):
                continue
            if outer.spine >= _LIKE_INNER * inner.spine:
                return outer, f"each holds {mean:.0f} equal iterations of a loop", False
            if events.kind == CALLS and mean >= _EVERY_SO_OFTEN and _is_a_loop_around(events, inner, outer):
                return outer, f"each holds {mean:.0f} equal iterations of a loop, and work around them", False
            if events.kind != CALLS and _does_something_else(events, inner, outer):
                return outer, f"each ends {mean:.0f} equal iterations with work of its own", False
        elif varies and outer.count >= _FEWEST_CALLS and _encloses(stream, events, inner, outer):
            return outer, f"a function that holds {inside.min()} to {inside.max()} iterations of a loop", True
    return None


def demoted(stream: Stream, events: Events, outer: Level, levels: Sequence[Level]) -> Level | None:
    """Return the inner level that is the step rather than this one, where something is only done every so often."""
    for inner in sorted(levels, key=lambda level: level.count):
        if inner.marker_source is None and is_every_so_often(stream, events, inner, outer):
            return inner
    return None


def taken_at_times(branch: Level, levels: Sequence[Level]) -> Level | None:
    """Return the loop in which this level is one of several branches: now one is taken, now another.

    An iteration with the branch is about as long (in events) as one without; and it is taken twice in a row, or again
    after some others: the numbers follow no rule.
    """
    for inner in sorted(levels, key=lambda level: level.count):
        if inner.count < _SOME_OF_THEM * branch.count or inner.cvn >= branch.cvn or inner.marker_source is not None:
            continue
        if inner.coverage < _AS_LONG * branch.coverage:
            continue
        inside = trips(inner.positions, branch.positions)
        as_usual = np.sort(np.bincount(inside))[-2:].sum() > _NEARLY_ALL * len(inside)
        if as_usual or np.mean(inside == 1) < _IN_A_ROW:
            continue
        length, taken = np.diff(inner.positions), trips(branch.positions, inner.positions) > 0
        if np.median(length[taken]) <= _AS_MANY * np.median(length[~taken]):
            return inner
    return None


def is_every_so_often(stream: Stream, events: Events, inner: Level, outer: Level) -> bool:
    """Whether the outer level is something that is done once in a fixed number of iterations of the inner one.

    The events of two nested loops can be the same. The difference: a loop within a loop runs to its end, so that
    iterations left over before the first mark, or behind the last one, belong to no inner loop; and work both before
    the inner loop and behind it is an outer loop's. Where neither is seen, a large number speaks against an inner loop.
    """
    usual = usual_trips(inner, outer)
    if usual is None or usual < 2:
        return False
    if not _side_by_side(stream, events, inner, outer):
        return False
    if events.kind in (CALLS, MPI) and leaves_some_over(events, inner, outer):
        return True
    if _own_time(stream, events, inner, outer) >= _MOST_OF_THE_TIME:
        return False
    if events.kind in (CALLS, MPI):
        little = outer.spine <= _LITTLE_MORE and usual >= _EVERY_SO_OFTEN
        return little and not _is_a_loop_around(events, inner, outer)
    return bool(outer.spine <= _NO_MORE and usual >= _OFTEN)


def _seen_ends(events: Events, level: Level) -> tuple[bool, bool]:
    """Whether a loop is seen to begin and to end: more lies there than between two of its marks, or nothing is cut."""
    longest = np.diff(level.positions).max()
    begins_before, goes_on = (events.begins_before, events.goes_on) if isinstance(events, CutOut) else (False, False)
    first = not begins_before or level.positions[0] > longest
    return bool(first), bool(not goes_on or len(events) - level.positions[-1] > longest)


def leaves_some_over(events: Events, inner: Level, outer: Level) -> bool:
    """Whether the inner iterations before the first outer mark and behind the last one are less than a whole loop.

    Those of a function that is called before and after what marks the outer level are one together. Something done
    first after one of many is done where a counter that began at zero is a multiple.
    """
    inside = trips(inner.positions, outer.positions)
    usual = round(float(np.median(inside)))
    before = int(np.searchsorted(inner.positions, outer.positions[0]))
    behind = inner.count - int(np.searchsorted(inner.positions, outer.positions[-1]))
    if before == 0 and inside[0] < usual:
        before = int(inside[0])  # the first mark lies before the loop
    if max(before, behind) > usual:
        return False  # it runs elsewhere, too
    first, last = _seen_ends(events, inner)
    if first and before == 1 and usual >= _FROM_ZERO:
        return True
    return first and last and (before + behind) % usual != 0


def _side_by_side(stream: Stream, events: Events, inner: Level, outer: Level) -> bool:
    """Whether the same calls of functions hold the iterations of both levels."""
    above = [_holders(stream, events.rows[level.positions]) for level in (inner, outer)]
    return np.array_equal(above[0], above[1])


def _holders(stream: Stream, rows: Ints) -> Ints:
    """The calls (-1: none) that hold a loop with these marks: those of the outermost function called as often."""
    while True:
        above: Ints = np.unique(stream.parent[rows])
        if len(above) < len(rows) or above[0] < 0:
            return above
        rows = above


def _own_time(stream: Stream, events: Events, inner: Level, outer: Level) -> float:
    """The share of an outer iteration's time that its inner iterations do not take.

    An inner iteration takes as long as one usually does, and so does one with the outer mark in it: the load of the
    machine lengthens some of both.
    """
    marks = inner.positions
    lasts = np.diff(events.starts_ns[marks])
    if events.kind == MPI:
        # Calls of MPI take as long as the slowest rank makes all others wait: that is nobody's work.
        waited_ns = np.concatenate([[0], np.cumsum(stream.duration_ns[events.rows])])
        lasts -= np.diff(waited_ns[marks])
    marked = trips(outer.positions, marks) > 0
    if marked.all() or not marked.any():
        return 0.0
    each_ns, with_mark_ns = float(np.median(lasts[~marked])), float(np.median(lasts[marked]))
    own_ns = max(0.0, with_mark_ns - each_ns)
    return own_ns / max(1.0, own_ns + each_ns * len(marks) / outer.count)


def _is_a_loop_around(events: Events, inner: Level, outer: Level) -> bool:
    """Whether what the outer level does between two runs of the inner loop makes it a loop around that one.

    It does if something in it is done as often as the inner loop runs: both go through the same things. Or if an end of
    it opens the first iteration, and what is missing there ends the last one.
    """
    marks, usual = inner.positions, usual_trips(inner, outer)
    lengths, marked = np.diff(marks), trips(outer.positions, marks) > 0
    if marked.all() or not marked.any():
        return False
    body = int(np.median(lengths[~marked]))
    at = np.flatnonzero(marked)
    gaps = [events.ids[marks[i] + body : marks[i + 1]] for i in (at[0], at[len(at) // 2], at[-1])]
    if all((np.unique(gap, return_counts=True)[1] == usual).any() for gap in gaps):
        return True
    own = gaps[1]
    before, behind = events.ids[: marks[0]], events.ids[marks[-1] + body :]
    if np.array_equal(before[-len(own) :], own) or np.array_equal(behind[: len(own)], own):
        return False
    first, last = _seen_ends(events, inner)
    return any(
        (np.array_equal(before[-cut:], own[-cut:]) if first else last)
        and (np.array_equal(behind[: len(own) - cut], own[:-cut]) if last else first)
        for cut in range(1, len(own))
    )


def _does_something_else(events: Events, inner: Level, outer: Level) -> bool:
    """Whether an outer iteration does much that its inner iterations never do."""
    low, high = int(outer.positions[0]), int(outer.positions[-1])
    marks = inner.positions[(inner.positions >= low) & (inner.positions < high)]
    # An inner iteration is as long as most are; what follows until the next begins is outer.
    ends = np.minimum(marks + int(np.median(np.diff(marks))), np.append(marks[1:], high))
    body = within(np.arange(len(events)), marks, ends)
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
