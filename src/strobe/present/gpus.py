"""The activity of the GPUs during the steps: a line each in the summary, and the verdict if they are the problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.step_spans import step_spans
from strobe.gpu.devices import Device, devices
from strobe.gpu.idle import CAUSES, idle_sums
from strobe.gpu.lanes import lanes
from strobe.gpu.work import COMMUNICATION, COMPUTATION, COPY, divided
from strobe.model.units import format_share
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.trace.trace import Trace

# What takes at least this part of what the main activity takes is told beside it.
BESIDE = 0.5


@dataclass(frozen=True)
class IdleCause:
    """A cause of idle time (strobe.gpu.idle.CAUSES): its share of that, 0 to 1, and the longest gap, ns.

    Of gaps in complete steps, or in the run if there are none.
    """

    cause: str
    share: float
    start_ns: int | None
    longest_ns: int | None


@dataclass(frozen=True)
class Gpu:
    """One GPU during the steady steps of its process, or the whole run if there are none, as shares from 0 to 1.

    computation: a kernel computes; communication, copy: nothing else runs; idle: nothing runs. They add up to 1.
    steps: how many steps `duration_ns` is of, 0: the whole run. causes: what the idle time is split into.
    held: of it, the share in which work had been launched and did not begin for long: it waited for what is not here.
    """

    name: str
    rank: int | None
    duration_ns: int
    computation: float
    communication: float
    copy: float
    idle: float
    steps: int = 0
    causes: tuple[IdleCause, ...] = ()
    held: float = 0.0


def gpus(trace: Trace) -> tuple[Gpu, ...]:
    """Return every GPU that did any work, for each process."""
    found = []
    all_gpus = devices(trace)
    steps = {each.process: each for each in find_steps(trace).processes} if all_gpus else {}
    for device in all_gpus:
        own = steps.get(device.process)
        count = int(own.steady.sum()) if own is not None else 0
        sums = _in_steady_steps(trace, device, own)
        if not int(sums[1:].sum()):  # the host was through with its steps before the GPU began
            sums, count = divided(trace, device), 0
        duration = int(sums.sum())
        if not int(sums[1:].sum()):
            continue
        computes = sum(int(time) for mask, time in enumerate(sums) if mask & COMPUTATION)
        alone = sums[COMMUNICATION] + sums[COMMUNICATION | COPY]
        parts = (computes, int(alone), int(sums[COPY]), int(sums[0]))
        computation, communication, copy, idle = (part / duration for part in parts)
        causes, held_ns = _causes(trace, device, count > 0)
        of_whole = (computation, communication, copy, idle)
        found.append(Gpu(device.name, device.rank, duration, *of_whole, count, causes, min(idle, held_ns / duration)))
    return tuple(found)


def _causes(trace: Trace, device: Device, in_steps: bool) -> tuple[tuple[IdleCause, ...], float]:
    """Return what a GPU was idle for, the main cause first, and for how long launched work did not begin, ns."""
    steps = next((each for each in step_spans(trace) if each.process == device.process and in_steps), None)
    sums = idle_sums(trace, device, weights=steps.weights_at if steps is not None and len(steps) else None)
    if not sums or not (whole := float(sums[0].time_ns.sum())):
        return (), 0.0
    of_cause = []
    for number in np.argsort(-sums[0].time_ns, kind="stable").tolist():
        if time := float(sums[0].time_ns[number]):
            longest = sums[0].longest.get(number)
            place = (longest.start_ns, longest.longest_ns) if longest else (None, None)
            of_cause.append(IdleCause(CAUSES[number], time / whole, *place))
    return tuple(of_cause), sums[0].held_ns


def _in_steady_steps(trace: Trace, device: Device, steps: ProcessSteps | None) -> Ints:
    """Return how long each set of kinds ran in the steady steps, or in the whole run if there are none."""
    if steps is None or not (steady := steps.steady).any():
        return divided(trace, device)
    if (found := lanes(trace, device, steps)).known[steady].all():
        sums: Ints = found.set_ns[steady].sum(axis=0)
        if trace.info.source and steady[-1]:  # its lane ends with the last activity in the file: then the GPU idles
            sums[0] += max(0, int(steps.end_ns[-1] - found.start_ns[-1] - found.set_ns[-1].sum()))
        return sums
    return divided(trace, device, int(steps.start_ns[steady].min()), int(steps.end_ns[steady].max()))


def gpu_verdict(found: Sequence[Gpu]) -> tuple[str, str, float, float]:
    """Return kind, sentence and share of the main activity of the GPUs, and by how much it is ahead of the next.

    `found` must not be empty.
    """
    one = len(found) == 1
    who, average = ("the GPU", "") if one else (f"{len(found)} GPUs", " on average")
    words = {
        "compute-bound": "computes" if one else "compute",
        "communication-bound": f"{'communicates' if one else 'communicate'} without computing",
        "transfer-bound": f"{'copies' if one else 'copy'} without computing",
        "host-bound": "is idle" if one else "are idle",
    }
    each_gpu = [(each.computation, each.communication, each.copy, each.idle) for each in found]
    shares = dict(zip(words, np.mean(each_gpu, axis=0).tolist(), strict=True))
    kind, second, *_ = sorted(shares, key=lambda each: -shares[each])
    text = f"{kind}: {who} {words[kind]} {format_share(shares[kind])} of the time{average}"
    if shares[second] >= BESIDE * shares[kind]:
        text += f", and {words[second]} {format_share(shares[second])}"
    return kind, text, shares[kind], shares[kind] - shares[second]
