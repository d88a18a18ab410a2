"""Which kernels operators run again and again, as sequences: what could be fused, or replaced by one call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from strobe.analyses.gpu.sequences import ANALYSIS
from strobe.gpu.answers import gpu_note
from strobe.gpu.devices import Device, devices
from strobe.gpu.kernel_names import short_names
from strobe.gpu.sequences import sequences
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

# What PyTorch reports itself; ranges of the program hold whole steps.
_OF_TORCH = ("operator", "range", "collective")
# Kernels of a sequence whose names are written out.
_SHOWN = 200


def run(trace: Trace, *, operator: str, least: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.sequences`."""
    rows = [row for device in devices(trace) for row in _of_device(trace, device, operator, least)]
    named = f" with '{operator}' in its name" if operator else ""
    nothing = (
        f"no operator{named} launched {least} kernels, copies or memory sets, as far as launching calls are recorded;"
        " change --operator or --least to look for others"
    )
    note = gpu_note(trace, rows, nothing)
    rows.sort(key=lambda row: (-row["count"], -row["device_ns"]))
    return make_table(ANALYSIS.columns, rows, about="what operators launch on all GPUs", note=note)


def _of_device(trace: Trace, device: Device, operator: str, least: int) -> Iterator[dict[str, Any]]:
    regions = trace.regions.to_pylist()

    def chosen(region: dict[str, object]) -> bool:
        if operator:
            return operator in str(region["name"]) and region["role"] not in ("kernel", "copy")
        return region["paradigm"] == "torch" and region["role"] in _OF_TORCH

    wanted = np.array([chosen(region) for region in regions], dtype=bool)
    names = [str(region["name"]) for region in regions]
    short = short_names(name for name, region in zip(names, regions, strict=True) if region["role"] == "kernel")
    shown = [short.get(name, name) for name in names]
    everything, found = sequences(trace, device, wanted, least)
    for each in found:
        first = each.work[:_SHOWN]
        more = f" | {len(each.work) - _SHOWN} more" if each.work[_SHOWN:] else ""
        yield {
            **device.cells,
            **vars(each),
            "operator": names[each.region],
            "length": len(each.work),
            "share": each.device_ns / max(1, everything),
            "sequence": _in_runs([shown[region] for region in first]) + more,
            "names": "|".join(names[region] for region in first),
        }


def _in_runs(names: list[str]) -> str:
    """Write names one after the other, equal ones once."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    return " | ".join(name if times == 1 else f"{times}x {name}" for name, times in runs)
