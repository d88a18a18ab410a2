"""The main loop of a stream: which loop level is "the step", where its iterations are marked, and how sure that is.

Ranges of frameworks (anchors) decide where there are any; otherwise the structure of the sequences does.
The structure is searched in every sequence of the stream, blind to anchors: only where two sequences agree is a step
certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strobe.native import core
from strobe.steps.loop_choice.agreement import agree
from strobe.steps.loop_choice.anchors import MARKS, anchor_rows, anchored_loop, one_after_the_other
from strobe.steps.loop_choice.choice import Choice, choose
from strobe.steps.loop_choice.events import LOOPS, MPI, OPERATORS, Events, events_of, without_peers, without_silence
from strobe.steps.loop_choice.levels import Level
from strobe.steps.thread_spans import Ints, Stream
from strobe.steps.training_activities import DATA_WAIT, part_of_regions

# Before the main loop and after it, a loop is searched in what holds at least this share of the events or of the time;
# it is a phase of the run if it has so many iterations, and this share of the main loop's time and of its spine: what
# prepares the data is none.
_WORTH_A_LOOP = 0.1
_FEWEST_ITERATIONS = 8
AS_MUCH_OF_A_LOOP = 0.25
_MOST_LOOPS = 8
NO_LOOP = "no loop stands out: nothing repeats often and regularly enough"


@dataclass(frozen=True)
class MainLoop:
    """Where the iterations of a main loop are marked.

    kind: `hint` (strobe.step ends a step), `range` (steps of a profiler or a serving engine), `optimizer`, `zero_grad`,
    `data_wait` (anchors of PyTorch), `structure` (no anchor: the best level), `asked` (what the user asked for). rows:
    the spans that mark an iteration. confidence: `high`, `medium`, `low`. reason: one sentence on how the loop was
    found. name: of the anchor or the event at the mark. events: the sequence that decided, `levels` its loop levels,
    best first, and `level` the one that was chosen, where there is one. streams: kinds of the sequences with the same
    steps.
    """

    kind: str
    rows: Ints
    confidence: str
    reason: str
    name: str = ""
    events: Events | None = None
    levels: Sequence[Level] = field(default=())
    level: Level | None = None
    streams: tuple[str, ...] = ()


def find_loops(stream: Stream, *, only: str | None = None) -> list[MainLoop]:
    """Find the main loop of every phase of a stream, in order of time; `only`: in the sequence of this kind."""
    sequences = {kind: events for kind, events in events_of(stream).items() if only in (None, kind)}
    for kind, of_kind in anchor_rows(stream).items() if only in (None, OPERATORS) else ():
        named = one_after_the_other(stream, kind, of_kind)
        if named:
            spans = _territories(stream, [rows for _, rows in named])
            return [
                _anchored(stream, kind, name, rows, _within(sequences, *span))
                for (name, rows), span in zip(named, spans, strict=True)
            ]
    found = _by_structure(stream, sequences)
    return _with_phases(stream, sequences, found) if found else []


def find_loop_of(stream: Stream, count: int) -> MainLoop | None:
    """Find the best level that has so many iterations, give or take one: as many as the other ranks of a job run."""
    fitting = [
        (level, events, levels)
        for events in events_of(stream).values()
        for levels in [events.levels()]
        for level in levels
        if abs(level.count - count) <= 1
    ]
    if not fitting:
        return None
    level, events, levels = max(fitting, key=lambda each: each[0].score)
    rows = events.rows[events.occurrences(level)]
    name = stream.names[stream.region[rows[0]]]
    reason = f"no framework marks steps here; {level.count} iterations, as most other processes have"
    return MainLoop("structure", rows, "low", reason, name, events, levels, level, (events.kind,))


def _territories(stream: Stream, marks: Sequence[Ints]) -> list[tuple[int, int]]:
    """Rows (from, to) that belong to each of several loops one after the other."""
    ends = [int(np.searchsorted(stream.start_ns, stream.end_ns[rows[-1]])) for rows in marks[:-1]]
    return list(zip([0, *ends], [*ends, len(stream)], strict=True))


def _within(sequences: dict[str, Events], low_row: int, high_row: int) -> dict[str, Events]:
    """What lies in these rows of the stream."""
    cut = {}
    for kind, events in sequences.items():
        low, high = np.searchsorted(events.rows, [low_row, high_row])
        if high > low:
            cut[kind] = events.chosen(slice(low, high))
    return cut


def _anchored(stream: Stream, kind: str, name: str, marks: Ints, sequences: dict[str, Events]) -> MainLoop:
    """A loop that an anchor marks, and how sure it is: whether sequences without the anchor show the same loop."""
    levels = {sequence: events.levels() for sequence, events in sequences.items()}
    own = sequences.get(OPERATORS)
    waits = np.flatnonzero(part_of_regions(stream.names, stream.paradigms) == DATA_WAIT)
    rows, level, several = anchored_loop(kind, marks, own, levels.get(OPERATORS, ()), waits)
    choices = _choices(stream, sequences, levels)
    same = [choice for choice in choices if agree(stream, rows, choice.rows)]
    agreeing = tuple(choice.events.kind for choice in same)
    loop = MainLoop(kind, rows, "medium", "", name, own, levels.get(OPERATORS, ()), level, agreeing)
    if kind in MARKS:
        return _marked(loop, choices)
    if level is None and several > 1:
        return replace(loop, reason=f"{several:.0f} updates of {name} in turn make a step")
    if level is None:
        return replace(loop, reason=f"one step per {name}; nothing else repeats with it")
    if several > 1:
        reason = f"{name} runs {several:.1f} times in each iteration of the innermost loop around it"
        return replace(loop, reason=reason)
    reason = f"one step per {name}; {level.spine:.0f} other events and transitions repeat with it"
    others = [choice.events.kind for choice in same if choice.events.kind != OPERATORS and not choice.below]
    if others:
        return replace(loop, confidence="high", reason=f"{reason}, and the {others[0]} alone have the same steps")
    return replace(loop, reason=reason)


def _marked(loop: MainLoop, choices: Sequence[Choice]) -> MainLoop:
    """A loop that the program marks itself: the structure only confirms it or not."""
    reason = f"the program marks its steps itself ({loop.name.rstrip('#')})"
    if loop.streams or not choices:
        return replace(loop, confidence="high", reason=reason)
    other = max(choices, key=lambda choice: choice.level.score)
    begin, end = loop.rows[0], loop.rows[-1]
    inside = np.count_nonzero((other.rows >= begin) & (other.rows <= end))
    reason += f"; by its structure alone the loop has {inside} iterations where {len(loop.rows)} are marked"
    return replace(loop, confidence="high" if loop.kind == "hint" else "medium", reason=reason)


def _choices(stream: Stream, sequences: dict[str, Events], levels: dict[str, list[Level]]) -> list[Choice]:
    """The loop of each sequence by its structure alone; calls of MPI with their peers or without, the better loop."""
    choices = []
    for kind, events in sequences.items():
        views = [choose(stream, events, levels[kind])]
        if (blind := without_peers(stream, events)) is not None:
            views.append(choose(stream, blind))
        found = [choice for choice in views if choice is not None]
        if found:
            choices.append(max(found, key=lambda choice: choice.level.score))
    return choices


def _by_structure(stream: Stream, sequences: dict[str, Events]) -> MainLoop | None:
    choices = _choices(stream, sequences, {kind: events.levels() for kind, events in sequences.items()})
    loops = [choice for choice in choices if choice.events.kind == LOOPS and _lasts(stream, choice)]
    choices = [choice for choice in choices if choice.events.kind != LOOPS]
    if not choices + loops:
        return None
    # Calls of MPI are also among those of functions, where functions were recorded: alone they know less.
    best = max(choices or loops, key=lambda each: (each.enclosing, each.events.kind != MPI, each.level.score))
    if loops and _time_ns(stream, best.rows) < core.MOST_OF_ITS * _time_ns(stream, loops[0].rows):
        choices, best = loops, loops[0]
    choices = choices or loops
    rows = best.rows
    agreeing = tuple(each.events.kind for each in choices if each is best or agree(stream, rows, each.rows))
    name = stream.names[stream.region[rows[0]]]
    level = best.level
    what = f"{level.spine:.0f} events and transitions repeat {len(rows)} times, beginning with {name}"
    reason = f"no framework marks steps here; {best.source or what}"
    if best.promotion:
        reason += f" ({best.promotion})"
    if disagreeing := len(choices) - len(agreeing):
        reason += "; another sequence of events has other steps"
    confidence = "low" if disagreeing and not best.source else best.confidence
    return MainLoop("structure", rows, confidence, reason, name, best.events, best.levels, level, agreeing)


def _lasts(stream: Stream, loop: Choice) -> bool:
    """Whether a loop of which the iterations were recorded takes as much of the time as a main loop does."""
    times = without_silence(stream.start_ns)
    return int(times[loop.rows[-1]] - times[loop.rows[0]]) >= core.LEAST_OF_TIME * int(times[-1])


def _with_phases(stream: Stream, sequences: dict[str, Events], loop: MainLoop) -> list[MainLoop]:
    """The loop, and those of what comes before and after it, where that is worth it."""
    loops, open_spans = [loop], []
    whole_ns = max(1, int(stream.end_ns.max() - stream.start_ns[0]))

    def add(low: int, high: int) -> None:
        if high - low < 3:
            return
        took = int(stream.start_ns[high - 1] - stream.start_ns[low])
        if (high - low) >= _WORTH_A_LOOP * len(stream) or took >= _WORTH_A_LOOP * whole_ns:
            open_spans.append((low, high))

    add(0, int(loop.rows[0]))
    add(_behind(stream, loop), len(stream))
    while open_spans and len(loops) < _MOST_LOOPS:
        low, high = open_spans.pop(0)
        found = _by_structure(stream, _within(sequences, low, high))
        if found is None:
            continue
        inside = (found.rows >= low) & (found.rows < high)
        found = replace(found, rows=found.rows[inside])
        if not _is_phase(stream, found, loop):
            continue
        loops.append(found)
        add(low, int(found.rows[0]))
        add(_behind(stream, found), high)
    return sorted(loops, key=lambda each: int(each.rows[0]))


def _is_phase(stream: Stream, found: MainLoop, main: MainLoop) -> bool:
    if found.level is None or main.level is None or len(found.rows) < _FEWEST_ITERATIONS:
        return False
    long_enough = time_ns(stream, found) >= AS_MUCH_OF_A_LOOP * time_ns(stream, main)
    return long_enough and found.level.spine >= AS_MUCH_OF_A_LOOP * main.level.spine


def time_ns(stream: Stream, loop: MainLoop) -> int:
    """Return the time from the first mark of a loop to the last."""
    return _time_ns(stream, loop.rows)


def _time_ns(stream: Stream, rows: Ints) -> int:
    return int(stream.start_ns[rows[-1]] - stream.start_ns[rows[0]])


def _behind(stream: Stream, loop: MainLoop) -> int:
    """The row after the last iteration of a loop, which is about as long as the others."""
    usual = int(np.median(np.diff(loop.rows))) if len(loop.rows) > 1 else 1
    return min(len(stream), int(loop.rows[-1]) + usual)
