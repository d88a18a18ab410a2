"""Choice: which of the loop levels of one sequence is the step, by their structure alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.structure.events import CALLS, Events
from strobe.structure.levels import Level
from strobe.structure.stream import Bools, Ints, Stream

# Below, a level without an anchor is no loop that anybody would call the main one: in a single forward pass, and where
# a model is loaded, the best level scores up to 0.7.
MIN_SCORE = 0.75
# Where little but start-up was recorded beside it, a loop takes a small part of the time. It must then be perfectly
# regular (variation at most) and run so often, take this share of the time, and hold that of the events that would make
# the score.
_STRICT_VARIATION = 0.05
_STRICT_COUNT = 20
_STRICT_COVERAGE = 0.25
# Of this score, and with no rival around it or inside of it, a level is more than a guess.
_GOOD_SCORE = 1.0
_RIVAL = 0.8
# Two iterations are a loop where so much repeats (events and transitions), and nothing else stands out half as much.
_PAIR_SPINE = 50
_PAIR_SCORE = 1.5

# An outer level is the step if all its iterations hold the same number of inner ones ...
_MOST_TRIPS = 64
_EQUAL_TRIPS = 0.05  # variation up to which numbers are the same
_FEWEST_OUTER = 8
# ... and it is as much of a loop (share of the inner one's spine), or what it does besides the inner loop is a good
# part of it (share of its events) and is done nowhere in the inner loop (share of these events): an update after
# micro-batches.
_LIKE_INNER = 0.5
_OWN_WORK = 0.1
_UNLIKE_INNER = 0.1
# A function that holds a loop whose number of iterations varies so much (coefficient of variation) is the step: how
# many tokens a request takes, how many iterations a solver needs, depends on the data; how many batches an epoch has
# does not.
_VARYING_TRIPS = 0.15
# On the other hand, what comes once in so many iterations of an inner loop, whose mark alone takes most of the time
# (share), and brings no more than itself (spine) is done every so often; the inner loop is the step.
_EVERY_SO_OFTEN = 8
_ALONE_TAKES = 0.5
_NO_MORE = 3
# Share of the inner iterations that must lie inside of that function.
_ENCLOSED = 0.9


@dataclass(frozen=True)
class Choice:
    """The level that is the step by structure alone, in which events, and why it and not the best-scored one.

    promotion: "" if the level with the best score was taken. rival: another level of the nest scores nearly as well.
    enclosing: the step is a call of a function, and the loop that it holds varies.
    """

    events: Events
    levels: Sequence[Level]
    level: Level
    promotion: str = ""
    rival: bool = False
    enclosing: bool = False

    @property
    def confidence(self) -> str:
        """`medium` at most: nobody says what a step is here."""
        sure = not self.promotion and not self.rival and self.level.score >= _GOOD_SCORE and self.level.count > 2
        return "medium" if sure else "low"


def choose(stream: Stream, events: Events, levels: Sequence[Level] | None = None) -> Choice | None:
    """Choose the step among the levels of a sequence; None if none of them looks like a main loop."""
    levels = events.levels() if levels is None else levels
    best = levels[0] if levels else None
    pair = None if best is not None and best.score >= 2 * _PAIR_SCORE else _pair(events, best)
    if pair is not None:
        return Choice(events, [pair, *levels], pair)
    if best is not None and best.score < MIN_SCORE:
        best = next((level for level in levels if _is_short_loop(events, level)), None)
    if best is None:
        return None
    chosen, promotion, enclosing = best, "", False
    if (inner := _demotion(stream, events, best, levels)) is not None:
        return Choice(events, levels, inner, "each does the same, and something else is done every so often")
    while (outer := _promotion(stream, events, chosen, levels)) is not None:
        chosen, promotion, enclosing = outer
    return Choice(events, levels, chosen, promotion, _has_rival(chosen, levels), enclosing)


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
    return bool(level.score / level.coverage * min(1.0, held) >= MIN_SCORE)


def trips(inner: Ints, outer: Ints) -> Ints:
    """How many of the inner positions lie in each interval between two outer ones."""
    counts: Ints = np.diff(np.searchsorted(inner, outer))
    return counts


def _has_rival(chosen: Level, levels: Sequence[Level]) -> bool:
    return any(
        level.score >= _RIVAL * chosen.score and not 0.9 <= level.count / chosen.count <= 1.1 and level is not chosen
        for level in levels
    )


def _promotion(stream: Stream, events: Events, inner: Level, levels: Sequence[Level]) -> tuple[Level, str, bool] | None:
    """The next outer level that is the step rather than this one, why, and whether it is a function around it."""
    for outer in sorted(levels, key=lambda level: -level.count):
        if not _FEWEST_OUTER <= outer.count < inner.count or outer.coverage < 0.8 * inner.coverage:
            continue
        inside = trips(inner.positions, outer.positions)
        mean = float(inside.mean())
        if mean < 2:
            continue
        if mean <= _MOST_TRIPS and inside.std() < _EQUAL_TRIPS * mean:
            if outer.cvn > max(0.15, inner.cvn):
                continue
            if outer.spine >= _LIKE_INNER * inner.spine:
                return outer, f"each holds {mean:.0f} equal iterations of a loop", False
            if events.kind != CALLS and _does_something_else(events, inner, outer):
                return outer, f"each ends {mean:.0f} equal iterations with work of its own", False
        elif inside.std() > _VARYING_TRIPS * mean and _encloses(stream, events, inner, outer):
            return outer, f"a function that holds {inside.min()} to {inside.max()} iterations of a loop", True
    return None


def _demotion(stream: Stream, events: Events, outer: Level, levels: Sequence[Level]) -> Level | None:
    """The inner level that is the step rather than this one, where only something is done every so often."""
    if outer.spine > _NO_MORE:
        return None
    for inner in sorted(levels, key=lambda level: level.count):
        if inner.count < _EVERY_SO_OFTEN * outer.count or inner.marker_source is not None:
            continue
        inside = trips(inner.positions, outer.positions)
        if inside.std() >= _EQUAL_TRIPS * inside.mean() or inside.min() < _EVERY_SO_OFTEN:
            continue
        between = (inner.positions >= outer.positions[0]) & (inner.positions < outer.positions[-1])
        alone_ns = stream.duration_ns[events.rows[inner.positions[between]]].sum()
        if alone_ns >= _ALONE_TAKES * (events.starts_ns[outer.positions[-1]] - events.starts_ns[outer.positions[0]]):
            return inner
    return None


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
    if events.kind != CALLS:
        return False
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
