"""Which kernels take the time of each GPU: sums, launch delays, and how full they make it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device, Ints
    from strobe.structure.gpu_model import GpuModel
    from strobe.structure.groups import Texts

_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_COLUMNS = (*_SHAPE, "registers_per_thread", "shared_memory_bytes", "blocks_per_sm", "occupancy_percent")
# Columns that kernels of a name are split by, and why all of them may be empty.
_SPLIT = {
    "name": (),
    "shape": (("grid", "blocks of the launch"), ("block", "threads of a block")),
    "stream": (("stream", "stream that it ran on"),),
    "operator": (("operator", "innermost operator when it was launched, or captured into a CUDA graph"),),
    "function": (("function", "innermost function when it was launched, or captured into a CUDA graph"),),
    "collective": (("collective", "which collective it is"), ("dtype", "type of its elements")),
}
# Counters that are above 0 where tensor cores are at work; the last one that was measured counts.
_TENSOR_METRICS = ("tensor_precision_fu_utilization", "tensor_active", "tensor_throughput")
# Statistics of folded steps tell kernels by name and stream.
_OF_STATISTICS = ("name", "stream")
_MISSING = {
    "shape": "no kernel says how it was launched",
    "operator": "no kernel was launched by an operator; profiles of PyTorch hold operators",
    "function": "no kernel was launched by a recorded function of the program",
    "collective": "no kernel says which collective it is; profiles of PyTorch 2 with NCCL do",
}


def run(trace: Trace, *, by: str = "name") -> Table:
    """Sum the kernels of every GPU by name; `by` splits them further.

    By launch shape, stream, operator, function of the program, or collective.

    share = total / total of all kernels of the GPU; stddev that of a sample (0 for one call). launch delay = from the
    start of the launching call to the start of the kernel; queue time = from the end of that call to the start of the
    kernel, of those that start after it (Nsight Systems, cuda_kern_exec_sum). occupancy = mean of the estimates of
    PyTorch's profiler, theoretical occupancy = what registers, shared memory and block size allow (NVIDIA's
    calculator), SM efficiency = part of the multiprocessors that have a block: min(blocks / multiprocessors, 1); all
    weighted with durations. priority = total * (1 - occupancy), the highest in the table being 100 and none below 1:
    the longest kernels that fill the GPU least come first. Where no occupancy is estimated the theoretical one counts,
    and where none is known, time alone. measured_... = means of the hardware metrics that `strobe metrics --trace` kept
    beside the trace, of the kernel with the same full name in that other run. Kernels of folded steps count by name and
    stream, where their medians are estimates and all means but that of the duration are of the others; split further
    they do not.
    """
    import numpy as np

    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import make_table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device
    from strobe.structure.gpu_model import gpu_model

    there = devices(trace)
    models = {number: gpu_model(trace, number) for number in {device.number for device in there}}
    rows = rows_of_processes(trace, _of_process, by=by, models=models)
    score = rows.column("score").to_numpy()
    highest = score.max(initial=0.0) or 1.0
    columns: dict[str, object] = {column.name: rows.column(column.name) for column in _columns(by, of_part=True)[:-1]}
    # Half of an even number is rounded as Python does.
    columns["priority"] = np.maximum(1, np.round(100 * score / highest)).astype(np.int64)
    measured, described = _measured(trace, rows.column("name").to_pylist())
    columns["tensor_cores"] = _on_tensor_cores(rows.column("tensor_cores").to_pylist(), measured)
    nothing = bool(_SPLIT[by]) and all(rows.column(name).null_count == len(rows) for name, _ in _SPLIT[by])
    note = ("no kernel ran on the GPUs of this trace" if there else no_device(trace)) if not len(rows) else ""
    note = note or (_MISSING.get(by, "") if nothing else "")
    if not note and by not in _OF_STATISTICS:
        note = folded_note(trace, there)
    columns.update(measured)
    told = _columns(by, measured=described)
    table = make_table(told, columns, name="kernels", about="kernels of all GPUs", note=note)
    return table.sort("total_ns")


def _on_tensor_cores(by_name: list[bool], measured: Mapping[str, object]) -> list[bool]:
    """Return which kernels compute on tensor cores: as counters say, of those that were measured; else their names."""
    found = by_name
    for metric in _TENSOR_METRICS:
        values = cast("list[float | None]", measured.get(f"measured_{metric}", [None] * len(found)))
        found = [name if value is None else value > 0 for name, value in zip(found, values, strict=True)]
    return found


def _measured(trace: Trace, names: list[str]) -> tuple[dict[str, object], list[Column]]:
    """Return the columns of measured hardware metrics for kernels of these names: values, and what they are."""
    from strobe.model.gpu_metrics import METRICS
    from strobe.model.schema import Column
    from strobe.structure.gpu_counters import measured_means, same_name

    means = measured_means(trace.path)
    if not means:
        return {}, []
    kernels = [means.get(same_name(name), {}) for name in names]
    values: dict[str, object] = {}
    columns = []
    for metric in dict.fromkeys(metric for of in means.values() for metric in of):
        name = f"measured_{metric.replace('.', '_')}"
        known = METRICS.get(metric)
        unit, meaning = (known.unit, known.about) if known else ("", f"mean of {metric}")
        values[name] = [of.get(metric) for of in kernels]
        columns.append(Column(name, "float64", unit, f"{meaning} (strobe metrics)", extra=True))
    return values, columns


def _of_process(part: Trace, by: str, models: Mapping[int | None, GpuModel | None]) -> pa.Table:
    """Return the rows of one process; `score` is what priorities are made of: nanoseconds times unused share."""
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices
    from strobe.structure.gpu_model import gpu_model

    # What the process itself knows of its GPU comes first: others may mean another one by the same number.
    of = {device: gpu_model(part, device.number) or models[device.number] for device in devices(part)}
    rows = [row for device, model in of.items() for row in _of_device(part, device, by, model)]
    return make_table(_columns(by, of_part=True), rows).to_arrow()


def _columns(by: str, *, of_part: bool = False, measured: Iterable[Column] = ()) -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        Column("kernel", "string", "", "name without result, name spaces, templates and arguments"),
        *(Column(name, "string", "", meaning) for name, meaning in _SPLIT[by]),
        Column("share", "float64", "", "part of the time of all kernels of the GPU, 0 to 1"),
        Column("total_ns", "int64", "ns", "sum of the durations"),
        Column("calls", "int64", "", "executions"),
        Column("avg_ns", "float64", "ns", "mean duration"),
        *measured,
        Column("median_ns", "float64", "ns", "median duration", extra=True),
        Column("min_ns", "int64", "ns", "shortest", extra=True),
        Column("max_ns", "int64", "ns", "longest", extra=True),
        Column("stddev_ns", "float64", "ns", "standard deviation of the durations", extra=True),
        Column(
            "launch_delay_avg_ns",
            "float64",
            "ns",
            "mean of call's start to kernel's start, null where unknown",
            extra=True,
        ),
        Column(
            "queue_avg_ns",
            "float64",
            "ns",
            "mean of call's end to kernel's start, of those that start later",
            extra=True,
        ),
        Column(
            "queued",
            "int64",
            "",
            "kernels that start after the end of the call that launched them, null where none is known",
            extra=True,
        ),
        Column("kind", "string", "", "computation or communication", extra=True),
        Column(
            "tensor_cores", "bool", "", "whether it computes on tensor cores: as measured, else by its name", extra=True
        ),
        Column("occupancy", "float64", "", "estimated achieved occupancy, 0 to 1, null where unknown", extra=True),
        Column("theoretical_occupancy", "float64", "", "occupancy that its launch allows at most, 0 to 1", extra=True),
        Column("sm_efficiency", "float64", "", "estimated part of the multiprocessors at work, 0 to 1", extra=True),
        Column("name", "string", "", "full name", extra=True),
        *(
            (Column("score", "float64", "", "time that is not used"),)
            if of_part
            else (Column("priority", "int64", "", "100 (improve this first) to 1"),)
        ),
    )


def _of_device(trace: Trace, device: Device, by: str, model: GpuModel | None) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a GPU."""
    import numpy as np

    from strobe.structure.attributes import Attributes, integers, reals
    from strobe.structure.device_time import folded_rows
    from strobe.structure.device_work import COMMUNICATION, COPY, kind_of_region
    from strobe.structure.folded_spread import with_folded
    from strobe.structure.groups import Groups, Spread, Texts, Weighted
    from strobe.structure.kernel_names import short_name, uses_tensor_cores
    from strobe.structure.launches import launches

    kernels = {at: Attributes(trace, "kernel_spans", at, _COLUMNS) for at in device.locations}
    collectives = {at: Attributes(trace, "collective_spans", at, ("collective", "dtype")) for at in device.locations}
    function_of = _function_of_path(trace)
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
            elif by == "shape":
                split = [integers(launch.column(name)) for name in _SHAPE]
            else:
                column = {
                    "operator": by_whom.operator_region,
                    "function": function_of[by_whom.code_path],
                    "stream": found.location.astype(np.int64),
                }.get(by)
                split = [] if column is None else [column[at]]
            group = groups.numbers([found.region[at].astype(np.int64), *split])
            start, duration = found.start_ns[at], (found.end_ns - found.start_ns)[at]
            durations.add(group, duration)
            called, returned = by_whom.call_start_ns[at], by_whom.call_end_ns[at]
            known = by_whom.call_row[at] >= 0
            delay.add(group, np.where(known, start - called, np.nan))
            queue.add(group, np.where(known & (start >= returned), start - returned, np.nan))
            occupancy.add(group, reals(launch.column("occupancy_percent")) / 100, duration)
            blocks = reals(launch.column("blocks_per_sm"))
            if model:
                grid, block = (_product(launch, names) for names in (_SHAPE[:3], _SHAPE[3:]))
                used = (integers(launch.column(name), 0) for name in ("registers_per_thread", "shared_memory_bytes"))
                theoretical.add(group, model.occupancy(block, *used), duration)
                blocks = np.where(np.isnan(blocks) & (grid > 0), grid / model.multiprocessors, blocks)
            efficiency.add(group, np.minimum(blocks, 1), duration)
    if by in _OF_STATISTICS and (folded := folded_rows(trace, device)) is not None:
        rows, regions = folded
        kind = kind_of_region(trace)[regions]
        computes = (kind >= 0) & (1 << np.maximum(0, kind) != COPY)
        rows = rows.some(computes)
        group = groups.numbers([regions[computes], *([rows.location] if by == "stream" else [])])
        sums = with_folded(durations, len(groups), group, rows)
    else:
        sums = durations.summary(len(groups))
    count = len(groups)
    names = trace.regions.to_arrow().column("name").to_pylist()
    streams = trace.locations.to_arrow().column("name").to_pylist()
    means = [each.mean(count) for each in (delay, queue, occupancy, theoretical, efficiency)]
    queued, kinds, everything = queue.count(count), kind_of_region(trace), max(1, int(sums.total.sum()))
    for k, (region, *key) in enumerate(groups.keys):
        delay_ns, queue_ns, achieved, possible, busy = (mean[k] for mean in means)
        full = achieved if achieved is not None else possible or 0.0
        yield (
            device.rank,
            device.process,
            device.number,
            short_name(names[region]),
            *_labels(by, key, names, streams, texts),
            int(sums.total[k]) / everything,
            *sums.cells(k),
            delay_ns,
            queue_ns,
            None if delay_ns is None else queued[k],
            "communication" if 1 << int(kinds[region]) == COMMUNICATION else "computation",
            uses_tensor_cores(names[region]),
            achieved,
            possible,
            busy,
            names[region],
            int(sums.total[k]) * max(0.0, 1 - full),
        )


