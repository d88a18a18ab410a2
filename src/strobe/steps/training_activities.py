"""Activities: what a training thread does, one after the other: waits for data, forward, backward, optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import PARADIGMS
from strobe.model.kinds import PARTS as PARTS
from strobe.native import core
from strobe.steps.thread_spans import Ints, Stream, innermost, of_definitions, outermost
from strobe.tables.column_arrays import Bools, Columns

DATA_WAIT, FORWARD, BACKWARD, OPTIMIZER, VALIDATION, REST = range(len(PARTS))
_NOT_AN_ACTIVITY = -1

# Ranges that PyTorch itself puts into every program (2.13: torch/optim/optimizer.py:513 and 1057,
# torch/utils/data/dataloader.py:721, torch/profiler/profiler.py).
OPTIMIZER_STEP = "Optimizer.step#"
DATA_LOADER = "enumerate(DataLoader)#"
PROFILER_STEP = "ProfilerStep#"
STEP_HINT = "strobe.step"


@dataclass(frozen=True)
class Activities(Columns):
    """The outermost spans that are a part of a step, in order; they do not overlap. Nanoseconds.

    `part` is one of DATA_WAIT, FORWARD (any other operator), BACKWARD, OPTIMIZER. `change`: what an operator does to
    parameters, as `core.work_of_region` numbers it. `in_model`: it lies in the call of a module that is no loss. `row`
    is the span's row in the stream, -1 for what another thread ran.
    """

    row: Ints
    start_ns: Ints
    end_ns: Ints
    part: Ints
    change: Ints
    in_model: Bools
    region: Ints
    call_path: Ints


@dataclass(frozen=True)
class Work:
    """What a training thread does; rows (start, end) of spans are the outermost ones in order.

    `modules_ns`: calls of modules. `others_ns`: calls of functions without any activity. `closures_ns`: updates that
    run backward passes themselves (LBFGS, PyTorch Lightning).
    """

    activities: Activities
    modules_ns: Ints
    others_ns: Ints
    closures_ns: Ints


def part_of_regions(names: Sequence[str], paradigms: Sequence[str]) -> Ints:
    """Return which part of a step each region belongs to, -1 for those that belong to none."""
    return _work_of_regions(names, paradigms)[:, 0]


def module_calls(stream: Stream) -> Bools:
    """Return by region whether it is the call of a module (a layer of a model)."""
    calls: Bools = _work_of_regions(stream.names, stream.paradigms)[:, 2] > 0
    return calls


@of_definitions
def _work_by_region(stream: Stream) -> tuple[Ints, Bools]:
    """Return what each region does, and by call path whether it lies in the call of a module that is no loss."""
    of_region = _work_of_regions(stream.names, stream.paradigms)
    return of_region, innermost(stream.path_parent, of_region[stream.path_region, 3] > 0) >= 0


def _work_of_regions(names: Sequence[str], paradigms: Sequence[str]) -> Ints:
    """The columns of `core.work_of_region` for every region: the recorder goes by the same rules."""
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    rows = [core.work_of_region(name, number[paradigm]) for name, paradigm in zip(names, paradigms, strict=True)]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def activities(stream: Stream) -> Activities:
    """Reduce a stream to its activities."""
    return work_of(stream).activities


def work_of(stream: Stream) -> Work:
    """Return what the thread of a stream does."""
    of_region, in_model = _work_by_region(stream)
    part, change, module, _ = of_region[stream.region].T.copy()
    if stream.makes_batches is not None:
        part[stream.makes_batches[stream.call_path]] = DATA_WAIT
    closures = _open_containers(stream, part)
    rows = np.flatnonzero(part >= 0)
    rows = rows[outermost(stream.start_ns[rows], stream.end_ns[rows])]
    found = Activities(
        row=rows,
        start_ns=stream.start_ns[rows],
        end_ns=stream.end_ns[rows],
        part=part[rows],
        change=change[rows],
        in_model=in_model[stream.call_path[rows]],
        region=stream.region[rows],
        call_path=stream.call_path[rows],
    )
    if len(stream.backward_ns):
        found = _with_backward(found, stream.backward_ns)
    function = stream.functions[stream.region] | (module > 0)
    calls = np.flatnonzero(function & (stream.duration_ns >= core.LEAST_CALL_NS))
    modules = calls[module[calls] > 0]
    begun = [
        np.searchsorted(found.end_ns, stream.start_ns[calls], side="right"),
        np.searchsorted(found.start_ns, stream.end_ns[calls]),
    ]
    others = calls[(begun[0] >= begun[1]) & (module[calls] == 0)]
    return Work(found, *(_intervals(stream, rows) for rows in (modules, others, closures)))


def _intervals(stream: Stream, rows: Ints) -> Ints:
    """The outermost of the given rows, as (start, end)."""
    rows = rows[outermost(stream.start_ns[rows], stream.end_ns[rows])]
    return np.stack([stream.start_ns[rows], stream.end_ns[rows]], axis=1)


def _open_containers(stream: Stream, part: Ints) -> Ints:
    """Look into spans that hold another part of the step: they are not activities themselves.

    Users put ranges around a whole step. Some optimizer steps run the backward pass (closures): their rows are
    returned.
    """
    forward, optimizer = np.flatnonzero(part == FORWARD), np.flatnonzero(part == OPTIMIZER)
    backward = np.flatnonzero(part == BACKWARD)
    others = np.flatnonzero((part != FORWARD) & (part != _NOT_AN_ACTIVITY))
    part[forward[_count_inside(stream, forward, others) > 0]] = _NOT_AN_ACTIVITY
    closures = optimizer[_count_inside(stream, optimizer, backward) > 0]
    part[closures] = _NOT_AN_ACTIVITY
    return closures


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
    part, change = np.full(len(start), BACKWARD, dtype=np.int64), np.zeros(len(start), dtype=np.int64)
    passes = Activities(nowhere, start, end, part, change, np.zeros(len(start), dtype=bool), nowhere, nowhere)
    together = Activities.joined([found, passes])
    return together.chosen(np.argsort(together.start_ns, kind="stable"))
