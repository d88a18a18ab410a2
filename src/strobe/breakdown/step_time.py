"""The time of a step by kind of work: each nanosecond goes to the first kind, in a fixed order, that runs then."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from strobe.breakdown.step_spans import StepSpans
from strobe.gpu.work import KINDS, kind_of_region
from strobe.model.kinds import GPU_CALL_PARADIGMS, RANK_PARADIGMS
from strobe.steps.batch_makers import making_regions
from strobe.steps.thread_spans import Ints, outermost
from strobe.steps.training_activities import PROFILER_STEP, STEP_HINT
from strobe.trace.definition_rows import Region, location_rows, region_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

Kinds = npt.NDArray[np.int8]

# In order of priority, as torch-tb-profiler 0.4.3 has them (event_parser.py, ProfileRole); the last is what is left.
ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other")
_KERNEL, _MEMCPY, _MEMSET, _COMMUNICATION, _RUNTIME, _DATA_LOADER, _CPU_EXEC = range(7)
_NONE = -1
# Python calls are around everything else: they do not show what the time went into.
_NO_WORK = ("python", "strobe", "other")
# Work of collectives on the host, by the names that PyTorch gives it; what only asks for it (c10d::) is CPU Exec.
_COLLECTIVES = ("nccl:", "gloo:", "mpi:", "ucc:")
# Spans of a process that a stretch holds about.
_STRETCH = 1 << 19


def split_by_priority(trace: Trace, steps: StepSpans) -> Ints:
    """Return the nanoseconds of each step by role: an array (steps, ROLES) whose rows add up to the durations."""
    first, _ = divide_steps(trace, steps, *roles(trace), len(ROLES))
    return first


def divide_steps(trace: Trace, steps: StepSpans, on_stream: Kinds, on_thread: Kinds, count: int) -> tuple[Ints, Ints]:
    """Return how long each kind of work ran in each step while no kind before it did, and how long it ran at all.

    `on_stream`, `on_thread`: the kind of every region where it runs there, from 0 to `count` - 2, or -1 for none. Both
    results are arrays (steps, count) in nanoseconds. The last column of the first is when nothing ran, so that its rows
    add up to the durations; that of the second is 0. Everything counts that the process did: on all its threads, and
    on all streams of all its GPUs.
    """
    locations = [
        (each.location, on_stream if each.kind == "stream" else on_thread, each.span_count)
        for each in location_rows(trace)
        if each.process == steps.process and each.kind in ("stream", "thread") and each.span_count
    ]
    first, at_all = (np.zeros((len(steps), count), dtype=np.int64) for _ in range(2))
    begin, last = int(steps.start_ns[0]), int(steps.end_ns[-1])
    width = (last - begin) // max(1, -(-sum(spans for _, _, spans in locations) // _STRETCH)) + 1
    for low in range(begin, last, width):
        high = min(low + width, last)
        parts = [np.zeros((3, 0), dtype=np.int64)]
        for location, kinds, _ in locations:
            parts += _running(trace.span_arrays(location, low, high), kinds, low, high, count)
        _add(first, at_all, steps, low, high, *np.concatenate(parts, axis=1))
    return first, at_all


def _running(spans: SpanArrays, kinds: Kinds, low: int, high: int, count: int) -> Iterator[Ints]:
    """Yield start, end and kind of what runs in [low, high), without what lies inside of others of its kind."""
    kind = kinds[spans["region"]]
    start, end = np.maximum(spans["start_ns"], low), np.minimum(spans["start_ns"] + spans["duration_ns"], high)
    for each in range(count - 1):
        (at,) = np.nonzero(kind == each)
        at = at[outermost(start[at], end[at])]
        yield np.stack((start[at], end[at], np.full(len(at), each)))


def _add(first: Ints, at_all: Ints, steps: StepSpans, low: int, high: int, start: Ints, end: Ints, kind: Ints) -> None:
    """Add the time of a stretch to the steps that it lies in."""
    touched = slice(np.searchsorted(steps.end_ns, low, side="right"), np.searchsorted(steps.start_ns, high))
    bounds = np.clip(np.concatenate((steps.start_ns[touched], steps.end_ns[touched], [low, high])), low, high)
    times = np.concatenate((start, end, bounds))
    order = np.argsort(times, kind="stable")
    times = times[order]
    lasting = np.diff(times)
    step = np.searchsorted(steps.start_ns, times[:-1], side="right") - 1
    inside = (step >= 0) & (lasting > 0)
    inside &= times[:-1] < steps.end_ns[step]
    step, lasting = step[inside], lasting[inside]
    taken = np.zeros(len(step), dtype=bool)
    last = first.shape[1] - 1
    for each in range(last):
        of_kind = (kind == each).astype(np.int64)
        change = np.concatenate((of_kind, -of_kind, np.zeros_like(bounds)))[order]
        runs = (np.cumsum(change) > 0)[:-1][inside]
        np.add.at(at_all[:, each], step[runs], lasting[runs])
        runs &= ~taken
        np.add.at(first[:, each], step[runs], lasting[runs])
        taken |= runs
    np.add.at(first[:, last], step[~taken], lasting[~taken])


@cached_on_trace
def roles(trace: Trace) -> tuple[Kinds, Kinds]:
    """Return the role of every region where it runs on a stream, and where it runs on a thread; -1 for none."""
    regions = region_rows(trace)
    on_stream = np.array([_role_on_stream(each) for each in regions], dtype=np.int8)
    on_stream[kind_of_region(trace) == KINDS.index("communication")] = _COMMUNICATION
    on_thread = np.array([_role_on_thread(each) for each in regions], dtype=np.int8)
    on_thread[making_regions(trace)] = _DATA_LOADER
    return on_stream, on_thread


def _role_on_stream(region: Region) -> int:
    if region.role == "kernel":
        return _KERNEL
    if region.role == "copy":
        return _MEMSET if "memset" in region.name.lower() else _MEMCPY
    return _NONE


def _role_on_thread(region: Region) -> int:
    name, paradigm = region.name, region.paradigm
    if region.group == "data":
        return _DATA_LOADER
    if paradigm in RANK_PARADIGMS or name.startswith(_COLLECTIVES):
        return _COMMUNICATION
    if paradigm in GPU_CALL_PARADIGMS and region.role != "range":
        return _RUNTIME
    if paradigm in _NO_WORK or name.startswith(PROFILER_STEP) or name == STEP_HINT:
        return _NONE
    return _CPU_EXEC