def _function_of_path(trace: Trace) -> Ints:
    """Return the region of the innermost function of the program on every call path, -1 where there is none.

    The entry at -1, for what has no path, is the one after the last.
    """
    import numpy as np

    from strobe.structure.statistics import path_tree

    parent, region = path_tree(trace)
    regions = trace.regions.to_arrow().to_pylist()
    is_function = [each["role"] == "function" and each["paradigm"] not in ("cuda", "hip") for each in regions]
    own = np.where(np.array(is_function, dtype=bool)[region], region, -1) if len(region) else region
    found = np.append(own, -1)
    for path, above in enumerate(parent.tolist()):  # parents come first
        if found[path] < 0 <= above:
            found[path] = found[above]
    return found


def _labels(by: str, key: list[int], names: list[str], streams: list[str], texts: Texts) -> tuple[str | None, ...]:
    """Return the cells of the columns that kernels are split by."""
    if by == "collective":
        return tuple(texts.text(number) for number in key)
    if by == "shape":
        return tuple("x".join(map(str, part)) if part[0] >= 0 else None for part in (key[:3], key[3:]))
    return tuple((streams if by == "stream" else names)[number] if number >= 0 else None for number in key)


def _product(launch: pa.Table, columns: tuple[str, ...]) -> Ints:
    """Return the product of columns, 0 where one is unknown."""
    import numpy as np

    from strobe.structure.attributes import integers

    product: Ints = np.prod([integers(launch.column(name), 0) for name in columns], axis=0, dtype=np.int64)
    return product


ANALYSIS = Analysis(
    "kernels",
    "Which kernels take the time of each GPU, and which of them should be improved first?",
    run,
    options=(Option("by", "one row a kernel's name, or split further", default="name", choices=tuple(_SPLIT)),),
)
