"""Choice: which of the loop levels of one sequence is the step, by their structure alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.steps.loop_choice.events import Events
from strobe.steps.loop_choice.levels import Level
from strobe.steps.loop_choice.promotion import (
    demoted,
    is_every_so_often,
    leaves_some_over,
    promoted,
    taken_at_times,
    trips,
)
from strobe.steps.thread_spans import Stream

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
# Of this score, and with no rival around it or inside of it, a level is more than a guess.
_GOOD_SCORE = 1.0
_RIVAL = 0.8
# What is done once in more iterations than these is nobody's step.
_MOST_OFTEN = 64
# Two iterations are a loop where so much repeats (events and transitions), and nothing else stands out half as much.
_PAIR_SPINE = 50
_PAIR_SCORE = 1.5


@dataclass(frozen=True)
class Choice:
    """The level that is the step by structure alone, in which events, and why it and not the best-scored one.

    promotion: "" if the level with the best score was taken, and nothing is done every so often. rival: another level
    of the nest scores nearly as well. enclosing: the step is a call of a function, and the loop that it holds varies.
    below: the level with the best score lies around it, and does something every so often.
    """

    events: Events
    levels: Sequence[Level]
    level: Level
    promotion: str = ""
    rival: bool = False
    enclosing: bool = False
    below: bool = False

    @property
    def confidence(self) -> str:
        """`medium` at most: nothing marks a step here."""
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
    while (inner := demoted(stream, events, chosen, levels) or taken_at_times(chosen, levels)) is not None:
        chosen = inner
    below = chosen is not best
    if not below:
        while (outer := promoted(stream, events, chosen, levels)) is not None:
            chosen, promotion, enclosing = outer
    promotion = promotion or _other_choice(stream, events, chosen, levels, below)
    return Choice(events, levels, chosen, promotion, _has_rival(chosen, levels), enclosing, below)


def _other_choice(stream: Stream, events: Events, chosen: Level, levels: Sequence[Level], below: bool) -> str:
    """Name what is done every so often and could be the step as well; "" where that is out of the question."""
    for outer in sorted(levels, key=lambda level: -level.count):
        if outer.count >= chosen.count or not is_every_so_often(stream, events, chosen, outer):
            continue
        often = round(float(np.median(trips(chosen.positions, outer.positions))))
        if not below and (often > _MOST_OFTEN or leaves_some_over(chosen, outer)):
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


def _has_rival(chosen: Level, levels: Sequence[Level]) -> bool:
    return any(
        level.score >= _RIVAL * chosen.score and not 0.9 <= level.count / chosen.count <= 1.1 and level is not chosen
        for level in levels
    )
