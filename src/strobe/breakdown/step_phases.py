"""Phases of a step: before the forward pass, forward and backward, and after; on the GPU where there is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.breakdown.step_spans import StepSpans
from strobe.gpu.devices import devices
from strobe.gpu.launches import launches
from strobe.gpu.work import KINDS
from strobe.steps.thread_spans import Ints, read_streams
from strobe.steps.training_activities import BACKWARD, DATA_WAIT, FORWARD, Activities, activities
from strobe.trace.trace import Trace

_COMPUTATION, _COMMUNICATION = KINDS.index("computation"), KINDS.index("communication")
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Phases:
    """When the forward pass of each step begins, and when its backward pass ends; nanoseconds, as long as `steps`.

    A step without a forward pass is all interval, one without a backward pass ends with the forward pass. wait: of what
    lies before the forward pass, waits for data. location, region, begin, end: every collective on a GPU that
    begins in a step, in order of step and start, and `step`, its index.
    """

    steps: StepSpans
    forward_ns: Ints
    backward_end_ns: Ints
    wait_ns: Ints
    on_gpu: bool
    step: Ints
    location: Ints
    region: Ints
    begin_ns: Ints
    end_ns: Ints


def phases(trace: Trace, of_processes: list[StepSpans]) -> list[Phases]:
    """Return the phases of the steps of each process that has any.

    The host decides what is forward (the first operator after the wait for data) and backward (the last node of
    autograd).
    Where a step launches kernels that compute, it is the first and the last of those launched in between that count;
    unless the GPU is still busy with them when the next step begins: then all passes are those of the host.
    """
    acts = {process: activities(stream) for process, stream in read_streams(trace)}
    return [_of_process(trace, steps, acts[steps.process]) for steps in of_processes if len(steps)]


def _of_process(trace: Trace, steps: StepSpans, acts: Activities) -> Phases:
    forward, backward, waits = _on_host(steps, acts)
    first, last = np.full(len(steps), _NEVER), np.full(len(steps), -_NEVER)
    collectives = [np.zeros((5, 0), dtype=np.int64)]
    for device in devices(trace):
        for found, by in launches(trace, device) if device.process == steps.process else ():
            step = np.searchsorted(steps.start_ns, by.call.start_ns, side="right") - 1
            inside = (by.call.row >= 0) & (step >= 0) & (found.kind == _COMPUTATION)
            inside &= (by.call.start_ns >= forward[step]) & (by.call.start_ns < backward[step])
            np.minimum.at(first, step[inside], found.start_ns[inside])
            np.maximum.at(last, step[inside], found.end_ns[inside])
            step = np.searchsorted(steps.start_ns, found.start_ns, side="right") - 1
            talks = (found.kind == _COMMUNICATION) & (step >= 0) & (found.start_ns < steps.end_ns[step])
            columns = (step, found.location, found.region, found.start_ns, found.end_ns)
            collectives.append(np.stack([column[talks].astype(np.int64) for column in columns]))
    on_gpu = (first < _NEVER) & bool((last <= steps.end_ns).all())
    forward, backward = np.where(on_gpu, first, forward), np.where(on_gpu, last, backward)
    forward = np.clip(forward, steps.start_ns, steps.end_ns)
    backward = np.clip(backward, forward, steps.end_ns)
    lines = np.concatenate(collectives, axis=1)
    lines = lines[:, np.lexsort((lines[3], lines[1], lines[0]))]
    before = _clipped(waits, steps.start_ns, forward)
    return Phases(steps, forward, backward, before, bool(on_gpu.any()), *lines)


def _on_host(steps: StepSpans, acts: Activities) -> tuple[Ints, Ints, tuple[Ints, Ints, Ints]]:
    """Return by step when the forward pass begins and the backward pass ends, and the waits: step, start, end.

    The end of the step stands for the begin of a forward pass, and the end of a backward pass, that is not there.
    """
    step = np.searchsorted(steps.start_ns, acts.start_ns, side="right") - 1
    inside = (step >= 0) & (acts.start_ns < steps.end_ns[step])
    asked = np.full(len(steps), _NEVER)
    waits = inside & (acts.part == DATA_WAIT)
    np.minimum.at(asked, step[waits], acts.start_ns[waits])
    forward = steps.end_ns.copy()
    forwards = inside & (acts.part == FORWARD)
    forwards &= (asked[step] == _NEVER) | (acts.start_ns >= asked[step])
    np.minimum.at(forward, step[forwards], acts.start_ns[forwards])
    last = np.full(len(steps), -_NEVER)
    backwards = inside & (acts.part == BACKWARD)
    np.maximum.at(last, step[backwards], acts.end_ns[backwards])
    backward = np.where(last > -_NEVER, last, steps.end_ns)
    return forward, backward, (step[waits], acts.start_ns[waits], acts.end_ns[waits])


def _clipped(waits: tuple[Ints, Ints, Ints], low: Ints, high: Ints) -> Ints:
    """Return how much of the waits of each step lies in [low, high)."""
    step, start, end = waits
    out = np.zeros(len(low), dtype=np.int64)
    np.add.at(out, step, np.maximum(0, np.minimum(end, high[step]) - np.maximum(start, low[step])))
    return out
