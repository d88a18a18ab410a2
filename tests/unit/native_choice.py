"""Choice: which of the loop levels of one sequence is the step, by their structure alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.native import core
from strobe.steps.loop_choice.events import KINDS, MPI, Events
from strobe.steps.loop_choice.levels import Level, as_native, level_of
from strobe.steps.thread_spans import Ints, Stream


@dataclass(frozen=True)
class Choice:
    """The level that is the step by structure alone, in which events, and why it and not the best-scored one.

    promotion: "" if the level with the best score was taken, and nothing is done every so often. rival: another level
    of the nest scores nearly as well. enclosing: the step is a call of a function, and the loop that it holds varies.
    below: the level with the best score lies around it, and does something every so often. confidence: `medium` at
    most: nothing marks a step here. rows: the spans that mark a step. source: what of the program's source tells them,
    "" where it is not known.
    """

    events: Events
    levels: Sequence[Level]
    level: Level
    rows: Ints
    promotion: str = ""
    rival: bool = False
    enclosing: bool = False
    below: bool = False
    confidence: str = "low"
    source: str = ""


def choose(stream: Stream, events: Events, levels: Sequence[Level] | None = None) -> Choice | None:
    """Choose the step among the levels of a sequence; None if none of them looks like a main loop."""
    levels = events.levels() if levels is None else levels
    waited_ns: Ints = np.empty(0, dtype=np.int64)
    if events.kind == MPI:
        duration_ns = stream.duration_ns[events.rows]
        waited_ns = np.cumsum(duration_ns) - duration_ns
    found = core.choose_step(
        KINDS.index(events.kind),
        np.ascontiguousarray(events.ids, dtype=np.uint32),
        np.ascontiguousarray(events.starts_ns),
        np.ascontiguousarray(events.times_ns),
        waited_ns,
        np.ascontiguousarray(events.rows),
        np.ascontiguousarray(stream.parent),
        [as_native(level) for level in levels],
        regions=np.ascontiguousarray(stream.region),
        codes=stream.codes,
    )
    if found is None:
        return None
    pair, index, promotion, other, rival, enclosing, below, confidence, rows, source = found
    if pair is not None:
        levels, index = [level_of(pair), *levels], 0
    if other is not None:
        promotion += f": {stream.names[stream.region[events.rows[other]]]}, the other choice"
    if rows is None:
        rows = events.rows[events.occurrences(levels[index])]
    return Choice(events, levels, levels[index], rows, promotion, rival, enclosing, below, confidence, source)
