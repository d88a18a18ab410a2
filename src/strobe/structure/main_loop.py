"""The main loop of a stream: which loop level is "the step", and where its iterations are marked.

A framework's own ranges (anchors) decide where there are any; otherwise the level with the best score does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.structure.activities import DATA_LOADER, OPTIMIZER_STEP, PROFILER_STEP, STEP_HINT, ZERO_GRAD
from strobe.structure.levels import Level, find_levels
from strobe.structure.stream import Bools, Ints, Stream, outermost

# Below, a level without an anchor is no loop that anybody would call the main one: in a single forward pass, and where
# a model is loaded, the best level scores up to 0.7.
MIN_SCORE = 0.75
# How far up a function is looked for among its own callers.
_RECURSION_DEPTH = 32
# Longer streams are judged by this many events from their middle; the marks are then found in all of it.
WINDOW_EVENTS = 1 << 21


@dataclass(frozen=True)
class MainLoop:
    """Where the iterations of the main loop are marked.

    kind: `hint` (strobe.step ends a step), `range` (the profiler's steps), `optimizer`, `zero_grad`, `data_wait`
    (anchors of PyTorch), `structure` (no anchor: the best level). rows: the spans that mark an iteration. confidence:
    `high`, `medium`, `low`. reason: one sentence on how the loop was found. score: of the level, where that decided.
    """

    kind: str
    rows: Ints
    confidence: str
    reason: str
    score: float = 0.0


@dataclass(frozen=True)
class _Anchor:
    kind: str
    least: int  # occurrences below which it says nothing; one update of an optimizer is a step
    matches: Callable[[str, str], bool]  # (name, paradigm)


# In order of authority. Operators are no anchors: `aten::_fused_adam_` runs once per parameter group, not per step.
_ANCHORS = (
    _Anchor("hint", 2, lambda name, paradigm: name == STEP_HINT and paradigm in ("user", "strobe")),
    _Anchor("range", 2, lambda name, paradigm: name.startswith(PROFILER_STEP)),
    _Anchor("optimizer", 1, lambda name, paradigm: name.startswith(OPTIMIZER_STEP) and paradigm == "torch"),
    _Anchor("zero_grad", 3, lambda name, paradigm: name.startswith(ZERO_GRAD) and paradigm == "torch"),
    _Anchor("data_wait", 3, lambda name, paradigm: name.startswith(DATA_LOADER) and paradigm == "torch"),
)


def find_main_loop(stream: Stream) -> MainLoop | None:
    """Find the main loop of a stream; None if nothing in it looks like one."""
    for anchor in _ANCHORS:
        named = _anchor_rows(stream, anchor)
        if named:
            rows, ids = _operators(stream)
            return _anchored(stream, anchor, named, _levels(stream, rows, ids))
    candidates = [_by_score(stream, *signatures) for signatures in (_calls(stream), _operators(stream))]
    return max((loop for loop in candidates if loop), key=lambda loop: loop.score, default=None)


def _operators(stream: Stream) -> tuple[Ints, Ints]:
    """Rows of the operators of PyTorch, and what each is called in the flow graph: its name."""
    torch = np.array([paradigm == "torch" for paradigm in stream.paradigms], dtype=bool)
    rows = np.flatnonzero(torch[stream.region])
    return rows, stream.region[rows]


def _calls(stream: Stream) -> tuple[Ints, Ints]:
    """Rows of all other spans: functions are called by name and caller, everything else (MPI) by call path."""
    paradigms = np.array(stream.paradigms, dtype=object)
    rows = np.flatnonzero((paradigms != "torch")[stream.region] & ~_recursive(stream)[stream.call_path])
    region, path = stream.region[rows], stream.call_path[rows]
    above = stream.path_parent[path]
    caller = np.where(above >= 0, stream.path_region[above], -1)
    function = np.isin(paradigms, ("python", "user"))[region]
    signatures = np.where(function, (region << 32) | (caller + 1), -1 - path)
    return rows, np.unique(signatures, return_inverse=True)[1].astype(np.int64)


def _recursive(stream: Stream) -> Bools:
    """Which call paths end in a region that also lies above: a recursion repeats itself, but it is no loop."""
    found = np.zeros(len(stream.path_region), dtype=bool)
    above = stream.path_parent
    for _ in range(_RECURSION_DEPTH):
        found |= (above >= 0) & (stream.path_region[above] == stream.path_region)
        above = np.where(above >= 0, stream.path_parent[above], -1)
    return found


def _levels(stream: Stream, rows: Ints, ids: Ints) -> list[Level]:
    """Levels of the stream, or of the middle of a long one; their positions are rows of the stream."""
    first = max(0, (len(rows) - WINDOW_EVENTS) // 2)
    window = slice(first, first + WINDOW_EVENTS)
    found = find_levels(ids[window], _without_silence(stream.start_ns[rows[window]]))
    return [replace(level, positions=rows[window][level.positions]) for level in found]


def _without_silence(times_ns: Ints) -> Ints:
    """Times in which a pause counts as a hundredth of the whole at most: imports leave no events, and are no loop's."""
    pauses = np.diff(times_ns, prepend=times_ns[:1])
    return np.cumsum(np.minimum(pauses, pauses.sum() // 100))


def _anchor_rows(stream: Stream, anchor: _Anchor) -> dict[str, Ints]:
    """Rows of every anchor name that occurs often enough. Profiler steps carry their number: they are one name."""
    matching = [
        region
        for region, (name, paradigm) in enumerate(zip(stream.names, stream.paradigms, strict=True))
        if anchor.matches(name, paradigm)
    ]
    if not matching:
        return {}
    by_name: dict[str, list[int]] = {}
    for region in matching:
        name = stream.names[region]
        by_name.setdefault(PROFILER_STEP if name.startswith(PROFILER_STEP) else name, []).append(region)
    rows = {name: np.flatnonzero(np.isin(stream.region, regions)) for name, regions in by_name.items()}
    end_ns = stream.end_ns
    rows = {name: at[outermost(stream.start_ns[at], end_ns[at])] for name, at in rows.items()}
    return {name: at for name, at in rows.items() if len(at) >= anchor.least}


def _anchored(stream: Stream, anchor: _Anchor, named: dict[str, Ints], levels: Sequence[Level]) -> MainLoop:
    if anchor.kind == "data_wait":  # a loader of its own for validation is rarer, but not the step
        name = max(named, key=lambda each: stream.start_ns[named[each][-1]] - stream.start_ns[named[each][0]])
    else:
        name = min(named, key=lambda each: len(named[each]))
    rows = named[name]
    if anchor.kind in ("hint", "range"):
        return MainLoop(anchor.kind, rows, "high", f"the program marks its steps itself ({name.rstrip('#')})")
    level = _innermost_with(rows, levels)
    if level is None:
        return MainLoop(anchor.kind, rows, "medium", f"one step per {name}; nothing else repeats with it")
    seen = int(np.count_nonzero((rows >= level.positions[0]) & (rows <= level.positions[-1])))
    if abs(seen - level.count) <= max(1, 0.1 * seen):
        confidence = "high" if abs(seen - level.count) <= 1 else "medium"
        reason = f"one step per {name}; {level.spine:.0f} other events and transitions repeat with it"
        return MainLoop(anchor.kind, rows, confidence, reason)
    several = f"{seen / level.count:.1f} times"
    # The last anchor of each iteration ends it.
    after = np.searchsorted(rows, level.positions, side="left")
    lasts = rows[np.unique(np.concatenate([after[after > 0] - 1, [len(rows) - 1]]))]
    return MainLoop(
        anchor.kind, lasts, "medium", f"{name} runs {several} in each iteration of the innermost loop around it"
    )


def _innermost_with(anchor: Ints, levels: Sequence[Level]) -> Level | None:
    """The innermost level that has an anchor in at least 90 % of its iterations and is not more frequent than it."""
    fitting = [
        level
        for level in levels
        if level.count <= 1.1 * len(anchor) and np.mean(np.diff(np.searchsorted(anchor, level.positions)) > 0) >= 0.9
    ]
    if not fitting:
        return None
    most = max(level.count for level in fitting)
    return max((level for level in fitting if level.count >= 0.9 * most), key=lambda level: level.score)


def _by_score(stream: Stream, rows: Ints, ids: Ints) -> MainLoop | None:
    levels = _levels(stream, rows, ids)
    if not levels or levels[0].score < MIN_SCORE:
        return None
    chosen, promoted = levels[0], False
    while (outer := _promotion(chosen, levels)) is not None:
        chosen, promoted = outer, True
    confidence = "low" if promoted or chosen.score < 1 else "medium"
    name = stream.names[stream.region[chosen.positions[0]]]
    reason = (
        f"no framework marks steps here; {chosen.spine:.0f} events and transitions repeat {chosen.count} times, "
        f"beginning with {name}"
    )
    return MainLoop("structure", _all_occurrences(chosen, rows, ids), confidence, reason, chosen.score)


def _all_occurrences(level: Level, rows: Ints, ids: Ints) -> Ints:
    """Rows of a level's marker in the whole stream; its positions cover no more than a window of it."""
    at: Bools = ids == level.marker
    if level.marker_source is not None:
        at[1:] &= ids[:-1] == level.marker_source
        at[0] = False
    found: Ints = rows[at]
    return found


def _promotion(inner: Level, levels: Sequence[Level]) -> Level | None:
    """The next outer level, if its iterations all hold the same small number of inner ones and it is as regular."""
    for outer in sorted(levels, key=lambda level: -level.count):
        if not 8 <= outer.count < inner.count:
            continue
        trips = np.diff(np.searchsorted(inner.positions, outer.positions))
        mean = trips.mean()
        if (
            2 <= mean <= 64
            and trips.std() < 0.05 * mean
            and outer.spine >= inner.spine / 2
            and outer.coverage >= 0.8 * inner.coverage
            and outer.cvn <= max(0.15, inner.cvn)
        ):
            return outer
    return None
