"""The time of a step, each nanosecond once: to what comes first in a fixed order of the kinds of work that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from strobe.structure.activities import PROFILER_STEP, STEP_HINT
from strobe.structure.step_spans import StepSpans
from strobe.structure.stream import Ints, outermost

if TYPE_CHECKING:
    from strobe.store.trace import Trace

# In order of priority, as torch-tb-profiler 0.4.3 has them (event_parser.py, ProfileRole); the last is what is left.
ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other")
_KERNEL, _MEMCPY, _MEMSET, _COMMUNICATION, _RUNTIME, DATA_LOADER, _CPU_EXEC, _OTHER = range(8)
_NONE = -1
_GPU_LIBRARIES = ("cuda", "hip", "opencl")
# Python calls are around everything else, and say nothing about what the time went into.
_NO_WORK = ("python", "strobe", "other")
# Work of collectives on the host, by the names that PyTorch gives it; what only asks for it (c10d::) is CPU Exec.
_COLLECTIVES = ("nccl:", "gloo:", "mpi:", "ucc:")
# Spans of a process that a stretch holds about.
_STRETCH = 1 << 19


def split_by_priority(trace: Trace, steps: StepSpans) -> Ints:
    """Return the nanoseconds of each step by role: an array (steps, ROLES) whose rows add up to the durations.

    Everything counts that the process did: on all its threads, and on all streams of all its GPUs.
    """
    of_region = _roles(trace)
    locations = [
        (each["location"], of_region[0 if each["kind"] == "stream" else 1], each["span_count"])
        for each in trace.locations.to_arrow().to_pylist()
        if each["process"] == steps.process and each["kind"] in ("stream", "thread") and each["span_count"]
    ]
    out = np.zeros((len(steps), len(ROLES)), dtype=np.int64)
    first, last = int(steps.start_ns[0]), int(steps.end_ns[-1])
    width = (last - first) // max(1, -(-sum(count for _, _, count in locations) // _STRETCH)) + 1
    for begin in range(first, last, width):
        end = min(begin + width, last)
        parts = [np.zeros((3, 0), dtype=np.int64)]
        for location, roles, _ in locations:
            spans = trace.span_arrays(location, begin, end)
            role, start = roles[spans["region"]], np.maximum(spans["start_ns"], begin)
            until = np.minimum(spans["start_ns"] + spans["duration_ns"], end)
            for each in range(_OTHER):
                (at,) = np.nonzero(role == each)
                at = at[outermost(start[at], until[at])]
                parts.append(np.stack((start[at], until[at], role[at].astype(np.int64))))
        _add(out, steps, begin, end, *np.concatenate(parts, axis=1))
    return out


def _add(out: Ints, steps: StepSpans, begin: int, end: int, start: Ints, until: Ints, role: Ints) -> None:
    """Add the time of a stretch to the steps that it lies in."""
    low, high = np.searchsorted(steps.end_ns, begin, side="right"), np.searchsorted(steps.start_ns, end)
    bounds = np.concatenate((steps.start_ns[low:high], steps.end_ns[low:high], [begin, end]))
    times = np.concatenate((start, until, np.clip(bounds, begin, end)))
    order = np.argsort(times, kind="stable")
    change = np.concatenate((np.ones_like(start), -np.ones_like(until), np.zeros_like(bounds)))[order]
    of_role = np.concatenate((role, role, np.full(len(bounds), _NONE)))[order]
    times = times[order]
    highest = np.full(len(times), _OTHER)
    for each in reversed(range(_OTHER)):
        if (of_role == each).any():
            highest[np.cumsum(np.where(of_role == each, change, 0)) > 0] = each
    lasting = np.diff(times)
    step = np.searchsorted(steps.start_ns, times[:-1], side="right") - 1
    inside = (step >= 0) & (lasting > 0)
    inside &= times[:-1] < steps.end_ns[step]
    np.add.at(out, (step[inside], highest[:-1][inside]), lasting[inside])


def _roles(trace: Trace) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Return the role of every region where it runs on a stream, and where it runs on a thread; -1 for none."""

    def make() -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
        regions = trace.regions.to_arrow().to_pylist()
        on_stream = np.array([_role_on_stream(r) for r in regions], dtype=np.int8)
        return on_stream, np.array([_role_on_thread(r) for r in regions], dtype=np.int8)

    return trace.once("roles of step time", make)


def _role_on_stream(region: dict[str, str]) -> int:
    if region["role"] == "kernel":
        return _COMMUNICATION if region["group"] == "communication" else _KERNEL
    if region["role"] == "copy":
        return _MEMSET if "memset" in region["name"].lower() else _MEMCPY
    return _NONE


def _role_on_thread(region: dict[str, str]) -> int:
    name, paradigm = region["name"], region["paradigm"]
    if region["group"] == "data":
        return DATA_LOADER
    if paradigm == "mpi" or name.startswith(_COLLECTIVES):
        return _COMMUNICATION
    if paradigm in _GPU_LIBRARIES:
        return _RUNTIME
    if paradigm in _NO_WORK or name.startswith(PROFILER_STEP) or name == STEP_HINT:
        return _NONE
    return _CPU_EXEC
