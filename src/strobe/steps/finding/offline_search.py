"""The steps of one thread, found in its spans after the run: the iterations of its main loops, cut and classified."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.steps.finding.classes import classify
from strobe.steps.finding.cuts import cut
from strobe.steps.finding.outliers import find_outliers
from strobe.steps.finding.requested_steps import Asked, asked_loops
from strobe.steps.finding.step_parts import split
from strobe.steps.folded_time import FoldedTime
from strobe.steps.loop_choice.main_loop import MainLoop, find_loops
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Stream
from strobe.steps.training_activities import PARTS, activities
from strobe.trace.folded import ALL, PART


def steps_of(
    stream: Stream,
    process: int = 0,
    recurring: Collection[str] = (),
    asked: Asked | None = None,
    folded: FoldedTime | None = None,
) -> ProcessSteps:
    """Find the steps of one thread, or those that the user asks for.

    `recurring`: names of extras that are known to make a class, seen once or often. `folded`: of what the stream holds
    no spans, where steps are asked for.
    """
    loops = find_loops(stream)
    if asked:
        loops = asked_loops(stream, loops, asked)
    if not loops:
        return _none(process, "no loop stands out: nothing repeats often and regularly enough")
    if len(loops) == 1:
        return steps_of_loop(stream, loops[0], process, recurring, folded=folded)
    phases, low = [], 0
    for number, loop in enumerate(loops):
        high = int(loops[number + 1].rows[0]) if number + 1 < len(loops) else len(stream)
        followed = number + 1 < len(loops)
        phase = steps_of_loop(
            stream.part(low, high), replace(loop, rows=loop.rows - low), process, recurring, followed=followed
        )
        phases.append(phase)
        end_ns = phase.start_ns[-1] + phase.duration_ns[-1]
        low = min(high, int(np.searchsorted(stream.start_ns, end_ns)))  # a span that goes on may reach further
    return _joined(phases)


def steps_of_loop(
    stream: Stream,
    loop: MainLoop,
    process: int,
    recurring: Collection[str] = (),
    *,
    followed: bool = False,
    folded: FoldedTime | None = None,
) -> ProcessSteps:
    """Cut a thread into the iterations of one loop. `followed`: another loop begins where its last step ends."""
    acts = activities(stream)
    cuts = cut(stream, loop, acts)
    if followed and len(cuts) > 1 and not cuts.complete[-1]:
        cuts = cuts.without_last()  # it is the first one of the loop that follows
    if folded is not None and folded.is_inside(cuts.start_ns):
        ends = folded.until_folded(cuts.start_ns, cuts.end_ns)
        cuts = replace(cuts, end_ns=ends, fed_ns=np.minimum(cuts.fed_ns, ends))
    duration = cuts.end_ns - cuts.start_ns
    parts = split(acts, cuts)
    reason, recorded = _reason(loop, len(cuts)), None
    if folded is not None:
        parts = folded.with_parts(parts, cuts.start_ns, cuts.end_ns)
        reason = f"{reason}; {folded.said(cuts.start_ns)}"
        some = folded.touched(cuts.start_ns, cuts.end_ns)
        recorded = replace(Recorded.of_none(len(cuts)), detail=np.where(some, PART, ALL))
    classes = classify(stream, cuts, acts, recurring)
    unusual = find_outliers(duration, parts, classes)
    return ProcessSteps(
        process=process,
        start_ns=cuts.start_ns,
        duration_ns=duration,
        classes=tuple(classes),
        parts_ns=parts,
        complete=cuts.complete,
        warm_up=unusual.warm_up,
        outlier=unusual.outlier,
        cause=unusual.cause,
        anchored=loop.anchored,
        confidence=loop.confidence,
        reason=reason,
        loops=(Loop(loop.kind, loop.name, loop.confidence, reason, len(cuts)),),
        recorded=recorded,
        drifts=unusual.drifts,
    )


def _joined(phases: Sequence[ProcessSteps]) -> ProcessSteps:
    """The steps of a process that runs several loops one after the other; the longest loop speaks for all."""
    main = max(phases, key=lambda each: int(each.duration_ns.sum()))

    def joined(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(each, name) for each in phases])

    classes = tuple(name for each in phases for name in each.classes)
    duration, parts = joined("duration_ns"), joined("parts_ns")
    unusual = find_outliers(duration, parts, classes, [len(each) for each in phases])
    return replace(
        main,
        start_ns=joined("start_ns"),
        duration_ns=duration,
        classes=classes,
        parts_ns=parts,
        complete=joined("complete"),
        warm_up=unusual.warm_up,
        outlier=unusual.outlier,
        cause=unusual.cause,
        reason=f"{main.reason}; {len(phases)} loops one after the other",
        loops=tuple(loop for each in phases for loop in each.loops),
        drifts=unusual.drifts,
    )


def _reason(loop: MainLoop, steps: int) -> str:
    updates = round(len(loop.rows) / max(1, steps))
    return f"{loop.reason}; {updates} updates per batch" if loop.kind == "optimizer" and updates > 1 else loop.reason


def _none(process: int, reason: str) -> ProcessSteps:
    nothing, no = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    parts = np.empty((0, len(PARTS)), dtype=np.int64)
    return ProcessSteps(process, nothing, nothing, (), parts, no, no, no, (), False, "none", reason)
