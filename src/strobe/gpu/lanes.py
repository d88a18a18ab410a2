"""Lanes: what the time of a GPU went into, step by step, folded or not.

The lane of a step begins with the first activity that was launched since the step began, and ends with the first one
that was launched since the next step began: native/structure/gpu_lanes.h has the whole rule. While the program runs the
recorder adds them up; of steps without a record the same code does it here, from spans.

The lane of a step that no other one precedes or follows lasts at least as long as the step: what the GPU waits for
before its first activity would else be in no lane. In a row of steps it is in the lane of the step before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import Device
from strobe.gpu.launches import launches
from strobe.gpu.work import MASKS, Work
from strobe.native import core
from strobe.steps.process_steps import ProcessSteps
from strobe.tables.column_arrays import Bools, Columns, Ints
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class Lanes(Columns):
    """The lanes of the steps of a process on one GPU: an entry per step. Nanoseconds since the trace's zero.

    set_ns: array (steps, MASKS), how long exactly each set of kinds ran (strobe.gpu.work.KINDS; 0: none); the row of a
    step adds up to its lane. known: whether all of it was recorded; else the row is 0.
    """

    start_ns: Ints
    set_ns: Ints
    known: Bools


def lanes(trace: Trace, device: Device, steps: ProcessSteps) -> Lanes:
    """Return the lanes of the steps of the device's process."""
    records, recorded = trace.iterations(device.process), trace.gpu_lanes(device.process).get(device.number)
    start_ns, set_ns = np.zeros(len(steps), dtype=np.int64), np.zeros((len(steps), MASKS), dtype=np.int64)
    of_records = np.zeros(len(steps), dtype=bool)
    if recorded is not None:
        # A step of an outer loop holds several records.
        first, end = (np.searchsorted(records.start_ns, time) for time in (steps.start_ns, steps.end_ns))
        known, until_ns = (
            np.concatenate((values[:1] * 0, values.cumsum(axis=0))) for values in (recorded.known, recorded.set_ns)
        )
        of_records = (end > first) & (known[end] - known[first] == end - first)
        of_records &= np.append(records.start_ns, -1)[first] == steps.start_ns
        start_ns[of_records] = recorded.start_ns[first[of_records]]
        set_ns[of_records] = (until_ns[end] - until_ns[first])[of_records]
    # What folded neighbours launched may run in a lane, and end it.
    apart, there = steps.start_ns[1:] != steps.end_ns[:-1], steps.kept | of_records
    seen = steps.kept & ~of_records
    seen &= np.append(apart | there[1:], True) & np.append(True, apart | there[:-1])
    if seen.any():
        marks = steps.start_ns[of_records], start_ns[of_records]
        found = _of_spans(trace, device, steps, *marks)
        alone = seen & np.append(apart, True) & np.append(True, apart) & found[:, 1:].any(axis=1)
        if alone.any():  # that launch something
            bounds = np.concatenate((steps.start_ns[alone], steps.end_ns[alone] - 1))
            called, at = (np.concatenate((times, bounds)) for times in marks)
            order = np.argsort(at, kind="stable")
            found = _of_spans(trace, device, steps, called[order], at[order])
        start_ns[seen], set_ns[seen] = found[seen, 0], found[seen, 1:]
    return Lanes(start_ns, set_ns, of_records | seen)


def _of_spans(trace: Trace, device: Device, steps: ProcessSteps, launched: Ints, at: Ints) -> Ints:
    """Return start and times of the lanes by the spans that are there: an array (steps, 1 + MASKS).

    Lanes begin, end or last, too, as if something of no length had been `launched` then and had begun `at` that time.
    """
    found = core.LanesOfGpu(steps.start_ns, steps.end_ns)
    marks = launched, at
    for work, who in launches(trace, device):
        called = np.where(who.call.row >= 0, who.call.start_ns, work.start_ns)
        here = marks[1] <= work.start_ns[-1] if len(work) else np.zeros(len(marks[1]), dtype=bool)
        _add(found, marks[0][here], marks[1][here], called, work)
        marks = marks[0][~here], marks[1][~here]
    _add(found, *marks, np.zeros(0, dtype=np.int64), Work.joined(()))
    rows: Ints = found.finish().reshape(-1, 1 + MASKS)
    return rows


def _add(found: core.LanesOfGpu, launched: Ints, at: Ints, called: Ints, work: Work) -> None:
    """Add activities, and others of no length that were launched and began then."""
    start = np.concatenate((at, work.start_ns))
    order = np.argsort(start, kind="stable")
    ends, kinds = np.concatenate((at, work.end_ns)), np.concatenate((np.zeros(len(at), dtype=np.int8), work.kind))
    found.add(np.concatenate((launched, called))[order], start[order], ends[order], kinds.astype(np.int8)[order])
