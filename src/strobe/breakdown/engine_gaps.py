"""Gaps of GPUs in the steps of a serving engine, and which stage of the engine the host is in meanwhile."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.engine_work import Launched
from strobe.breakdown.gpu_step import WAITS, own_time_in
from strobe.model.engine_stages import LAUNCH, engine_stage
from strobe.model.engine_steps import engine_step
from strobe.model.kinds import GPU_CALL_PARADIGMS
from strobe.steps.process_steps import ProcessSteps
from strobe.tables.column_arrays import Bools
from strobe.trace.definition_rows import path_tree, region_rows
from strobe.trace.trace import Trace

WAIT, OTHER = "wait", "other"
_MOST = 4000  # gaps whose host work is looked at, the longest
# The spans that pass for a cause, by region.
_Spent = tuple[int, dict[int, int]]


@dataclass(frozen=True)
class Gap:
    """A time in which a GPU ran nothing, before a kernel of a step.

    between: the kernel that ran before is of the step before. causes: by cause, how long it lasts, ns, and the regions
    in which that passes; None is the cause of what was not recorded.
    """

    step: int
    device: int
    between: bool
    causes: dict[str | None, _Spent]


def gaps_before(trace: Trace, steps: ProcessSteps, marked: Container[int], launched: Launched) -> list[Gap]:
    """Return the gaps of all GPUs of a process that end with an activity of a marked step."""
    found = [gap for device in np.unique(launched.device).tolist() for gap in _of_device(steps, launched, device)]
    found = [gap for gap in found if gap[1] in marked]
    looked_at = set(sorted(range(len(found)), key=lambda at: found[at][3] - found[at][4])[:_MOST])
    stages, is_mark = _stages(trace), _marks(trace)
    gaps = list[Gap]()
    for number, (device, step, between, begin, end, thread, call) in enumerate(found):
        causes: dict[str | None, _Spent] = {None: (end - begin, {})}
        if number in looked_at and thread >= 0:
            causes = _causes(trace, stages, is_mark, thread, (begin, min(end, max(begin, call)), end))
        gaps.append(Gap(step, device, between, causes))
    return gaps


def _of_device(
    steps: ProcessSteps, launched: Launched, device: int
) -> Iterator[tuple[int, int, bool, int, int, int, int]]:
    """Yield device, step, whether it is between two steps, begin, end, launching thread and moment of each gap."""
    own = launched.chosen(launched.device == device)
    own = own.chosen(np.argsort(own.start_ns, kind="stable"))
    reach, number = np.maximum.accumulate(own.end_ns), np.arange(len(own))
    # Copies of tokens lie between two steps, whichever of them launches them: kernels tell the steps apart.
    kernel = own.copies == 0
    before = np.maximum.accumulate(np.where(kernel, number, -1))
    after = np.minimum.accumulate(np.where(kernel, number, len(own))[::-1])[::-1]
    for at in (np.flatnonzero(own.start_ns[1:] > reach[:-1]) + 1).tolist():
        last, step = int(own.step[before[at - 1]]), int(own.step[min(int(after[at]), len(own) - 1)])
        if before[at - 1] >= 0 and 0 <= step - last <= 1 and steps.loop[last] == steps.loop[step]:
            moments = int(reach[at - 1]), int(own.start_ns[at])
            yield device, step, last < step, *moments, int(own.call_location[at]), int(own.call_ns[at])


def _stages(trace: Trace) -> list[str]:
    """Return the cause of each call path: of a call that waits `wait`, else the innermost stage around it."""
    parent, region = path_tree(trace)
    regions = region_rows(trace)
    own = [WAIT if WAITS.match(each.name) else engine_stage(each.name, each.file or "") for each in regions]
    is_launch = [each.role == "operator" or each.paradigm in GPU_CALL_PARADIGMS for each in regions]
    inherited, found = list[str](), list[str]()
    for path in range(len(parent)):  # parents come before their children
        above = inherited[parent[path]] if parent[path] >= 0 else ""
        at = region[path]
        stage = above if is_launch[at] else own[at] or above
        inherited.append(stage)
        found.append(own[at] if own[at] == WAIT else stage or (LAUNCH if is_launch[at] else OTHER))
    return found


def _marks(trace: Trace) -> Bools:
    """Return which regions are marks of steps: nobody knows what passes in one outside of all other spans."""
    return np.array([engine_step(each.name) is not None for each in region_rows(trace)], dtype=bool)


def _causes(
    trace: Trace, stages: list[str], is_mark: Bools, thread: int, moments: tuple[int, int, int]
) -> dict[str | None, _Spent]:
    """Return what a gap is made of: until the launch what the thread does, then the way of the launch to the GPU."""
    begin, launch, end = moments
    spans, own = own_time_in(trace.span_arrays(thread, begin, launch), begin, launch, is_mark)
    sums: dict[str | None, dict[int, int]] = {}
    for path, region, time_ns in zip(spans["call_path"].tolist(), spans["region"].tolist(), own.tolist(), strict=True):
        if time_ns > 0:
            regions = sums.setdefault(stages[path], {})
            regions[region] = regions.get(region, 0) + time_ns
    causes: dict[str | None, _Spent] = {cause: (sum(regions.values()), regions) for cause, regions in sums.items()}
    if end > launch:
        spent_ns, regions = causes.get(LAUNCH, (0, {}))
        causes[LAUNCH] = (spent_ns + end - launch, regions)
    unknown = end - begin - sum(spent_ns for spent_ns, _ in causes.values())
    return causes | ({None: (unknown, {})} if unknown > 0 else {})
