"""Which kernels take the time of each GPU: sums, launch delays, and how full they make it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from strobe.analyses.gpu.kernels import ANALYSIS
from strobe.gpu.answers import rows_of_gpus
from strobe.gpu.capabilities import GpuModel, gpu_model
from strobe.gpu.devices import Device, devices, devices_of_sums, no_device
from strobe.gpu.folded_work import folded_note, folded_rows
from strobe.gpu.kernel_names import short_name, uses_tensor_cores, with_short_names
from strobe.gpu.kernel_types import kernel_type
from strobe.gpu.launches import launches
from strobe.gpu.measured_metrics import measured_means, same_name
from strobe.gpu.unclassified import unclassified_note
from strobe.gpu.work import COMMUNICATION, COPY, kind_of_region
from strobe.gpu.xla_operations import XlaOperations
from strobe.model.columns import OF_GPU, Column
from strobe.model.gpu_metrics import METRICS
from strobe.model.kinds import GPU_CALL_PARADIGMS
from strobe.steps.step_times import known_steps, step_at
from strobe.steps.thread_spans import innermost
from strobe.sums.attributes import Attributes, integers, product, reals
from strobe.sums.folded_durations import with_folded
from strobe.sums.groups import Groups, Spread, Texts, Weighted
from strobe.tables.column_arrays import Ints, cumulative
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import path_tree, region_rows
from strobe.trace.trace import Trace

_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_NO_WORD = re.compile(r"\W+")
_COLUMNS = (*_SHAPE, "registers_per_thread", "shared_memory_bytes", "blocks_per_sm", "occupancy_percent")
# Columns that kernels of a name are split by.
_SPLIT = {
    "name": (),
    "shape": ("grid", "block"),
    "stream": ("stream",),
    "operator": ("operator",),
    "function": ("function",),
    "collective": ("collective", "dtype"),
    "type": (),
}
# Counters that are above 0 where tensor cores are at work; the last one that was measured counts.
_TENSOR_METRICS = ("tensor_precision_fu_utilization", "tensor_active", "tensor_throughput")
# Statistics of folded steps are by name and stream.
_OF_STATISTICS = ("name", "stream", "type")
_MISSING = {
    "shape": "the launch shapes of kernels are not in this trace",
    "operator": "no kernel was launched by an operator; profiles of PyTorch and JAX hold operators",
    "function": "no kernel was launched by a recorded function of the program",
    "collective": "no kernel is marked as a collective; profiles of PyTorch 2 with NCCL have that",
}


def run(trace: Trace, *, by: str, per: str) -> Table:
    """Return the answer; see `strobe.analyses.gpu.kernels`."""
    gpus = devices(trace) or devices_of_sums(trace)
    models = {number: gpu_model(trace, number) for number in {device.number for device in gpus}}
    declared = ANALYSIS.columns_with(by=by, per=per)
    own = [column for column in declared if column.name not in ("measured_*", "priority", "cumulative_share")]
    # What priorities are made of.
    score_column = Column("score", "float64", "ns", "time weighted with the unused share")
    known = known_steps(trace) if per == "step" else None
    asked = {"by": by, "by_step": per == "step", "models": models}
    rows = rows_of_gpus(trace, _of_device, [*own, score_column], known=known, sums=True, **asked)
    score = rows.column("score").to_numpy()
    highest = score.max(initial=0.0) or 1.0
    metrics: dict[str, list[float | None]] = {}
    if by != "type":
        rows = with_short_names(rows)
        metrics = _measured(trace, rows.column("name").to_pylist())
    columns: dict[str, object] = {name: rows.column(name) for name in rows.column_names}
    # Half of an even number is rounded as Python does.
    columns["priority"] = np.maximum(1, np.round(100 * score / highest)).astype(np.int64)
    of_gpu = list(zip(*(rows.column(column.name).to_pylist() for column in OF_GPU), strict=True))
    columns["cumulative_share"] = cumulative(rows.column("share").to_numpy(), of_gpu)
    if by != "type":
        columns["tensor_cores"] = _on_tensor_cores(rows.column("tensor_cores").to_pylist(), metrics)
    columns |= {_column_of(metric).name: values for metric, values in metrics.items()}
    nothing = bool(_SPLIT[by]) and all(rows.column(name).null_count == len(rows) for name in _SPLIT[by])
    note = "" if len(rows) else _why_none(trace, gpus, by, per)
    note = note or (_MISSING.get(by, "") if nothing else "")
    if not note and (by not in _OF_STATISTICS or per == "step"):
        note = folded_note(trace, gpus)
    note = "; ".join(filter(None, (note, unclassified_note(trace) if len(rows) else "")))
    described = [
        each for column in declared for each in (map(_column_of, metrics) if column.name == "measured_*" else (column,))
    ]
    table = make_table(described, columns, about="kernels of all GPUs", note=note)
    return table.sort("total_ns")


def _why_none(trace: Trace, gpus: Sequence[Device], by: str, per: str) -> str:
    if not gpus:
        return no_device(trace)
    if (by not in _OF_STATISTICS or per == "step") and not any(device.spans for device in gpus):
        return "this profile has sums of kernels by their names only"
    return "no kernel ran on the GPUs of this trace"


def _on_tensor_cores(by_name: list[bool], metrics: Mapping[str, list[float | None]]) -> list[bool]:
    """Return which kernels compute on tensor cores: by counters where they were measured, else by their names."""
    found = by_name
    for metric in _TENSOR_METRICS:
        values = metrics.get(metric, [None] * len(found))
        found = [name if value is None else value > 0 for name, value in zip(found, values, strict=True)]
    return found


def _measured(trace: Trace, names: list[str]) -> dict[str, list[float | None]]:
    """Return the means of the measured hardware metrics by metric, for kernels of these names."""
    means = measured_means(trace.path)
    kernels = [means.get(same_name(name), {}) for name in names]
    metrics = dict.fromkeys(metric for kernel in means.values() for metric in kernel)
    return {metric: [kernel.get(metric) for kernel in kernels] for metric in metrics}


def _column_of(metric: str) -> Column:
    """Return the column of a hardware metric: one of `measured_*`."""
    known = METRICS.get(metric)
    unit, meaning = (known.unit, known.about) if known else ("", f"mean of {metric}")
    return Column(
        f"measured_{_NO_WORD.sub('_', metric).strip('_')}", "float64", unit, f"{meaning} (strobe metrics)", extra=True
    )


def _of_device(
    trace: Trace, device: Device, by: str, by_step: bool, models: Mapping[int | None, GpuModel | None]
) -> Iterator[Mapping[str, object]]:
    # What the process itself knows of its GPU comes first: others may mean another one by the same number.
    model = gpu_model(trace, device.number) or models[device.number]
    kernels = {at: Attributes(trace, "kernel_spans", at, _COLUMNS) for at in device.locations}
    collectives = {at: Attributes(trace, "collective_spans", at, ("collective", "dtype")) for at in device.locations}
    operations = {at: XlaOperations(trace, at) for at in device.locations}
    function_of = _function_of_path(trace)
    names = trace.regions.to_arrow().column("name").to_pylist()
    types, row_of = _types(trace, names, by)
    groups, texts, durations = Groups(), Texts(), Spread()
    delay, queue, occupancy, theoretical, efficiency = (Weighted() for _ in range(5))
    for found, by_whom in launches(trace, device):
        for location in device.locations:
            (at,) = np.nonzero((found.location == location) & (1 << found.kind != COPY))
            if not len(at):
                continue
            launch = kernels[location].of(found.row[at])
            if by == "collective":
                split = [texts.numbers(column) for column in collectives[location].of(found.row[at]).columns[1:]]
            elif by == "operator":
                operator = by_whom.operator.region[at]
                operation = texts.numbers(operations[location].of(found.row[at]))
                split = [operator, np.where(operator < 0, operation, -1)]
            elif by == "shape":
                split = [integers(launch.column(name)) for name in _SHAPE]
            else:
                column = {
                    "function": function_of[by_whom.code.path],
                    "stream": found.location.astype(np.int64),
                }.get(by)
                split = [] if column is None else [column[at]]
            start, duration = found.start_ns[at], (found.end_ns - found.start_ns)[at]
            called, returned = by_whom.call.start_ns[at], by_whom.call.end_ns[at]
            known = by_whom.call.row[at] >= 0
            steps = [step_at(trace, location, np.where(known, called, start))] if by_step else []
            group = groups.numbers([row_of[found.region[at]], *split, *steps])
            durations.add(group, duration)
            delay.add(group, np.where(known, start - called, np.nan))
            queue.add(group, np.where(known & (start >= returned), start - returned, np.nan))
            occupancy.add(group, reals(launch.column("occupancy_percent")) / 100, duration)
            blocks = reals(launch.column("blocks_per_sm"))
            if model:
                grid, block = (product(launch, names) for names in (_SHAPE[:3], _SHAPE[3:]))
                used = (integers(launch.column(name), 0) for name in ("registers_per_thread", "shared_memory_bytes"))
                theoretical.add(group, model.occupancy(block, *used), duration)
                blocks = np.where(np.isnan(blocks) & (grid > 0), grid / model.multiprocessors, blocks)
            efficiency.add(group, np.minimum(blocks, 1), duration)
    if by in _OF_STATISTICS and not by_step and (folded := folded_rows(trace, device)) is not None:
        rows, regions = folded
        kind = kind_of_region(trace)[regions]
        computes = (kind >= 0) & (1 << np.maximum(0, kind) != COPY)
        rows = rows.chosen(computes)
        group = groups.numbers([row_of[regions[computes]], *([rows.location] if by == "stream" else [])])
        sums = with_folded(durations, len(groups), group, rows)
    else:
        sums = durations.summary(len(groups))
    count = len(groups)
    streams = trace.locations.to_arrow().column("name").to_pylist()
    means = [each.mean(count) for each in (delay, queue, occupancy, theoretical, efficiency)]
    queued, kinds, everything = queue.count(count), kind_of_region(trace), max(1, int(sums.total.sum()))
    for k, (region, *key) in enumerate(groups.keys):
        delay_ns, queue_ns, achieved, possible, busy = (mean[k] for mean in means)
        full = achieved if achieved is not None else possible or 0.0
        yield {
            **device.cells,
            "step": step if by_step and (step := key.pop()) >= 0 else None,
            "kernel": short_name(names[region]),
            "type": types[region],
            **dict(zip(_SPLIT[by], _labels(by, key, names, streams, texts), strict=True)),
            "share": int(sums.total[k]) / everything,
            **sums.cells(k),
            "launch_delay_avg_ns": delay_ns,
            "queue_avg_ns": queue_ns,
            "queued": None if delay_ns is None else queued[k],
            "kind": "communication" if 1 << int(kinds[region]) == COMMUNICATION else "computation",
            "tensor_cores": uses_tensor_cores(names[region]),
            "occupancy": achieved,
            "theoretical_occupancy": possible,
            "sm_efficiency": busy,
            "name": names[region],
            "score": int(sums.total[k]) * max(0.0, 1 - full),
        }


def _types(trace: Trace, names: Sequence[str], by: str) -> tuple[list[str | None], Ints]:
    """Return the type of each region as a kernel, and which region has its row: itself, or one of its type."""
    row_of, first = np.arange(len(names)), dict[str | None, int]()
    types: list[str | None] = [None] * len(names)
    kinds = kind_of_region(trace)
    for at in np.flatnonzero(kinds >= 0).tolist():
        types[at] = kernel_type(names[at], communicates=1 << int(kinds[at]) == COMMUNICATION)
        if by == "type":
            row_of[at] = first.setdefault(types[at], at)
    return types, row_of


def _function_of_path(trace: Trace) -> Ints:
    """Return the region of the innermost function of the program on every call path, -1 where there is none.

    The entry at -1, for what has no path, is the one after the last.
    """
    parent, region = path_tree(trace)
    is_function = [each.role == "function" and each.paradigm not in GPU_CALL_PARADIGMS for each in region_rows(trace)]
    path = innermost(parent, np.array(is_function, dtype=bool)[region])
    return np.append(np.append(region, -1)[path], -1)


def _labels(by: str, key: list[int], names: list[str], streams: list[str], texts: Texts) -> tuple[str | None, ...]:
    """Return the cells of the columns that kernels are split by."""
    if by == "collective":
        return tuple(texts.text(number) for number in key)
    if by == "operator":
        return (names[key[0]] if key[0] >= 0 else texts.text(key[1]),)
    if by == "shape":
        return tuple("x".join(map(str, part)) if part[0] >= 0 else None for part in (key[:3], key[3:]))
    return tuple((streams if by == "stream" else names)[number] if number >= 0 else None for number in key)
