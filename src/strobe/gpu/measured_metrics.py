"""Hardware metrics of kernels: as tables by launch or kernel, and in a file beside a trace."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strobe.errors import TraceError, UsageError
from strobe.gpu.capabilities import model_of_capability
from strobe.gpu.kernel_names import short_name
from strobe.gpu.nvidia.ncu import KernelMetric, Launch
from strobe.model.gpu_metrics import CHIPS, METRICS, counters, formula, unit, value
from strobe.model.schema import Column
from strobe.tables.table import Table, make_table

FILE = "gpu_metrics.json"
# What the launch itself allows, which ncu knows without measuring: https://docs.nvidia.com/nsight-compute, Occupancy.
THEORETICAL = "theoretical_occupancy"
_MOST_WARPS = "sm__maximum_warps_per_active_cycle_pct"
_USED = (
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
)
_LIMITS = {
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "warps of a block",
    "launch__occupancy_limit_blocks": "blocks of a multiprocessor",
}


@dataclass(frozen=True)
class Reading:
    """The value of one metric for one launch. `limit`: the resource that limits a theoretical occupancy."""

    metric: str
    value: float | None
    unit: str
    limit: str = ""


def needed(names: Sequence[str], chip: str) -> list[str]:
    """Return the counters to measure; with achieved occupancy, also those of the theoretical one."""
    more = [_MOST_WARPS, *_LIMITS, *_USED] if "achieved_occupancy" in names else []
    return list(dict.fromkeys([*counters(names, chip), *more]))


def present(launches: Sequence[Launch]) -> list[str]:
    """Return the metrics of launches, under our names if they have one; of several names for one metric, the first."""
    measured = _there(launches)
    found: dict[str, str] = {}
    used = {_MOST_WARPS, *_LIMITS, *_USED}
    for chip in _chips(launches):
        for name in METRICS:
            if measured.issuperset(counters([name], chip)):
                found.setdefault(formula(name), name)
                used.update(counters([name], chip))
    return [*found.values(), *sorted(measured - used)]


def check_present(names: Iterable[str], launches: Sequence[Launch]) -> None:
    """Raise UsageError for the first name without a value in any launch."""
    measured, chips = _there(launches), _chips(launches)
    for name in names:
        if not any(measured.issuperset(counters([name], chip)) for chip in chips):
            has = ", ".join(sorted(measured)) or "nothing"
            raise UsageError(f"nothing was measured for '{name}'", do=f"Measured: {has}")


def _there(launches: Iterable[Launch]) -> set[str]:
    return {counter for launch in launches for counter in launch.values}


def _chips(launches: Iterable[Launch]) -> list[str]:
    """Return the chips of launches, and "": versions of ncu differ in their names for counters of new chips."""
    return list(dict.fromkeys(["", *(CHIPS.get(launch.capability, "") for launch in launches)]))


def readings(launch: Launch, names: Iterable[str], chip: str = "") -> list[Reading]:
    """Return the values of metrics for a launch; `chip` names their counters, by default its own."""
    chip = chip or CHIPS.get(launch.capability, "")
    found = []
    for name in names:
        own = unit(name)
        known = value(name, launch.values, chip)
        known = value(name, launch.values) if known is None else known  # an older ncu, with the older names
        found.append(Reading(name, known, launch.units.get(name, "") if own is None else own))
        if name == "achieved_occupancy" and (most := _theoretical(launch)):
            found.append(most)
    return found


def _theoretical(launch: Launch) -> Reading | None:
    """Return the occupancy that a launch allows: ncu's own value, else computed from its shape and resources."""
    percent = launch.values.get(_MOST_WARPS)
    if percent is None:
        return _computed(launch)
    limits = {words: launch.values.get(counter) for counter, words in _LIMITS.items()}
    blocks = {words: count for words, count in limits.items() if count is not None}
    return Reading(THEORETICAL, percent / 100, "", _lowest(blocks) if percent < 100 else "")


def _computed(launch: Launch) -> Reading | None:
    major, _, minor = launch.capability.partition(".")
    model = model_of_capability((int(major), int(minor))) if major.isdecimal() and minor.isdecimal() else None
    used = [launch.values.get(counter) for counter in _USED]
    if model is None or None in used or not launch.block:
        return None
    registers, *shared = (int(each or 0) for each in used)
    needs = math.prod(launch.block), registers, sum(shared)
    if not all(0 <= each < 1 << 31 for each in needs):
        return None
    resources = [np.array([each], dtype=np.int64) for each in needs]
    share = float(model.occupancy(resources[0], resources[1], resources[2])[0])
    limits = {words: int(blocks[0]) for words, blocks in model.limits(resources[0], resources[1], resources[2]).items()}
    return None if math.isnan(share) else Reading(THEORETICAL, share, "", _lowest(limits) if share < 1 else "")


def _lowest(blocks: Mapping[str, float]) -> str:
    least = min(blocks.values(), default=None)
    return ", ".join(words for words, count in blocks.items() if count == least)


_VALUE = "value of the metric, null where ncu has none"
_ABOUT = {
    "kernel": "name without result, name spaces, templates and arguments",
    "metric": "what was measured",
    "unit": "of the values; empty for counts and ratios",
    "limit": "what keeps a theoretical occupancy from being higher",
    "name": "full name",
}


def _text(name: str, *, extra: bool = False) -> Column:
    return Column(name, "string", "", _ABOUT[name], extra=extra)


