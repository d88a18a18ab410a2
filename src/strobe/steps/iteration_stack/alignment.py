"""Alignment: the events of every step, placed on the path that most steps take; the basis of iteration stacks."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.steps.thread_spans import FUNCTION_PARADIGMS, Bools, Ints, Stream, outermost
from strobe.steps.training_activities import (
    BACKWARD,
    DATA_WAIT,
    FORWARD,
    OPTIMIZER,
    OPTIMIZER_STEP,
    PROFILER_STEP,
    REST,
    module_calls,
    part_of_regions,
)
from strobe.tables.column_arrays import Columns

# What would need more columns than a screen shows well stays closed.
MOST_POSITIONS = 600
# A function is looked into if what it calls accounts for so much of its time, or if operators are among it.
WORTH_OPENING = 0.5
# So many events are compared with the usual path exactly, those of frequent paths first; the paths after them only at
# their beginning and their end.
MOST_ALIGNED = 2_000_000
# With so small a share of the steps, the most frequent path is not usual: one of middle length is taken.
LEAST_USUAL = 0.05

# The mark of a step has its number in its name: `ProfilerStep#3`, `train step: 3`, `epoch 3`.
_NUMBERED_MARK = re.compile(r"(?i)((?:step|iter|iteration|batch|epoch)\W{0,3})\d+$")
_OPENABLE_PARADIGMS = (*FUNCTION_PARADIGMS, "strobe")
_OPENABLE_RANGES = (OPTIMIZER_STEP, PROFILER_STEP)


@dataclass(frozen=True)
class Aligned:
    """Events of all steps, in order; nanoseconds.

    regions, parts, modules: of the positions; parts are numbers of PARTS, modules regions (-1: in none). step,
    position, region, start_ns, duration_ns, gap_ns: of each event; position is -1 where the usual path has none, gap_ns
    is the time since the event before it in the step, or since the step's start. path: per step, which sequence of
    events it has: 0 is the usual one, -1 none at all. tail_ns: per step, from the end of its last event to its own.
    """

    regions: Ints
    parts: Ints
    modules: Ints
    step: Ints
    position: Ints
    region: Ints
    start_ns: Ints
    duration_ns: Ints
    gap_ns: Ints
    path: Ints
    tail_ns: Ints


@dataclass(frozen=True)
class StepEvents(Columns):
    """What happens in steps, in order of step and time; nanoseconds.

    key: what is compared. call_path: its code. elsewhere: whether that ran beside the main thread, which then waits for
    the backward pass.
    """

    step: Ints
    key: Ints
    region: Ints
    call_path: Ints
    start_ns: Ints
    end_ns: Ints
    elsewhere: Bools


def align_steps(stream: Stream, start_ns: Ints, end_ns: Ints, usual: Bools, elsewhere: bool = False) -> Aligned:
    """Align the events of the steps [start_ns, end_ns), in order of time, to the path that most `usual` ones take.

    `elsewhere`: the stream is not of the main thread.
    """
    stream = without_numbers(stream)
    rows, step = _events(stream, start_ns, end_ns, usual)
    end = np.minimum(stream.end_ns[rows], end_ns[step])
    path = stream.call_path[rows]
    other = np.full(len(rows), elsewhere)
    events = StepEvents(step, path, stream.region[rows], path, stream.start_ns[rows], end, other)
    return align_events(stream, events, start_ns, end_ns, usual)


def align_events(stream: Stream, events: StepEvents, start_ns: Ints, end_ns: Ints, usual: Bools) -> Aligned:
    """Align some events of steps; `stream` has the definitions of their regions and call paths (-1: not known)."""
    step, begin, end = events.step, events.start_ns, events.end_ns
    bounds = np.searchsorted(step, np.arange(len(start_ns) + 1))
    first = np.ones(len(step), dtype=bool)
    first[1:] = step[1:] != step[:-1]
    before = np.where(first, start_ns[step], np.concatenate([[0], end[:-1]]))
    filled = bounds[1:] > bounds[:-1]
    last = end[np.maximum(bounds[1:], 1) - 1] if len(end) else np.zeros(len(start_ns), dtype=np.int64)
    path, position, main = _align(events.key, bounds, usual)
    _, some = np.unique(position, return_index=True)  # an event of each position
    of_position = events.chosen(some[len(some) - len(main) :])
    parts = _parts(stream, of_position.call_path)
    parts[of_position.elsewhere & (parts == FORWARD)] = BACKWARD
    return Aligned(
        regions=of_position.region,
        parts=parts,
        modules=_modules(stream, of_position.call_path),
        step=step,
        position=position,
        region=events.region,
        start_ns=begin,
        duration_ns=end - begin,
        gap_ns=np.maximum(begin - before, 0),
        path=path,
        tail_ns=np.where(filled, np.maximum(end_ns - last, 0), end_ns - start_ns),
    )


def without_numbers(stream: Stream) -> Stream:
    """Return the same spans; marks that differ by their number only are one region: call paths below them are equal."""
    path = paths_without_numbers(stream)
    parent = np.append(path, -1)[stream.path_parent]
    return replace(stream, call_path=path[stream.call_path], path_parent=parent, shared={})


def paths_without_numbers(stream: Stream) -> Ints:
    """Return by call path the first one that differs by numbers of marks only."""
    key = [_NUMBERED_MARK.sub(r"\1", name) for name in stream.names]
    if key == list(stream.names):
        return np.arange(len(stream.path_parent))
    first_region: dict[str, int] = {}
    first_path: dict[tuple[int, int], int] = {}
    region = np.array([first_region.setdefault(name, number) for number, name in enumerate(key)], dtype=np.int64)
    path = np.empty(len(stream.path_parent), dtype=np.int64)
    for number, above in enumerate(stream.path_parent.tolist()):  # parents have smaller numbers than their children
        parent = int(path[above]) if above >= 0 else -1
        path[number] = first_path.setdefault((parent, int(region[stream.path_region[number]])), number)
    return path


def _modules(stream: Stream, main: Ints) -> Ints:
    """The module whose call each position lies in, a layer of the model: the outermost but one, -1 in none."""
    calls = module_calls(stream)[stream.path_region]
    found = []
    for path in main.tolist():
        around = []
        while path >= 0:
            if calls[path]:
                around.append(int(stream.path_region[path]))
            path = int(stream.path_parent[path])
        found.append(around[-2] if len(around) > 1 else around[0] if around else -1)
    return np.array(found, dtype=np.int64)


def _parts(stream: Stream, main: Ints) -> Ints:
    """The part of a step that each position belongs to: that of its own region, or of one that it is called from."""
    of_path = part_of_regions(stream.names, stream.paradigms)[stream.path_region]
    if stream.makes_batches is not None:
        of_path[stream.makes_batches] = DATA_WAIT
    parts = []
    for path in main.tolist():
        part = int(of_path[path]) if path >= 0 else -1
        above = int(stream.path_parent[path]) if path >= 0 else -1
        while above >= 0 and part != OPTIMIZER:
            outer = int(of_path[above])
            part = outer if outer >= 0 else part
            above = int(stream.path_parent[above])
        parts.append(part if part >= 0 else REST)
    updates = [place for place, part in enumerate(parts) if part == OPTIMIZER]
    for place in range(updates[-1] + 1 if updates else len(parts), len(parts)):
        parts[place] = REST if parts[place] == FORWARD else parts[place]
    return np.array(parts, dtype=np.int64)


def _events(stream: Stream, start_ns: Ints, end_ns: Ints, usual: Bools) -> tuple[Ints, Ints]:
    """Rows of the events of all steps, and which step each belongs to: outermost, but with some functions opened."""
    if not len(start_ns):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    step = np.searchsorted(start_ns, stream.start_ns, side="right") - 1
    inside = (step >= 0) & (stream.start_ns < end_ns[step])
    step = np.where(inside, step, -1)
    parent = np.maximum(stream.parent, 0)
    # What goes on after the end of its step, as a function does that holds a loop of which each iteration is a step, is
    # none of its events, but what it calls is.
    holds = np.zeros(len(stream), dtype=bool)
    holds[parent[stream.parent >= 0]] = True
    inside &= ~(holds & (stream.end_ns > end_ns[step]))
    root = inside & ((stream.parent < 0) | (step[parent] != step) | ~inside[parent])
    opened = _opened(stream, np.where(inside, step, -1), root, usual)
    shown = inside & ~opened[stream.call_path]
    shown &= root | opened[stream.call_path[parent]]
    rows = np.flatnonzero(shown)
    # A path may be opened that in one step hangs below something that is not.
    rows = rows[outermost(stream.start_ns[rows], stream.end_ns[rows])]
    return rows, step[rows]


def _opened(stream: Stream, step: Ints, root: Bools, usual: Bools) -> Bools:
    """Which call paths are looked into, so that their children are positions: the costliest first, while room is."""
    count = len(stream.path_parent)
    mine = np.flatnonzero((step >= 0) & usual[step])
    calls = np.bincount(stream.call_path[mine], minlength=count) / max(1, int(usual.sum()))
    total = np.bincount(stream.call_path[mine], weights=stream.duration_ns[mine], minlength=count)
    children: dict[int, list[int]] = {}
    for path in np.flatnonzero((calls > 0) & (stream.path_parent >= 0)).tolist():
        children.setdefault(int(stream.path_parent[path]), []).append(path)
    operators = np.array([paradigm == "torch" for paradigm in stream.paradigms], dtype=bool)
    within = operators[stream.path_region] & (calls > 0)
    for path in range(count - 1, -1, -1):  # parents have smaller numbers than their children
        if within[path] and stream.path_parent[path] >= 0:
            within[stream.path_parent[path]] = True
    opened = np.zeros(count, dtype=bool)
    roots = np.unique(stream.call_path[mine[root[mine]]]).tolist()
    columns = float(calls[roots].sum())
    waiting = [(-total[path], path) for path in roots]
    heapq.heapify(waiting)
    while waiting:
        _, path = heapq.heappop(waiting)
        inner = children.get(path, [])
        more = float(calls[inner].sum() - calls[path])
        if not inner or columns + more > MOST_POSITIONS or not _openable(stream, path):
            continue
        if not within[path] and total[inner].sum() < WORTH_OPENING * total[path]:
            continue
        opened[path] = True
        columns += more
        for each in inner:
            heapq.heappush(waiting, (-total[each], each))
    return opened


def _openable(stream: Stream, path: int) -> bool:
    """Functions and ranges are; an operator is what people count, whatever it calls."""
    region = int(stream.path_region[path])
    return stream.paradigms[region] in _OPENABLE_PARADIGMS or stream.names[region].startswith(_OPENABLE_RANGES)


def _align(paths: Ints, bounds: Ints, usual: Bools) -> tuple[Ints, Ints, Ints]:
    """Return which path each step takes, the position of every event (-1: none), and the positions' call paths."""
    ids = paths.astype(np.int32)
    keys = [ids[low:high].tobytes() for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
    counted = Counter(key for key in keys if key)
    if not counted:
        nothing = np.empty(0, dtype=np.int64)
        return np.full(len(keys), -1, dtype=np.int64), nothing, nothing
    main = _main_path([key for key, one in zip(keys, usual.tolist(), strict=True) if one and key] or list(counted))
    counted[main] = len(keys) + 1
    ranked = [key for key, _ in counted.most_common()]
    rank = {key: number for number, key in enumerate(ranked)}
    reference = np.frombuffer(main, dtype=np.int32).tolist()
    found = {}
    for key, number in rank.items():
        items = np.frombuffer(key, dtype=np.int32).tolist()
        places = align(reference, items, exact=number * len(reference) < MOST_ALIGNED)
        found[key] = np.array(places, dtype=np.int64)
    position = np.concatenate([found[key] for key in keys if key])
    path = np.array([rank.get(key, -1) for key in keys], dtype=np.int64)
    return path, position, np.array(reference, dtype=np.int64)


def _main_path(keys: Sequence[bytes]) -> bytes:
    """The most frequent path; where no path is frequent, one of middle length."""
    key, count = Counter(keys).most_common(1)[0]
    if count > 1 and count >= LEAST_USUAL * len(keys):
        return key
    return sorted(keys, key=len)[len(keys) // 2]


def align(reference: Sequence[int], other: Sequence[int], *, exact: bool = True) -> list[int]:
    """Return for each item of `other` its place in `reference`, -1 for none: a longest common subsequence.

    Without `exact` only what both have in common at the beginning and at the end is matched.
    """
    shorter = min(len(reference), len(other))
    head = 0
    while head < shorter and reference[head] == other[head]:
        head += 1
    tail = 0
    while tail < shorter - head and reference[-1 - tail] == other[-1 - tail]:
        tail += 1
    until = len(other) - tail
    places = list(range(head)) + [-1] * (until - head) + list(range(len(reference) - tail, len(reference)))
    if exact:
        inner = _common(reference[head : len(reference) - tail], other[head:until])
        places[head:until] = [head + place if place >= 0 else -1 for place in inner]
    return places


def _common(reference: Sequence[int], other: Sequence[int]) -> list[int]:
    """A longest common subsequence by bits of large integers (Hyyro, "Bit-parallel LCS-length computation", 2004)."""
    where: dict[int, int] = {}
    for place, item in enumerate(reference):
        where[item] = where.get(item, 0) | 1 << place
    full = (1 << len(reference)) - 1
    # Bit i of the line after j items is 0 where one more item can be matched by also looking at reference[i].
    line, lines = full, []
    for item in other:
        matched = line & where.get(item, 0)
        line = ((line + matched) | (line - matched)) & full
        lines.append(line)
    places = [-1] * len(other)
    i, j = len(reference) - 1, len(other) - 1
    while i >= 0 and j >= 0:
        if lines[j] >> i & 1:
            i -= 1
        elif j and not lines[j - 1] >> i & 1:
            j -= 1
        else:
            places[j] = i
            i, j = i - 1, j - 1
    return places
