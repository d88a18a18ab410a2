"""Loop tree: the nest of loops around the step and inside of it, measured over the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strobe.native import core
from strobe.steps.finding.outer_loops import OuterLoop
from strobe.steps.loop_choice.events import Events, iterations
from strobe.steps.loop_choice.levels import Level
from strobe.steps.loop_choice.main_loop import MainLoop
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import FUNCTION_PARADIGMS, Ints, Stream, innermost, within

# A level around the step belongs to the tree if it spans this share of what the step spans ...
_AROUND = 0.8
# ... or, as one inside of it, scores this much within one iteration.
_INSIDE_SCORE = 0.4
_INSIDE_SPINE = 3
# Loops inside of loops are searched so deep, and so many side by side.
_DEEPEST = 3
_MOST_BESIDE = 4
# Shorter iterations hold no loop worth a name.
_FEWEST_EVENTS = 9


@dataclass(frozen=True, kw_only=True)
class TreeLevel:
    """One loop of the tree. Nanoseconds since the trace's zero.

    name: what a person calls it. marker: the event that marks an iteration. count: iterations in the whole run.
    in_detail: of how many of them the rest is, where it is not all; `count` is as many where it is not known. parent:
    index of the loop around it, -1 without one. trips: iterations per iteration of the parent (smallest, median,
    largest), where there is a parent. spine, coverage, cvn, score: see `levels.Level`; within the loop around it.
    time_ns: what all its iterations took together; share: of the whole run. rows: the spans that mark the iterations.
    begins_ns, ends_ns: of its iterations. passes_ns: when it ran, as rows (begin, end): once per iteration of the loop
    around it.
    """

    name: str
    marker: str
    count: int
    in_detail: int | None = None
    parent: int
    trips: tuple[int, float, int] | None
    spine: float = 0.0
    coverage: float
    cvn: float = 0.0
    score: float = 0.0
    is_step: bool = False
    time_ns: int
    share: float
    first_ns: int
    last_ns: int
    rows: Ints = field(repr=False)
    begins_ns: Ints = field(repr=False)
    ends_ns: Ints = field(repr=False)
    passes_ns: Ints = field(repr=False)


Times = tuple[Ints, Ints]  # begins and ends


def loop_tree(
    stream: Stream, loops: Sequence[MainLoop], run_ns: int, steps: Mapping[int, Times] | None = None
) -> list[TreeLevel]:
    """Return the nest of every loop of a stream, parents before children.

    `run_ns` is how long the run took; `steps` when the steps of the main loop, by the number of the loop, began and
    ended: other loops are left out.
    """
    tree: list[TreeLevel] = []
    for number, loop in enumerate(loops):
        if steps and number not in steps:
            continue
        until = int(loops[number + 1].rows[0]) if number + 1 < len(loops) else len(stream)
        _add_nest(tree, stream, loop, until, max(1, run_ns), steps[number] if steps else None)
    return tree


def loops_without_step(stream: Stream, events: Events, run_ns: int) -> list[TreeLevel]:
    """Return the loops of a sequence without a main loop, and what is in them: the layers of a single forward pass."""
    tree: list[TreeLevel] = []
    for level in _loops_in(events):
        rows = events.rows[level.positions]
        tree.append(_measured(tree, -1, stream, rows, level, max(1, run_ns), until=int(rows[-1]) + 1))
        _add_inside(tree, stream, events, len(tree) - 1, max(1, run_ns), depth=1)
    return tree


def add_recorded(
    tree: list[TreeLevel],
    stream: Stream,
    events: Events,
    steps: ProcessSteps,
    around: Sequence[OuterLoop],
    folded: Ints,
    run_ns: int,
) -> None:
    """Add the main loops of recorded steps, what is around them, and what is inside of those that are kept in detail.

    around: the loops around all of them. folded: by call path, how many executions are in statistics.
    """
    for number in range(len(steps.loops)):
        parent = -1
        for outer in reversed([each for each in around if each.loop == number]):
            tree.append(_recorded_around(stream, steps, outer, parent, tree, run_ns))
            parent = len(tree) - 1
        _add_recorded_step(tree, stream, events, steps, number, parent, folded, run_ns)


def _recorded_around(
    stream: Stream, steps: ProcessSteps, outer: OuterLoop, parent: int, tree: Sequence[TreeLevel], run_ns: int
) -> TreeLevel:
    begins, ends = steps.start_ns[outer.firsts], steps.end_ns[outer.lasts]
    took = int((ends - begins).sum())
    share = min(1.0, took / max(1, run_ns))
    return TreeLevel(
        name=outer.marker,
        marker=outer.marker,
        count=len(outer),
        parent=parent,
        trips=_trips(begins, tree[parent]) if parent >= 0 else None,
        coverage=share,
        cvn=outer.variation,
        time_ns=took,
        share=share,
        first_ns=int(begins[0]),
        last_ns=int(ends[-1]),
        rows=np.searchsorted(stream.start_ns, begins),
        begins_ns=begins,
        ends_ns=ends,
        passes_ns=np.stack([begins[:1], ends[-1:]], axis=1),
    )


def _trips(begins: Ints, around: TreeLevel) -> tuple[int, float, int]:
    inside = np.searchsorted(begins, around.ends_ns) - np.searchsorted(begins, around.begins_ns)
    return int(inside.min()), float(np.median(inside)), int(inside.max())


def _add_recorded_step(
    tree: list[TreeLevel],
    stream: Stream,
    events: Events,
    steps: ProcessSteps,
    loop: int,
    parent: int,
    folded: Ints,
    run_ns: int,
) -> None:
    rows = steps.rows_of_loops[loop]
    marker, kept = steps.loops[loop].name, steps.kept[rows]
    begins, ends = steps.start_ns[rows], steps.end_ns[rows]
    took = int((ends - begins).sum())
    share = min(1.0, took / max(1, run_ns))
    step = TreeLevel(
        name="step",
        marker=marker,
        count=len(begins),
        parent=parent,
        trips=_trips(begins, tree[parent]) if parent >= 0 else None,
        coverage=share,
        is_step=True,
        time_ns=took,
        share=share,
        first_ns=int(begins[0]) if len(begins) else 0,
        last_ns=int(ends[-1]) if len(ends) else 0,
        rows=np.searchsorted(stream.start_ns, begins[kept]),
        begins_ns=begins[kept],
        ends_ns=ends[kept],
        passes_ns=np.stack([begins[:1], ends[-1:]], axis=1),
    )
    tree.append(step)
    first = len(tree)
    _add_inside(tree, stream, events, first - 1, max(1, run_ns), depth=1)
    # Slow and rare steps are kept on purpose: what is usual of the kept ones counts as often as there are steps.
    for number in range(first, len(tree)):
        level = tree[number]
        within = np.searchsorted(begins[kept], level.begins_ns, side="right") - 1
        each = np.bincount(within, weights=level.ends_ns - level.begins_ns, minlength=int(kept.sum()))
        share_of_all = min(share, float(np.median(each)) * len(begins) / max(1, run_ns))
        tree[number] = replace(level, share=share_of_all)
        if not kept.all():
            more = _folded_executions(stream, level, begins[kept], ends[kept], folded)
            tree[number] = replace(tree[number], count=level.count + more, in_detail=level.count)


def _folded_executions(stream: Stream, level: TreeLevel, begins_ns: Ints, ends_ns: Ints, folded: Ints) -> int:
    """How many iterations were folded: the executions of what marks them, where each of these in detail is one."""
    paths = np.unique(stream.call_path[level.rows])
    marking = np.flatnonzero(np.isin(stream.call_path, paths))
    if within(stream.start_ns[marking], begins_ns, ends_ns).sum() != level.count:
        return 0
    return int(folded[paths].sum())


def _add_nest(
    tree: list[TreeLevel], stream: Stream, loop: MainLoop, until: int, run_ns: int, steps: Times | None
) -> None:
    parent, before = -1, len(tree)
    span = (int(steps[0][0]), int(steps[1][-1])) if steps is not None and len(steps[0]) else None
    for level in reversed(_around(stream, loop)):
        rows = loop.events.rows[level.positions] if loop.events is not None else level.positions
        tree.append(_measured(tree, parent, stream, rows, level, run_ns, until=until, covering=span))
        parent = len(tree) - 1
    step = _measured(tree, parent, stream, loop.rows, loop.level, run_ns, until=until, iterations=steps)
    if steps is not None and step.count < len(steps[0]):  # a loop that not all steps are inside of is not around them
        del tree[before:]
        step = _measured(tree, -1, stream, loop.rows, loop.level, run_ns, until=until, iterations=steps)
    if loop.level is None and loop.events is not None:
        step = replace(step, cvn=_variation(loop.events, loop.rows))
    tree.append(replace(step, name="step", marker=loop.name or step.marker, is_step=True))
    if loop.events is not None:
        _add_inside(tree, stream, loop.events, len(tree) - 1, run_ns, depth=1)


def _around(stream: Stream, loop: MainLoop) -> list[Level]:
    """The loops around the step, innermost first: each the one that looks most like a loop of those around the last."""
    found: list[Level] = []
    if loop.events is None:
        return found
    # What is done within an iteration that was recorded itself is no loop around it.
    rows, iteration = loop.events.rows, np.zeros(len(stream), dtype=bool)
    iteration[loop.rows] = iterations(stream)[stream.region[loop.rows]]
    marks, covered = np.searchsorted(loop.events.rows, loop.rows), loop.level.coverage if loop.level else 1.0
    while True:
        outside = [
            level
            for level in loop.levels
            if level.count * 1.5 <= len(marks) and level.coverage >= _AROUND * covered and level.spine > 1
            if innermost(stream.parent, iteration, rows[level.positions]).max() < 0
            if (inside := np.diff(np.searchsorted(marks, level.positions))).min() >= 1 and inside.mean() >= 1.5
        ]
        if not outside:
            return found
        found.append(max(outside, key=lambda level: level.score))
        marks = found[-1].positions


def _add_inside(tree: list[TreeLevel], stream: Stream, events: Events, parent: int, run_ns: int, depth: int) -> None:
    """Add the loops inside of the iterations of a loop, as they are in its typical iteration."""
    begin, end = tree[parent].begins_ns, tree[parent].ends_ns
    low, high = np.searchsorted(events.starts_ns, begin), np.searchsorted(events.starts_ns, end)
    if depth > _DEEPEST or not len(begin):
        return
    typical = _typical(high - low, end - begin)
    iteration = events.chosen(slice(low[typical], high[typical]))
    # A stall in this one iteration must not hide its loops.
    for level in _loops_in(replace(iteration, times_ns=core.without_silence(iteration.starts_ns))):
        rows = events.rows[events.occurrences(level)]
        tree.append(_measured(tree, parent, stream, rows, level, run_ns))
        _add_inside(tree, stream, events, len(tree) - 1, run_ns, depth + 1)


def _typical(sizes: Ints, durations_ns: Ints) -> int:
    """Index of the iteration that took the median time of those with the most frequent number of events."""
    values, counts = np.unique(sizes, return_counts=True)
    usual = np.flatnonzero(sizes == values[counts.argmax()])
    return int(usual[np.argsort(durations_ns[usual], kind="stable")[len(usual) // 2]])


def _loops_in(events: Events) -> list[Level]:
    """Loops of one iteration that follow each other, in order; what looks most like a loop is searched first."""
    found: list[tuple[int, Level]] = []
    spans = [(0, len(events))]
    while spans and len(found) < _MOST_BESIDE:
        low, high = spans.pop(0)
        if high - low < max(_FEWEST_EVENTS, len(events) // 10):
            continue
        levels = events.chosen(slice(low, high)).levels(most=1)
        if not levels or levels[0].score < _INSIDE_SCORE or levels[0].spine < _INSIDE_SPINE:
            continue
        level = levels[0]
        found.append((low + int(level.positions[0]), level))
        usual = int(np.median(np.diff(level.positions)))
        spans += [(low, low + int(level.positions[0])), (low + int(level.positions[-1]) + usual, high)]
    return [level for _, level in sorted(found, key=lambda each: each[0])]


def _measured(
    tree: Sequence[TreeLevel],
    parent: int,
    stream: Stream,
    rows: Ints,
    level: Level | None,
    run_ns: int,
    *,
    until: int = 0,
    iterations: Times | None = None,
    covering: tuple[int, int] | None = None,
) -> TreeLevel:
    """Measure a loop inside of the iterations of its parent; without one up to row `until`.

    Iterations begin at the marks and last until the next one, unless it is known when they begin and end. The first may
    begin earlier and the last end later, so that they cover the time of the steps: a mark may lie anywhere in them.
    """
    begins = stream.start_ns[rows] if iterations is None else iterations[0]
    if parent >= 0:
        around = tree[parent].begins_ns, tree[parent].ends_ns
    else:
        last_ns = int(stream.end_ns[:until].max()) if iterations is None else int(iterations[1][-1])
        around = begins[:1], np.array([last_ns])
    low, high = np.searchsorted(begins, around[0]), np.searchsorted(begins, around[1])
    if parent < 0 and iterations is not None:
        high = np.array([len(begins)])  # a last one that took no time is one, too
    inside = high - low
    kept = np.repeat(low - np.cumsum(inside) + inside, inside) + np.arange(inside.sum())
    if iterations is None:
        passes = _passes(begins, low, high, around[1])
        begins = begins[kept]
        if covering is not None and len(passes):
            passes[0, 0] = begins[0] = min(begins[0], covering[0])
            passes[:, 1] = np.maximum(passes[:, 1], np.minimum(around[1][inside > 0], covering[1]))
        own_pass = np.searchsorted(passes[:, 0], begins, side="right") - 1
        ends = np.minimum(np.append(begins[1:], np.iinfo(np.int64).max), passes[own_pass, 1])
        rows = rows[kept]
    else:
        ran = inside > 0
        passes = np.stack([begins[low[ran]], iterations[1][high[ran] - 1]], axis=1)
        begins, ends = begins[kept], iterations[1][kept]
    took = int((ends - begins).sum())
    share = min(1.0, took / run_ns)
    return TreeLevel(
        name=_name(stream, rows),
        marker=stream.names[stream.region[rows[0]]] if len(rows) else "",
        count=len(kept),
        parent=parent,
        trips=(int(inside.min()), float(np.median(inside)), int(inside.max())) if parent >= 0 and len(inside) else None,
        spine=level.spine if level else 0.0,
        coverage=level.coverage if level else share,
        cvn=level.cvn if level else 0.0,
        score=level.score if level else 0.0,
        time_ns=took,
        share=share,
        first_ns=int(passes[0, 0]) if len(passes) else 0,
        last_ns=int(passes[-1, 1]) if len(passes) else 0,
        rows=rows,
        begins_ns=begins,
        ends_ns=ends,
        passes_ns=passes,
    )


def _passes(starts: Ints, low: Ints, high: Ints, until_ns: Ints) -> Ints:
    """When a loop ran, per outer iteration (its marks low[i] to high[i]); the last iteration takes what is usual."""
    ran = np.flatnonzero(high > low)
    if not len(ran):
        return np.empty((0, 2), dtype=np.int64)
    begin, last, counts = starts[low[ran]], starts[high[ran] - 1], (high - low)[ran]
    several = counts > 1
    usual = np.zeros(len(ran))
    usual[several] = (last - begin)[several] / (counts[several] - 1)
    usual[~several] = np.median(usual[several]) if several.any() else 2.0**62
    end = np.minimum(until_ns[ran], last + usual.astype(np.int64))
    return np.stack([begin, end], axis=1)


def _variation(events: Events, rows: Ints) -> float:
    sizes = np.diff(np.searchsorted(events.rows, rows))
    return float(sizes.std() / sizes.mean()) if len(sizes) and sizes.mean() else 0.0


def _name(stream: Stream, rows: Ints) -> str:
    """The function that all marks lie in, if functions were recorded: it is where the loop stands; else the marker."""
    paths = np.unique(stream.call_path[rows])
    while len(paths) > 1 and (paths >= 0).all():
        # The longest chain first: parents have smaller numbers than their children.
        paths = np.unique(np.append(paths[:-1], stream.path_parent[paths[-1]]))
    path = int(stream.path_parent[paths[0]]) if len(paths) == 1 and len(rows) and paths[0] >= 0 else -1
    if len(np.unique(stream.call_path[rows])) > 1 and len(paths) == 1:
        path = int(paths[0])
    while path >= 0:
        region = stream.path_region[path]
        if stream.paradigms[region] in FUNCTION_PARADIGMS:
            return f"loop in {stream.names[region]}"
        path = int(stream.path_parent[path])
    return stream.names[stream.region[rows[0]]] if len(rows) else ""
