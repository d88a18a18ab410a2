"""Anchors: ranges that mark steps, put there by a framework or by the program; and the loops that they mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.steps.loop_choice.events import Events
from strobe.steps.loop_choice.levels import Level
from strobe.steps.thread_spans import Ints, Stream, outermost
from strobe.steps.training_activities import DATA_LOADER, OPTIMIZER_STEP, PROFILER_STEP, STEP_HINT, ZERO_GRAD


@dataclass(frozen=True)
class Anchor:
    """One kind of range that marks steps; with fewer than `least` occurrences it is ignored."""

    kind: str
    least: int
    matches: Callable[[str, str], bool]  # (name, paradigm)


# In order of authority. Operators are not anchors: `aten::_fused_adam_` runs once per parameter group, not per step.
ANCHORS = (
    Anchor("hint", 2, lambda name, paradigm: name == STEP_HINT and paradigm in ("user", "strobe")),
    Anchor("range", 1, lambda name, paradigm: name.startswith(PROFILER_STEP)),
    Anchor("optimizer", 1, lambda name, paradigm: name.startswith(OPTIMIZER_STEP) and paradigm == "torch"),
    Anchor("zero_grad", 3, lambda name, paradigm: name.startswith(ZERO_GRAD) and paradigm == "torch"),
    Anchor("data_wait", 3, lambda name, paradigm: name.startswith(DATA_LOADER) and paradigm == "torch"),
)
MARKS = ("hint", "range")  # ranges of the program itself


def anchor_rows(stream: Stream, anchor: Anchor) -> dict[str, Ints]:
    """Rows of every anchor name that occurs often enough. Profiler steps carry their number: they are one name."""
    by_name: dict[str, list[int]] = {}
    for region, (name, paradigm) in enumerate(zip(stream.names, stream.paradigms, strict=True)):
        if anchor.matches(name, paradigm):
            by_name.setdefault(PROFILER_STEP if name.startswith(PROFILER_STEP) else name, []).append(region)
    if not by_name:
        return {}
    rows = {name: np.flatnonzero(np.isin(stream.region, regions)) for name, regions in by_name.items()}
    end_ns = stream.end_ns
    rows = {name: at[outermost(stream.start_ns[at], end_ns[at])] for name, at in rows.items()}
    return {name: at for name, at in rows.items() if len(at) >= anchor.least}


def one_after_the_other(anchor: Anchor, named: dict[str, Ints]) -> list[tuple[str, Ints]]:
    """The names that mark loops one after the other. Of names that alternate, one: the rarest.

    Of loaders that of the longest time: a loader of its own for validation is rarer, but not the step.
    """
    chosen: list[tuple[str, Ints]] = []
    until = -1
    for name, rows in sorted(named.items(), key=lambda item: int(item[1][0])):
        if not chosen or rows[0] > until:
            chosen.append((name, rows))
        elif anchor.kind == "data_wait":
            chosen[-1] = max(chosen[-1], (name, rows), key=lambda item: int(item[1][-1] - item[1][0]))
        else:
            chosen[-1] = min(chosen[-1], (name, rows), key=lambda item: len(item[1]))
        until = max(until, int(rows[-1]))
    return chosen


def anchored_loop(
    kind: str, rows: Ints, events: Events | None, levels: Sequence[Level]
) -> tuple[Ints, Level | None, float]:
    """Find the loop that the marks of one name belong to.

    Return the rows of the spans that end (`optimizer`) or mark an iteration; the innermost loop level around them, None
    if nothing else repeats with them; and the number of anchors per iteration of that level.
    """
    if kind in MARKS or events is None:
        return rows, None, 1.0
    level = _innermost_with(rows, events, levels)
    if level is None:
        return rows, None, 1.0
    marks = events.rows[level.positions]
    seen = int(np.count_nonzero((rows >= marks[0]) & (rows <= marks[-1])))
    if abs(seen - level.count) <= max(1, 0.1 * seen):
        return rows, level, 1.0
    # The last anchor of each iteration ends it.
    after = np.searchsorted(rows, marks, side="left")
    lasts = rows[np.unique(np.concatenate([after[after > 0] - 1, [len(rows) - 1]]))]
    return lasts, level, seen / level.count


def _innermost_with(anchor: Ints, events: Events, levels: Sequence[Level]) -> Level | None:
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
