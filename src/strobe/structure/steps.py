"""Steps: the iterations of the main loop, cut where a person would; class, split, and what made the slow ones slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strobe.structure.activities import PARTS, activities
from strobe.structure.classes import classify
from strobe.structure.cuts import cut
from strobe.structure.main_loop import MainLoop, find_main_loop
from strobe.structure.outliers import find_outliers
from strobe.structure.split import split
from strobe.structure.stream import Bools, Ints, Stream, read_streams

if TYPE_CHECKING:
    from strobe.store.trace import Trace


@dataclass(frozen=True)
class ProcessSteps:
    """The steps of one process, one array entry per step. Nanoseconds since the trace's zero.

    classes: the path each step takes (`train`, `train+validation`, ..., `partial`). parts_ns: an array (steps, PARTS)
    whose rows sum to the durations exactly. warm_up: slow steps at the very beginning. outlier: much slower than its
    class. cause: for slow steps the part with the largest excess over the median of the class, else "". anchored:
    whether a framework or the program itself says what a step is. confidence: `high`, `medium`, `low`, or `none` where
    no loop was found; reason says how it was found.
    """

    process: int
    start_ns: Ints
    duration_ns: Ints
    classes: tuple[str, ...]
    parts_ns: Ints
    complete: Bools
    warm_up: Bools
    outlier: Bools
    cause: tuple[str, ...]
    anchored: bool
    confidence: str
    reason: str

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def steady(self) -> Bools:
        """Steps that count: complete, and not part of the warm-up."""
        return self.complete & ~self.warm_up


@dataclass(frozen=True)
class Steps:
    """The steps of a trace: one entry per process that has any."""

    processes: tuple[ProcessSteps, ...]
    reason: str  # how they were found, or why there are none

    def __len__(self) -> int:
        return sum(map(len, self.processes))


def find_steps(trace: Trace) -> Steps:
    """Find the steps of every process of a trace; computed once per open trace.

    Where some process has steps that a framework vouches for, loops found by structure alone in other processes (those
    of the loader's workers, for instance) are not steps of the program and left out.
    """
    return trace.once("steps", lambda: _find(trace))


def _find(trace: Trace) -> Steps:
    found = [steps_of(stream, process) for process, stream in read_streams(trace)]
    having = [each for each in found if len(each)]
    if any(each.anchored for each in having):
        having = [each for each in having if each.anchored]
    if having:
        return Steps(tuple(having), f"{having[0].confidence}: {having[0].reason}")
    return Steps((), f"none: {found[0].reason}" if found else "none: nothing was recorded")


def steps_of(stream: Stream, process: int = 0) -> ProcessSteps:
    """Find the steps of one thread."""
    loop = find_main_loop(stream)
    if loop is None:
        return _none(process, "no loop stands out: nothing repeats often and regularly enough")
    acts = activities(stream)
    cuts = cut(stream, loop, acts)
    duration = cuts.end_ns - cuts.start_ns
    parts = split(acts, cuts)
    classes = classify(stream, cuts, acts)
    outlier, warm_up, cause = find_outliers(duration, parts, classes)
    return ProcessSteps(
        process=process,
        start_ns=cuts.start_ns,
        duration_ns=duration,
        classes=tuple(classes),
        parts_ns=parts,
        complete=cuts.complete,
        warm_up=warm_up,
        outlier=outlier,
        cause=tuple(cause),
        anchored=loop.kind != "structure",
        confidence=loop.confidence,
        reason=_reason(loop, len(cuts)),
    )


def _reason(loop: MainLoop, steps: int) -> str:
    updates = round(len(loop.rows) / max(1, steps))
    return f"{loop.reason}; {updates} updates per batch" if loop.kind == "optimizer" and updates > 1 else loop.reason


def _none(process: int, reason: str) -> ProcessSteps:
    nothing, no = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    parts = np.empty((0, len(PARTS)), dtype=np.int64)
    return ProcessSteps(process, nothing, nothing, (), parts, no, no, no, (), False, "none", reason)
