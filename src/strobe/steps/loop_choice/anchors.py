"""Anchors: ranges that mark steps, put there by a framework or by the program; and the loops that they mark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.model.kinds import PARADIGMS
from strobe.native import core
from strobe.steps.loop_choice.events import Events
from strobe.steps.loop_choice.levels import Level, as_native
from strobe.steps.thread_spans import Ints, Stream, outermost

# The kinds of anchors in order of authority, each with the occurrences that its names need at least. Which region is
# one is decided by native/structure/region_names.cpp.
ANCHORS = {"hint": 2, "range": 1, "optimizer": 1, "zero_grad": 3, "data_wait": 3}
MARKS = ("hint", "range")  # ranges of the program itself, or of the engine that runs it


def anchor_rows(stream: Stream) -> dict[str, dict[str, Ints]]:
    """Rows of every anchor that occurs often enough, by its kind and its name."""
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    regions: dict[tuple[str, str], list[int]] = {}
    for region, (name, paradigm) in enumerate(zip(stream.names, stream.paradigms, strict=True)):
        regions.setdefault(core.anchor_of_region(name, number[paradigm]), []).append(region)
    found: dict[str, dict[str, Ints]] = {kind: {} for kind in ANCHORS}
    end_ns = stream.end_ns
    for (kind, name), numbers in regions.items():
        if kind in ANCHORS:
            at = np.flatnonzero(np.isin(stream.region, numbers))
            at = at[outermost(stream.start_ns[at], end_ns[at])]
            if len(at) >= ANCHORS[kind]:
                found[kind][name] = at
    return found


def one_after_the_other(stream: Stream, kind: str, named: dict[str, Ints]) -> list[tuple[str, Ints]]:
    """The names that mark loops one after the other. Of names that alternate, one: the rarest.

    Of updates that are as rare the last one in turn: it ends the step. Of loaders that of the longest time: a loader of
    its own for validation is rarer, but not the step.
    """
    chosen: list[tuple[str, Ints]] = []
    until_ns = -(2**62)
    for name, rows in sorted(named.items(), key=lambda item: int(item[1][0])):
        if stream.start_ns[rows[0]] >= until_ns:
            chosen.append((name, rows))
        elif kind == "data_wait":
            chosen[-1] = max(chosen[-1], (name, rows), key=lambda item: int(item[1][-1] - item[1][0]))
        elif len(rows) < len(chosen[-1][1]) + (kind == "optimizer"):
            chosen[-1] = (name, rows)
        until_ns = max(until_ns, int(stream.start_ns[rows[-1]] + stream.duration_ns[rows[-1]]))
    return chosen


def anchored_loop(
    kind: str, rows: Ints, events: Events | None, levels: Sequence[Level], waits: Ints
) -> tuple[Ints, Level | None, float]:
    """Find the loop that the marks of one name belong to.

    Return the rows of the spans that end (`optimizer`) or mark an iteration; the innermost loop level around them, None
    if nothing else repeats with them; and the number of anchors per iteration of that level. `waits`: the ids of events
    that are waits for data.
    """
    if kind in MARKS or events is None:
        return rows, None, 1.0
    anchors = np.searchsorted(events.rows, rows).astype(np.uint32)
    numbers = (events.ids.astype(np.uint32), anchors, waits.astype(np.uint32))
    size = core.updates_per_step(*numbers) if kind == "optimizer" else 1
    if size > 1:
        return rows[size - 1 :: size], None, float(size)
    innermost = core.innermost_with(anchors, [as_native(level) for level in levels])
    if innermost < 0:
        return rows, None, 1.0
    level = levels[innermost]
    marks = events.rows[level.positions]
    seen = int(np.count_nonzero((rows >= marks[0]) & (rows <= marks[-1])))
    if abs(seen - level.count) <= max(1, 0.1 * seen):
        return rows, level, 1.0
    # The last anchor of each iteration ends it.
    after = np.searchsorted(rows, marks, side="left")
    lasts = rows[np.unique(np.concatenate([after[after > 0] - 1, [len(rows) - 1]]))]
    return lasts, level, seen / level.count