def by_launch(launches: Iterable[Launch], names: Sequence[str], chip: str = "") -> Table:
    """Return one row for each launch and metric, in the order in which they were measured."""
    columns = (
        _text("kernel"),
        Column("invocation", "int64", "", "which of this name on this stream, as they were measured, from 1"),
        Column("grid", "string", "", "blocks of the launch"),
        Column("block", "string", "", "threads of a block"),
        Column("stream", "int64", "", "number of the stream"),
        Column("device", "int64", "", "number of the GPU"),
        _text("metric"),
        Column("value", "float64", "", _VALUE),
        _text("unit"),
        _text("limit"),
        Column("process", "int64", "", "number of the process", extra=True),
        _text("name", extra=True),
    )
    rows = []
    for launch in launches:
        shapes = ("x".join(map(str, shape)) or None for shape in (launch.grid, launch.block))
        where = short_name(launch.kernel), launch.invocation, *shapes, launch.stream, launch.device
        for each in readings(launch, names, chip):
            what = each.metric, each.value, each.unit, each.limit or None
            rows.append((*where, *what, launch.process, launch.kernel))
    return make_table(columns, rows, name="launch_metrics", about="hardware metrics of each launch")


def by_kernel(launches: Iterable[Launch], names: Sequence[str], chip: str = "") -> Table:
    """Return one row for each kernel and metric: how many launches have a value, mean, lowest and highest value."""
    return kernel_table(over_launches(launches, names, chip))


def kernel_table(metrics: Iterable[KernelMetric]) -> Table:
    """Return metrics of kernels as a table."""
    columns = (
        _text("kernel"),
        _text("metric"),
        Column("launches", "int64", "", "launches that have a value"),
        Column("avg", "float64", "", "mean value"),
        Column("min", "float64", "", "lowest value"),
        Column("max", "float64", "", "highest value"),
        _text("unit"),
        _text("limit"),
        _text("name", extra=True),
    )
    rows = []
    for each in metrics:
        values = each.launches, each.mean, each.low, each.high
        rows.append((short_name(each.kernel), each.metric, *values, each.unit, each.limit or None, each.kernel))
    return make_table(columns, rows, name="kernel_metrics", about="hardware metrics by kernel")


def over_launches(launches: Iterable[Launch], names: Sequence[str], chip: str = "") -> list[KernelMetric]:
    """Return the metrics of launches by kernel."""
    found: dict[tuple[str, str], list[Reading]] = {}
    for launch in launches:
        for each in readings(launch, names, chip):
            found.setdefault((launch.kernel, each.metric), []).append(each)
    metrics = []
    for (kernel, metric), group in found.items():
        known = [reading.value for reading in group if reading.value is not None]
        low, high = (min(known), max(known)) if known else (None, None)
        mean = math.fsum(known) / len(known) if known else None
        limit = ", ".join(dict.fromkeys(reading.limit for reading in group if reading.limit))
        metrics.append(KernelMetric(kernel, metric, len(known), mean, low, high, group[0].unit, limit))
    return metrics


def keep(folder: Path, launches: Iterable[Launch], names: Sequence[str], chip: str = "") -> None:
    """Write the values beside a trace, in place of earlier ones, for `measured_means`."""
    body = {
        "format": 1,
        "launches": [
            {
                **{name: getattr(launch, name) for name in ("kernel", "stream", "device", "invocation")},
                "values": {
                    each.metric: each.value for each in readings(launch, names, chip) if each.metric != THEORETICAL
                },
            }
            for launch in launches
        ],
    }
    _write(folder, body)


def keep_by_kernel(folder: Path, metrics: Iterable[KernelMetric], *, add: bool = False) -> None:
    """Write the means of kernels beside a trace, as `keep` writes the values of launches.

    `add`: to what this import has written for other files, which count other metrics of the same program.
    """
    kept = [
        {"kernel": each.kernel, "count": each.launches, "values": {each.metric: each.mean}}
        for each in metrics
        if each.metric != THEORETICAL
    ]
    path = folder / FILE
    before = json.loads(path.read_text(encoding="utf-8"))["launches"] if add and path.exists() else []
    _write(folder, {"format": 1, "launches": [*before, *kept]})


def _write(folder: Path, body: object) -> None:
    path = folder / FILE
    try:
        unfinished = path.with_name(f".{FILE}.{os.getpid()}")
        unfinished.write_text(json.dumps(body), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise TraceError(f"cannot write '{path}': {error.strerror}") from error


def measured_means(folder: Path) -> dict[str, dict[str, float]]:
    """Return mean values by `same_name` of a kernel and by metric, from the file that `keep` wrote."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        values: dict[str, dict[str, list[tuple[int, float]]]] = {}  # how many launches, their mean
        for launch in body["launches"]:
            by_metric = values.setdefault(same_name(launch["kernel"]), {})
            for metric, number in launch["values"].items():
                known = [] if number is None else [(int(launch.get("count", 1)), float(number))]
                by_metric.setdefault(metric, []).extend(known)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"cannot be read: {error}", where=str(path), do="Remove the file.") from error
    return {
        kernel: {metric: _mean(each) for metric, each in by_metric.items() if each}
        for kernel, by_metric in values.items()
    }


def _mean(values: Sequence[tuple[int, float]]) -> float:
    return math.fsum(count * value for count, value in values) / max(1, sum(count for count, _ in values))


def same_name(kernel: str) -> str:
    """Return a kernel's full name in a form that all tools agree on.

    ncu writes `f<(int)4, (bool)1>(int)`, Kineto `f<4, true>(int)`, and spaces differ.
    """
    name = re.sub(r"\((?:unsigned |signed )?(?:bool|char|short|int|long|long long|size_t)\)(?=-?\d)", "", kernel)
    name = re.sub(r"(?<=[<, (])(true|false)(?=[>, )])", lambda m: "1" if m[1] == "true" else "0", name)
    return re.sub(r"(?<=\d)(?:ull|ul|u|ll|l)\b", "", re.sub(r"\s+", "", name))
