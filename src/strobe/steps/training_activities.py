"""Activities: what a training thread does, one after the other: waits for data, forward, backward, optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import PARADIGMS
from strobe.model.kinds import PARTS as PARTS
from strobe.native import core
from strobe.steps.thread_spans import Bools, Ints, Stream, outermost
from strobe.tables.column_arrays import Columns

DATA_WAIT, FORWARD, BACKWARD, OPTIMIZER, REST = range(5)
_NOT_AN_ACTIVITY = -1

# Between two operators of a part the interpreter works for that part; longer pauses are something else.
MAX_PAUSE_NS = 1_000_000

# Ranges that PyTorch itself puts into every program (2.13: torch/optim/optimizer.py:513 and 1057,
# torch/utils/data/dataloader.py:721, torch/profiler/profiler.py).
OPTIMIZER_STEP = "Optimizer.step#"
DATA_LOADER = "enumerate(DataLoader)#"
PROFILER_STEP = "ProfilerStep#"
STEP_HINT = "strobe.step"


@dataclass(frozen=True)
class Activities(Columns):
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


def part_of_regions(names: Sequence[str], paradigms: Sequence[str]) -> Ints:
    """Return which part of a step each region belongs to, -1 for those that belong to none.

    The rules are those that the recorder goes by while the program runs: native/structure/region_names.cpp.
    """
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    parts = [core.part_of_region(name, number[paradigm]) for name, paradigm in zip(names, paradigms, strict=True)]
    return np.array(parts, dtype=np.int64)


def activities(stream: Stream) -> Activities:
    """Reduce a stream to its activities."""
    part = part_of_regions(stream.names, stream.paradigms)[stream.region]
    _open_containers(stream, part)
    rows = np.flatnonzero(part >= 0)
    rows = rows[outermost(stream.start_ns[rows], stream.end_ns[rows])]
    found = Activities(
        rows, stream.start_ns[rows], stream.end_ns[rows], part[rows], stream.region[rows], stream.call_path[rows]
    )
    return _with_backward(found, stream.backward_ns) if len(stream.backward_ns) else found


def _open_containers(stream: Stream, part: Ints) -> None:
    """Look into spans that hold another part of the step: they are not activities themselves.

    Users put ranges around a whole step. Some optimizer steps run the backward pass (closures: LBFGS, PyTorch
    Lightning): what comes after a backward pass, until gradients are zeroed for the next one, is the optimizer's work.
    """
    forward, optimizer = np.flatnonzero(part == FORWARD), np.flatnonzero(part == OPTIMIZER)
    backward = np.flatnonzero(part == BACKWARD)
    others = np.flatnonzero((part != FORWARD) & (part != _NOT_AN_ACTIVITY))
    part[forward[_count_inside(stream, forward, others) > 0]] = _NOT_AN_ACTIVITY
    end = stream.end_ns
    for row in optimizer[_count_inside(stream, optimizer, backward) > 0].tolist():
        part[row] = _NOT_AN_ACTIVITY
        inside = np.arange(row + 1, np.searchsorted(stream.start_ns, end[row]))
        part[inside[_own_work(part[inside], stream.start_ns[inside], end[inside])]] = OPTIMIZER


def _own_work(part: Ints, start_ns: Ints, end_ns: Ints) -> Bools:
    """Which spans inside of an optimizer step that runs backward passes are its own work."""
    passes, zeroings = np.flatnonzero(part == BACKWARD), np.flatnonzero(part == OPTIMIZER)
    begun = np.searchsorted(passes, np.arange(len(part)))  # nodes of backward passes that began before each span
    zeroed = np.searchsorted(zeroings, np.arange(len(part)))
    before = passes[np.maximum(begun, 1) - 1]
    after = np.append(passes, len(part) - 1)[begun]
    last = begun == len(passes)
    later: Bools = (part == FORWARD) & (begun > 0) & (start_ns >= end_ns[before])
    own: Bools = later & (zeroed == zeroed[before]) & (last | (zeroed[after] > zeroed))
    return own


def _count_inside(stream: Stream, outer: Ints, rows: Ints) -> Ints:
    """How many of the given rows start inside of each outer span."""
    after = np.searchsorted(stream.start_ns, stream.start_ns[outer] + stream.duration_ns[outer])
    inside: Ints = np.searchsorted(rows, after) - np.searchsorted(rows, outer, side="right")
    return np.maximum(inside, 0)


def _with_backward(found: Activities, elsewhere_ns: Ints) -> Activities:
    """Put the backward pass of other threads into the pauses of this one."""
    place = np.searchsorted(found.start_ns, elsewhere_ns[:, 0], side="right")
    before = np.concatenate([[np.iinfo(np.int64).min], found.end_ns])[place]
    after = np.concatenate([found.start_ns, [np.iinfo(np.int64).max]])[place]
    start, end = np.maximum(elsewhere_ns[:, 0], before), np.minimum(elsewhere_ns[:, 1], after)
    keep = end > start
    start, end = start[keep], end[keep]
    alone = outermost(start, end)  # several threads at once count once
    start, end = start[alone], end[alone]
    nowhere = np.full(len(start), -1, dtype=np.int64)
    passes = Activities(nowhere, start, end, np.full(len(start), BACKWARD, dtype=np.int64), nowhere, nowhere)
    together = Activities.joined([found, passes])
    return together.chosen(np.argsort(together.start_ns, kind="stable"))
