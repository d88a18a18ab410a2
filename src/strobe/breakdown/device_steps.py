"""Steps as PyTorch's plugin for TensorBoard has them: each until the work that it launched on the GPU is done."""

from __future__ import annotations

import numpy as np

from strobe.breakdown.step_spans import StepSpans, spans_of_steps
from strobe.gpu.devices import devices
from strobe.gpu.launches import launches
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints, main_location
from strobe.steps.training_activities import PROFILER_STEP
from strobe.tables.column_arrays import place_of
from strobe.trace.definition_rows import regions_where
from strobe.trace.trace import Trace

_MARKED = "marks of PyTorch's profiler"
_FOUND = "steps as they were found"
_DEVICE = ", each until the work that it launched is done"
# The last step did not get all its kernels into the profile if it has less than this part of those before it.
_WHOLE = 0.8


def device_steps(trace: Trace) -> list[tuple[StepSpans, str]]:
    """Return the steps of every process that has any, and a phrase for what bounds them.

    As torch-tb-profiler 0.4.3 has it (event_parser.py, _find_device_steps and _update_steps_duration): a step that
    launches work on a GPU ends with the last of it, if that is later than the end on the host; the next one begins
    there. The steps at the end that launch nothing do not count, nor does the last one that launches if it has less
    than 0.8 of the activities of the step before it. Where the profiler's marks are steps, they last from the
    mark's start to its end.
    """
    return [_of_process(trace, each) for each in find_steps(trace).processes]


def _of_process(trace: Trace, steps: ProcessSteps) -> tuple[StepSpans, str]:
    start, end, bounds = steps.start_ns, steps.end_ns, _FOUND
    if any(loop.kind == "range" for loop in steps.loops):
        end, bounds = _ends_of_marks(trace, steps.process, start, end), _MARKED
    # Other tools' profiles begin where their user had them begin.
    counted = steps.complete & (bool(trace.info.source) | ~steps.warm_up)
    before_ns, device_end, launched = _device_ends(trace, steps.process, start, end)
    if launched.any():
        bounds += _DEVICE
        counted &= _with_all_work(launched) | ~steps.kept
        done = np.maximum.accumulate(np.maximum(end, device_end))
        start = np.maximum(start, np.concatenate(([before_ns], done[:-1])))
        end = np.maximum(start, done)
    return spans_of_steps(trace, steps, start, end, counted), bounds


def _ends_of_marks(trace: Trace, process: int, start: Ints, end: Ints) -> Ints:
    """Return the ends of the marks that begin with the steps; the steps' own where none does."""
    location = main_location(trace, process)
    marks = regions_where(trace, lambda region: region.name.startswith(PROFILER_STEP))
    out = end.copy()
    for spans in trace.span_batches(location) if location is not None else ():
        chosen = marks[spans["region"]]
        begin, until = spans["start_ns"][chosen], (spans["start_ns"] + spans["duration_ns"])[chosen]
        step = place_of(begin, start)
        known = step >= 0
        out[step[known]] = np.minimum(until[known], end[step[known]])
    return out


def _device_ends(trace: Trace, process: int, start: Ints, end: Ints) -> tuple[int, Ints, Ints]:
    """Return how the work on all GPUs of a process changes its steps on the host.

    That is: when work from before the first step was done, before the first work of that step began (the step's own
    start where there is none); by step, the end of what it launched; and how many activities that were.
    """
    lowest = np.iinfo(np.int64).min
    first_work, device_end = np.iinfo(np.int64).max, np.full(len(start), lowest)
    count = np.zeros(len(start), dtype=np.int64)
    foreign_end = np.full(0, lowest)
    for device in devices(trace):
        for found, by in launches(trace, device) if device.process == process else ():
            step = np.searchsorted(start, by.call.start_ns, side="right") - 1
            inside = (by.call.row >= 0) & (step >= 0)
            inside &= by.call.end_ns <= end[step]
            np.maximum.at(device_end, step[inside], found.end_ns[inside])
            np.add.at(count, step[inside], 1)
            first = found.start_ns[inside & (step == 0)]
            first_work = min(first_work, int(first.min()) if len(first) else first_work)
            foreign = ~inside & (found.start_ns < end[0])
            foreign_end = np.concatenate((foreign_end, found.end_ns[foreign]))
    earlier = foreign_end[foreign_end < first_work] if count[0] else foreign_end[:0]
    return max(int(start[0]), int(earlier.max()) if len(earlier) else lowest), device_end, count


def _with_all_work(launched: Ints) -> Bools:
    """Which steps have all their work on the GPU in the profile, from the number of activities of each."""
    last = int(np.flatnonzero(launched)[-1])
    whole = np.arange(len(launched)) <= last
    if last > 0 and launched[last] < _WHOLE * launched[last - 1]:
        whole[last] = False
    return whole
