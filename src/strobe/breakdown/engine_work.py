"""What serving engines mark, and what their GPUs ran for each step: answers about engines share it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.kernel_types import kernel_type
from strobe.gpu.launches import launches
from strobe.gpu.work import COMMUNICATION, COPY, kind_of_region
from strobe.model.engine_steps import EngineStep, engine_step
from strobe.operators.labels import MODULE
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import innermost
from strobe.tables.column_arrays import Columns, Ints, interval_at
from strobe.trace.definition_rows import path_tree, region_rows, threads_of
from strobe.trace.trace import Trace

TYPES = ("attention", "matrix product", "communication")
NUMBERS = [each.name for each in fields(EngineStep) if each.name != "step_class"]


@dataclass(frozen=True)
class Launched(Columns):
    """What the GPUs of a process ran for its steps: the step (index), type (of TYPES, -1), and layer (path, -1).

    call_location, call_ns: where and when it was launched.
    """

    step: Ints
    start_ns: Ints
    end_ns: Ints
    type: Ints
    layer: Ints
    copies: Ints
    device: Ints
    call_location: Ints
    call_ns: Ints


def marks_of(trace: Trace, steps: ProcessSteps) -> dict[int, EngineStep]:
    """Return what is marked of each step: of several marks in it, each number from the first that has it."""
    marks = [engine_step(each.name) for each in region_rows(trace)]
    is_mark = np.array([each is not None for each in marks], dtype=bool)
    found: dict[int, EngineStep] = {}
    if not is_mark.any():
        return found
    for thread in threads_of(trace, steps.process):
        for spans in trace.span_batches(thread.location):
            at = np.flatnonzero(is_mark[spans["region"]])
            which = interval_at(steps.start_ns, steps.end_ns, spans["start_ns"][at])
            for step, region in zip(which.tolist(), spans["region"][at].tolist(), strict=True):
                mark = marks[region]
                if step >= 0 and mark is not None:
                    found[step] = _with(found[step], mark) if step in found else mark
    return found


def _with(first: EngineStep, second: EngineStep) -> EngineStep:
    numbers = {
        name: getattr(second, name) if getattr(first, name) is None else getattr(first, name) for name in NUMBERS
    }
    return EngineStep(first.step_class, **numbers)


def launched_in(trace: Trace, process: int, begins_ns: Ints, ends_ns: Ints) -> Launched:
    """Return what all GPUs of a process ran, by the step (begin and end) that launched it.

    What no step launched is left out, and what no call in the trace did: steps before the trace, mostly.
    """
    kinds, layers = kind_of_region(trace), _layer_of_path(trace)
    types = np.array(
        [
            _type(each.name, communicates=1 << max(0, int(kind)) == COMMUNICATION)
            for each, kind in zip(region_rows(trace), kinds, strict=True)
        ],
        dtype=np.int64,
    )
    parts = [Launched.joined(())]
    for number, device in enumerate(each for each in devices(trace) if each.process == process):
        for found, by_whom in launches(trace, device):
            step = interval_at(begins_ns, ends_ns, by_whom.call.start_ns)
            step[by_whom.call.row < 0] = -1
            copies = 1 << found.kind.astype(np.int64) == COPY
            every = Launched(
                step=step,
                start_ns=found.start_ns,
                end_ns=found.end_ns,
                type=np.where(copies, -1, types[found.region]),
                layer=np.append(layers, -1)[by_whom.path],
                copies=copies.astype(np.int64),
                device=np.full(len(found), number),
                call_location=by_whom.call.location,
                call_ns=by_whom.call.start_ns,
            )
            parts.append(every.chosen(step >= 0))
    return Launched.joined(parts)


def _type(name: str, *, communicates: bool) -> int:
    kind = kernel_type(name, communicates=communicates)
    return TYPES.index(kind) if kind in TYPES else -1


def _layer_of_path(trace: Trace) -> Ints:
    """Return for each call path the path of the layer that it lies in, -1 if there is none.

    A layer is the outermost module of which there are several of one class in the module around it: PyTorch numbers
    the modules of a class (`nn.Module: Block_0`, `nn.Module: Block_1`).
    """
    parent, region = path_tree(trace)
    names = [each.name for each in region_rows(trace)]
    is_module = np.array([name.startswith(MODULE) for name in names], dtype=bool)
    if not is_module.any():
        return np.full(len(parent), -1, dtype=np.int64)
    nearest = innermost(parent, is_module[region])
    around = np.append(nearest, -1)[parent]  # the module around each path
    paths = np.flatnonzero(is_module[region])
    kinds: dict[tuple[int, str], set[int]] = {}
    for path in paths.tolist():
        kinds.setdefault((int(around[path]), names[region[path]].rpartition("_")[0]), set()).add(int(region[path]))
    layer = np.full(len(parent), -1, dtype=np.int64)
    for path in range(len(parent)):  # parents come before their children
        above = int(parent[path])
        if above >= 0 and layer[above] >= 0:
            layer[path] = layer[above]
        elif is_module[region[path]]:
            own = kinds[int(around[path]), names[region[path]].rpartition("_")[0]]
            layer[path] = path if len(own) > 1 else -1
    return layer
