"""Which kernels operators run again and again, as sequences: what could be fused, or replaced by one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device

# What PyTorch reports itself; ranges of the program hold whole steps.
_OF_TORCH = ("operator", "range", "collective")
# Kernels of a sequence whose names are written out.
_SHOWN = 200


def run(trace: Trace, *, operator: str = "", least: int = 3) -> Table:
    """Count which sequences of kernels, copies and memory sets operators run on each GPU; the most frequent come first.

    A sequence is what one execution of an operator launches, and operators inside of it, on one GPU, in order of the
    starts there; equal ones have the same operator and the same full names (HTA: frequent CUDA kernel sequences). What
    it captured into a CUDA graph is a sequence each time that the graph is launched. With
    `operator`, all ranges and operators whose names contain that text are looked at, else operators of PyTorch, nodes
    of its backward graph and steps of its optimizers; of those inside each other only the outermost (HTA: only
    those as deep as the one that is the least deep in the whole file). `least`: activities of a sequence at least.
    share = part of the time of all activities of the GPU, summed.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device

    there = devices(trace)
    rows = [row for device in there for row in _of_device(trace, device, operator, least)]
    columns = (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        Column("operator", "string", "", "operator or range that launched it"),
        Column("count", "int64", "", "how often executions of the operator ran this sequence"),
        Column("length", "int64", "", "kernels, copies and memory sets of the sequence"),
        Column("device_ns", "int64", "ns", "their durations, summed over all executions"),
        Column("share", "float64", "", "part of the time of everything that the GPU ran, 0 to 1"),
        Column("host_ns", "int64", "ns", "durations of the operators, of each execution once"),
        Column("sequence", "string", "", "short names in order of start; 3x name: three after each other"),
        Column("names", "string", "", f"full names, | between them; of the first {_SHOWN}", extra=True),
        Column("location", "uint32", "", "thread of the first execution of the operator", extra=True),
        Column("row", "int64", "", "its span there", extra=True),
    )
    named = f" with '{operator}' in its name" if operator else ""
    nothing = (
        f"no operator{named} launched {least} kernels, copies or memory sets, as far as launching calls are recorded;"
        " --operator and --least say what is looked for"
    )
    note = folded_note(trace, there) if rows else nothing if there else no_device(trace)
    rows.sort(key=lambda row: (-int(str(row[4])), -int(str(row[6]))))
    return make_table(columns, rows, name="sequences", about="what operators launch on all GPUs", note=note)


def _of_device(trace: Trace, device: Device, operator: str, least: int) -> Iterator[tuple[object, ...]]:
    import numpy as np

    from strobe.structure.kernel_names import short_name
    from strobe.structure.sequences import sequences

    regions = trace.regions.to_pylist()

    def chosen(region: dict[str, object]) -> bool:
        if operator:
            return operator in str(region["name"]) and region["role"] not in ("kernel", "copy")
        return region["paradigm"] == "torch" and region["role"] in _OF_TORCH

    wanted = np.array([chosen(region) for region in regions], dtype=bool)
    names = [str(region["name"]) for region in regions]
    shown = [
        name if region["role"] == "copy" else short_name(name) for name, region in zip(names, regions, strict=True)
    ]
    everything, found = sequences(trace, device, wanted, least)
    for each in found:
        first = each.work[:_SHOWN]
        more = f" | {len(each.work) - _SHOWN} more" if each.work[_SHOWN:] else ""
        yield (
            *(device.rank, device.process, device.number),
            names[each.region],
            *(each.count, len(each.work), each.device_ns, each.device_ns / max(1, everything), each.host_ns),
            _in_runs([shown[region] for region in first]) + more,
            "|".join(names[region] for region in first),
            *(each.location, each.row),
        )


def _in_runs(names: list[str]) -> str:
    """Write names one after the other, equal ones once."""
    from itertools import groupby

    runs = [(name, len(list(same))) for name, same in groupby(names)]
    return " | ".join(name if times == 1 else f"{times}x {name}" for name, times in runs)


ANALYSIS = Analysis(
    "sequences",
    "Which sequences of kernels do operators run again and again?",
    run,
    options=(
        Option("operator", "only operators and ranges whose names contain this", default=""),
        Option("least", "kernels, copies and memory sets of a sequence at least", type=int, default=3),
    ),
)
