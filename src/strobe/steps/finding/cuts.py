"""Cuts: where one step ends and the next begins. Marks count the steps; a step begins where the loop asks for data.

Where a step begins is decided by the recorder's own cutter, native/structure/cutter.cpp. What it does not need while
the program runs is here: where the last step ends, and which steps are complete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strobe.native import core
from strobe.steps.loop_choice.anchors import ANCHORS
from strobe.steps.loop_choice.main_loop import MainLoop
from strobe.steps.thread_spans import Bools, Ints, Stream, within
from strobe.steps.training_activities import Activities
from strobe.tables.column_arrays import Columns

# A profiler that stops inside of the last range is seen if it takes so many times as long as what is quiet otherwise.
_FEWEST_BEFORE, _UNUSUALLY_QUIET, _JITTER_NS = 2, 3, 1_000_000
# What PyTorch's profiler calls when it stops.
_OF_PROFILER = (
    "cudaProfilerStop",
    "cuProfilerStop",
    "hipProfilerStop",
    "<built-in method _disable_profiler",
)


@dataclass(frozen=True)
class Cuts(Columns):
    """The steps of a stream. Nanoseconds; a step is [start_ns[i], end_ns[i]).

    `fed_ns` is when the data of a step had come: what lies before belongs to getting them. `complete` is false for a
    step whose beginning or end was not recorded. From `validation_ns` on the model is evaluated: the end, mostly.
    """

    start_ns: Ints
    end_ns: Ints
    fed_ns: Ints
    complete: Bools
    validation_ns: Ints


def cut(stream: Stream, loop: MainLoop, acts: Activities) -> Cuts:
    """Cut a stream into steps."""
    cuts = _cut(stream, loop, acts)
    # A wait that holds other marks would reach into the next step.
    return replace(cuts, fed_ns=np.minimum(cuts.fed_ns, cuts.end_ns))


def _cut(stream: Stream, loop: MainLoop, acts: Activities) -> Cuts:
    if loop.kind == "range":
        return _cut_at_ranges(stream, loop.rows)
    if loop.kind == "hint":
        return _cut_after(stream, loop.rows)
    if loop.kind in ANCHORS:
        return _cut_at_anchors(stream, loop, acts)
    return _cut_at(stream, stream.start_ns[loop.rows], stream.start_ns[loop.rows])


def _cuts(start: Ints, end: Ints, fed: Ints, complete: Bools | None = None) -> Cuts:
    """Steps without a validation."""
    return Cuts(start, end, fed, np.ones(len(start), dtype=bool) if complete is None else complete, end)


def cutter_of(stream: Stream, loop: MainLoop) -> core.Cutter:
    """Return a cutter of a stream that an anchor of PyTorch marks; it knows no activities yet."""
    return core.Cutter(list(ANCHORS).index(loop.kind), stream.start_ns, stream.duration_ns, stream.parent)


def activity_table(acts: Activities) -> Ints:
    """Return activities as the rows that a cutter takes."""
    columns = (acts.start_ns, acts.end_ns, acts.row, acts.call_path, acts.region, acts.part, acts.change)
    return np.stack(columns, axis=1)


def _cut_at_anchors(stream: Stream, loop: MainLoop, acts: Activities) -> Cuts:
    cutter = cutter_of(stream, loop)
    cutter.add(activity_table(acts).ravel())
    cutter.learn(stream.start_ns[loop.rows])
    found = [each for each in map(cutter.cut, loop.rows.tolist()) if each is not None]
    begun = cutter.cut_early(hurry=True)
    if loop.kind == "data_wait" and begun is not None:
        found.append(begun)
    start, fed = np.array(found, dtype=np.int64).T.copy()
    if loop.kind != "optimizer":
        # A wait within an operator begins before a wait that the same operator has made already.
        later = np.append(True, start[1:] > np.maximum.accumulate(start)[:-1])
        return _cut_at(stream, start[later], fed[later])
    mark_end, waited = stream.end_ns[loop.rows], fed > start
    complete = np.ones(len(start), dtype=bool)
    complete[0] = waited[0] or 2 * np.count_nonzero(waited) <= len(waited)
    if begun is not None and begun[1] > begun[0]:  # its forward pass had begun when recording ended
        ends = [begun[0], stream.end_ns.max()]
        found_ends = np.append(start[1:], ends)
        return _cuts(np.append(start, begun[0]), found_ends, np.append(fed, begun[1]), np.append(complete, False))
    tails = within(stream.start_ns, mark_end[:-1], start[1:])
    end = _end_of_last(stream, int(mark_end[-1]), np.unique(stream.call_path[tails]))
    cuts = _cuts(start, np.append(start[1:], end), fed, complete)
    validated = {end_ns: begin_ns for begin_ns, end_ns in cutter.unfed_validations()}
    begun_ns = [validated.get(end_ns, end_ns) for end_ns in cuts.end_ns.tolist()]
    return replace(cuts, validation_ns=np.array(begun_ns, dtype=np.int64))


def _cut_at(stream: Stream, start: Ints, fed: Ints) -> Cuts:
    """Steps that begin at given times."""
    inside = within(stream.start_ns, start[:-1], start[1:])
    end = _end_of_last(stream, int(start[-1]), np.unique(stream.call_path[inside]))
    return _cuts(start, np.append(start[1:], max(end, fed[-1])), fed)


def _cut_at_ranges(stream: Stream, ranges: Ints) -> Cuts:
    """Steps that are ranges: each lasts until the next one begins."""
    start = stream.start_ns[ranges]
    end = np.append(start[1:], _end_of_last_range(stream, ranges))
    return _cuts(start, end, start)


def _end_of_last_range(stream: Stream, ranges: Ints) -> int:
    """End of the last range, without the time in which a profiler stops inside of it: nothing is recorded then.

    That is what is quiet at its end beyond what was quiet at the ends of the others.
    """
    end = stream.end_ns[ranges]
    quiet = np.array([_quiet_ns(stream, row) for row in ranges.tolist()])
    before = quiet[:-1]
    if len(before) < _FEWEST_BEFORE or quiet[-1] <= _UNUSUALLY_QUIET * (before.max() + _JITTER_NS):
        return int(end[-1])
    return int(end[-1] - quiet[-1] + np.median(before))


def _quiet_ns(stream: Stream, row: int) -> int:
    """How long nothing happens at the end of a range that the profiler itself does not do."""
    begin, end = int(stream.start_ns[row]), int(stream.end_ns[row])
    rows = np.arange(row + 1, int(np.searchsorted(stream.start_ns, end)))
    ends = stream.end_ns[rows]
    names = (stream.names[region] for region in stream.region[rows].tolist())
    program = np.array([not name.startswith(_OF_PROFILER) for name in names], dtype=bool) & (ends < end)
    return end - int(ends[program].max(initial=begin))


def _cut_after(stream: Stream, marks: Ints) -> Cuts:
    """Steps that the program itself ends with a mark. The first begins with the first call that the others make too."""
    end = stream.end_ns[marks]
    known = set(np.unique(stream.call_path[within(stream.start_ns, end[:-1], end[1:])]).tolist())
    first = int(marks[0])
    while first > 0 and int(stream.call_path[first - 1]) in known:
        first -= 1
    start = np.append(stream.start_ns[first], end[:-1])
    return _cuts(start, end, start)


def _end_of_last(stream: Stream, begin_ns: int, usual_paths: Ints) -> int:
    """End of the last step: it goes on while what runs is known from the other steps, at the same call path."""
    end, known = begin_ns, set(usual_paths.tolist())
    for row in range(int(np.searchsorted(stream.start_ns, begin_ns)), len(stream)):
        start = int(stream.start_ns[row])
        if start < end:
            continue  # inside of what was accepted already
        if int(stream.call_path[row]) not in known:
            break
        end = max(end, start + int(stream.duration_ns[row]))
    return end
