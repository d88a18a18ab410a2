"""What the steps of a serving engine compute and how fast: prefill and decode, tokens, batch, work of attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from strobe.analyses.steps.serving import ANALYSIS
from strobe.gpu.devices import devices
from strobe.gpu.kernel_types import kernel_type
from strobe.gpu.launches import launches
from strobe.gpu.work import COMMUNICATION, COPY, kind_of_region
from strobe.model.engine_steps import EngineStep, engine_step
from strobe.operators.labels import MODULE
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import innermost
from strobe.tables.column_arrays import Columns, Ints, interval_at, rows_by
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import path_tree, ranks_of, region_rows, threads_of
from strobe.trace.trace import Trace

_NO_MARKS = (
    "no step of this trace has the mark of a serving engine; vLLM and SGLang mark theirs for PyTorch's profiler: "
    "`execute_context_...`, `step[DECODE bs=...]`"
)
_NO_LAYERS = "no module of this trace launched anything; profiles of PyTorch with stacks (with_stack) hold modules"
_TYPES = ("attention", "matrix product", "communication")
_NUMBERS = [each.name for each in fields(EngineStep) if each.name != "step_class"]


@dataclass(frozen=True)
class _Launched(Columns):
    """What the GPUs of a process ran for its steps: the step (index), type (of _TYPES, -1), and layer (path, -1)."""

    step: Ints
    start_ns: Ints
    end_ns: Ints
    type: Ints
    layer: Ints
    copies: Ints
    device: Ints


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.serving`."""
    columns, rows = ANALYSIS.columns_with(by=by), list[dict[str, object]]()
    marked = False
    for steps in find_steps(trace).processes:
        marks = _marks(trace, steps)
        if marks:
            marked = True
            none = dict.fromkeys(column.name for column in columns)
            rows += [none | dict(row) for row in _rows(trace, steps, marks, by)]
    note = "" if rows else _NO_LAYERS if marked else _NO_MARKS
    return make_table(columns, rows, about="steps that the engine marks", note=note)


def _marks(trace: Trace, steps: ProcessSteps) -> dict[int, EngineStep]:
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
        name: getattr(second, name) if getattr(first, name) is None else getattr(first, name) for name in _NUMBERS
    }
    return EngineStep(first.step_class, **numbers)


def _rows(
    trace: Trace, steps: ProcessSteps, marks: Mapping[int, EngineStep], by: str
) -> Iterator[Mapping[str, object]]:
    who = {"rank": ranks_of(trace)[steps.process], "process": steps.process}
    launched = _launched(trace, steps)
    if by == "step":
        for step in sorted(marks):
            cells = _cells(steps, marks, [step], launched)
            yield {**who, "step": step + steps.first_number, "start_ns": int(steps.start_ns[step]), **cells}
        return
    counted = [step for step in sorted(marks) if steps.steady[step]]
    for name in dict.fromkeys(marks[step].step_class for step in counted):
        own = [step for step in counted if marks[step].step_class == name]
        if by == "class":
            yield {**who, "steps": len(own), **_cells(steps, marks, own, launched)}
        else:
            yield from ({**who, "steps": len(own), **row} for row in _layers(trace, marks, own, launched))


def _cells(
    steps: ProcessSteps, marks: Mapping[int, EngineStep], own: Sequence[int], launched: _Launched
) -> dict[str, object]:
    """Return the cells of some steps of a class: means."""
    at = np.array(own)
    numbers = {name: _mean([getattr(marks[step], name) for step in own]) for name in _NUMBERS}
    followed = [
        step
        for step in own
        if step + 1 < len(steps) and steps.loop[step + 1] == steps.loop[step] and _tokens(marks, step)
    ]
    pace_ns = sum(int(steps.start_ns[step + 1] - steps.start_ns[step]) for step in followed)
    return {
        "class": marks[own[0]].step_class,
        **numbers,
        "duration_ns": round(float(steps.duration_ns[at].mean())),
        "tokens_per_second": 1e9 * sum(_tokens(marks, step) for step in followed) / pace_ns if pace_ns else None,
        **_gpu_cells(launched.chosen(np.isin(launched.step, at)), len(own), sum(_tokens(marks, step) for step in own)),
    }


def _tokens(marks: Mapping[int, EngineStep], step: int) -> int:
    return marks[step].tokens or 0


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _layers(
    trace: Trace, marks: Mapping[int, EngineStep], own: Sequence[int], launched: _Launched
) -> Iterator[Mapping[str, object]]:
    names, (_, region) = [each.name for each in region_rows(trace)], path_tree(trace)
    mine = launched.chosen(np.isin(launched.step, np.array(own)) & (launched.layer >= 0))
    tokens = sum(_tokens(marks, step) for step in own)
    of_region = region[mine.layer] if len(mine) else mine.layer
    order = np.argsort(mine.start_ns, kind="stable")
    for number in dict.fromkeys(of_region[order].tolist()):
        cells = _gpu_cells(mine.chosen(of_region == number), len(own), tokens)
        layer = names[number].removeprefix(MODULE)
        yield {"class": marks[own[0]].step_class, "layer": layer, **cells}


def _gpu_cells(mine: _Launched, steps: int, tokens: int) -> dict[str, object]:
    """Return what GPUs did in so many steps, in the mean; None where the trace has nothing of a GPU."""
    time_ns = mine.end_ns - mine.start_ns
    sums = [int(time_ns[mine.type == at].sum()) for at in range(len(_TYPES))]
    if not len(mine):
        return {}
    gpu_ns = _busy_ns(mine)
    return {
        "gpu_ns": round(gpu_ns / steps),
        "gpu_ns_per_token": gpu_ns / tokens if tokens else None,
        "kernels": int((mine.copies == 0).sum()) / steps,
        **{f"{name.replace(' ', '_')}_ns": round(of_type / steps) for name, of_type in zip(_TYPES, sums, strict=True)},
    }


def _busy_ns(mine: _Launched) -> int:
    """Return how long anything ran, by step and GPU, in sum."""
    order = np.lexsort((mine.start_ns, mine.device, mine.step))
    mine = mine.chosen(order)
    total = 0
    _, key = np.unique(np.stack((mine.step, mine.device)), axis=1, return_inverse=True)
    for _, rows in rows_by(key.ravel()):
        start, reach = mine.start_ns[rows], np.maximum.accumulate(mine.end_ns[rows])
        before = np.append(start[0], reach[:-1])
        total += int(np.maximum(0, reach - np.maximum(start, before)).sum())
    return total


def _launched(trace: Trace, steps: ProcessSteps) -> _Launched:
    """Return what all GPUs of a process ran, by the step that launched it.

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
    parts = [_Launched.joined(())]
    for number, device in enumerate(each for each in devices(trace) if each.process == steps.process):
        for found, by_whom in launches(trace, device):
            step = interval_at(steps.start_ns, steps.end_ns, by_whom.call.start_ns)
            step[by_whom.call.row < 0] = -1
            copies = 1 << found.kind.astype(np.int64) == COPY
            every = _Launched(
                step=step,
                start_ns=found.start_ns,
                end_ns=found.end_ns,
                type=np.where(copies, -1, types[found.region]),
                layer=np.append(layers, -1)[by_whom.path],
                copies=copies.astype(np.int64),
                device=np.full(len(found), number),
            )
            parts.append(every.chosen(step >= 0))
    return _Launched.joined(parts)


def _type(name: str, *, communicates: bool) -> int:
    kind = kernel_type(name, communicates=communicates)
    return _TYPES.index(kind) if kind in _TYPES else -1


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
