"""The main loop of a stream: which loop level is "the step", where its iterations are marked, and how sure that is.

Ranges of frameworks (anchors) decide where there are any; otherwise the structure of the sequences does. Which loop it
is, native/structure/decision.cpp decides, also while a program runs; here it is asked about every phase of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from strobe.native import core
from strobe.steps.loop_choice.anchors import anchor_rows, one_after_the_other
from strobe.steps.loop_choice.events import OPERATORS, Events, as_native_events, events_of, without_peers
from strobe.steps.loop_choice.levels import Level, level_of
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
    waits = np.flatnonzero(part_of_regions(stream.names, stream.paradigms) == DATA_WAIT)
    found = _decided(stream, sequences, (kind, name, marks, waits.astype(np.uint32)))
    assert found is not None, "an anchor marks a loop"
    return replace(found, kind=kind, name=name)


def _by_structure(stream: Stream, sequences: dict[str, Events]) -> MainLoop | None:
    found = _decided(stream, sequences, None)
    return found and replace(found, name=stream.names[stream.region[found.rows[0]]])


def _decided(
    stream: Stream, sequences: dict[str, Events], anchor: tuple[str, str, Ints, npt.NDArray[np.uint32]] | None
) -> MainLoop | None:
    """Ask native/structure/decision.h, as the recorder does while the program runs."""
    found = core.decide(
        np.ascontiguousarray(stream.start_ns),
        np.ascontiguousarray(stream.parent),
        np.ascontiguousarray(stream.region),
        stream.names,
        stream.codes,
        [as_native_events(stream, events) for events in sequences.values()],
        anchor,
    )
    if found is None:
        return None
    rows, kind, without_peer, native_levels, level, agreeing, confidence, reason = found
    events = sequences.get(kind)
    if events is not None and without_peer:
        events = without_peers(stream, events)
    levels = [level_of(each) for each in native_levels]
    chosen = None if level is None else levels[level]
    return MainLoop("structure", rows, confidence, reason, "", events, levels, chosen, tuple(agreeing))


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
    return int(stream.start_ns[loop.rows[-1]] - stream.start_ns[loop.rows[0]])


def _behind(stream: Stream, loop: MainLoop) -> int:
    """The row after the last iteration of a loop, which is about as long as the others."""
    usual = int(np.median(np.diff(loop.rows))) if len(loop.rows) > 1 else 1
    return min(len(stream), int(loop.rows[-1]) + usual)
