"""Activities: what a training thread does, one after the other: waits for data, forward, backward, optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.structure.stream import BACKWARD_PREFIX, Bools, Ints, Stream

# Parts of a step, in the order in which they are shown. REST is what no operator accounts for.
PARTS = ("data_wait", "forward", "backward", "optimizer", "rest")
DATA_WAIT, FORWARD, BACKWARD, OPTIMIZER, REST = range(5)
_NOT_AN_ACTIVITY = -1

# Ranges that PyTorch itself puts into every program (2.13: torch/optim/optimizer.py:513 and 1057,
# torch/utils/data/dataloader.py:721, torch/profiler/profiler.py).
OPTIMIZER_STEP = "Optimizer.step#"
ZERO_GRAD = "Optimizer.zero_grad#"
DATA_LOADER = "enumerate(DataLoader)#"
PROFILER_STEP = "ProfilerStep#"
STEP_HINT = "strobe.step"


@dataclass(frozen=True)
class Activities:
    """The outermost spans that are a part of a step, in order; they do not overlap. Nanoseconds.

    `part` is one of DATA_WAIT, FORWARD (any other operator), BACKWARD, OPTIMIZER. `row` is the span's row in the
    stream, -1 for what another thread ran.
    """

    row: Ints
    start_ns: Ints
    end_ns: Ints
    part: Ints
    region: Ints
    call_path: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


def part_of_regions(names: Sequence[str], paradigms: Sequence[str]) -> Ints:
    """Return which part of a step each region belongs to, -1 for those that say nothing about it."""
    return np.array([_part(name, paradigm) for name, paradigm in zip(names, paradigms, strict=True)], dtype=np.int64)


def _part(name: str, paradigm: str) -> int:
    if paradigm != "torch" or name.startswith(PROFILER_STEP):
        return _NOT_AN_ACTIVITY
    if name.startswith(DATA_LOADER):
        return DATA_WAIT
    if name.startswith(BACKWARD_PREFIX):
        return BACKWARD
    if name.startswith("Optimizer."):
        return OPTIMIZER
    return FORWARD


def activities(stream: Stream) -> Activities:
    """Reduce a stream to its activities."""
    part = part_of_regions(stream.names, stream.paradigms)[stream.region]
    _open_closures(stream, part)
    rows = np.flatnonzero(part >= 0)
    outermost = rows[_outermost(stream.start_ns[rows], stream.end_ns[rows])]
    found = Activities(
        outermost,
        stream.start_ns[outermost],
        stream.end_ns[outermost],
        part[outermost],
        stream.region[outermost],
        stream.call_path[outermost],
    )
    return _with_backward(found, stream.backward_ns) if len(stream.backward_ns) else found


def _outermost(start_ns: Ints, end_ns: Ints) -> Bools:
    """Which of the spans, given in order of start, lie in none of the others."""
    if not len(start_ns):
        return np.zeros(0, dtype=bool)
    ended_before = np.concatenate([start_ns[:1], np.maximum.accumulate(end_ns)[:-1]])
    outer: Bools = start_ns >= ended_before
    return outer


def _open_closures(stream: Stream, part: Ints) -> None:
    """Look into optimizer steps that run the backward pass themselves (closures: LBFGS, PyTorch Lightning).

    What they run up to the end of the backward pass is no work of the optimizer; what comes after it is.
    """
    backward, optimizer = np.flatnonzero(part == BACKWARD), np.flatnonzero(part == OPTIMIZER)
    after = np.searchsorted(stream.start_ns, stream.end_ns[optimizer])
    first, last = np.searchsorted(backward, optimizer), np.searchsorted(backward, after)
    for row, end, one, other in zip(optimizer, after, first, last, strict=True):
        if other > one:
            part[row] = _NOT_AN_ACTIVITY
            updates = slice(backward[other - 1] + 1, end)
            part[updates][stream.start_ns[updates] >= stream.end_ns[backward[other - 1]]] = OPTIMIZER


def _with_backward(found: Activities, elsewhere_ns: Ints) -> Activities:
    """Put the backward pass of other threads into the pauses of this one."""
    place = np.searchsorted(found.start_ns, elsewhere_ns[:, 0], side="right")
    before = np.concatenate([[np.iinfo(np.int64).min], found.end_ns])[place]
    after = np.concatenate([found.start_ns, [np.iinfo(np.int64).max]])[place]
    start, end = np.maximum(elsewhere_ns[:, 0], before), np.minimum(elsewhere_ns[:, 1], after)
    keep = end > start
    start, end = start[keep], end[keep]
    alone = _outermost(start, end)  # several threads at once count once
    start, end = start[alone], end[alone]
    nowhere = np.full(len(start), -1, dtype=np.int64)
    order = np.argsort(np.concatenate([found.start_ns, start]), kind="stable")

    def joined(main: Ints, other: Ints) -> Ints:
        together: Ints = np.concatenate([main, other])[order]
        return together

    return Activities(
        joined(found.row, nowhere),
        joined(found.start_ns, start),
        joined(found.end_ns, end),
        joined(found.part, np.full(len(start), BACKWARD, dtype=np.int64)),
        joined(found.region, nowhere),
        joined(found.call_path, nowhere),
    )
