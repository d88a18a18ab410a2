"""The least time that the work of kernels would take on their GPU: the longer of computing and moving, at its peak.

The operations and bytes of a kernel come from hardware counters (`strobe metrics --metrics roofline --trace TRACE`),
else from the shapes of the matrix product, convolution or attention that launched it. Those of others are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import Device
from strobe.gpu.kernel_names import uses_tensor_cores
from strobe.gpu.measured_metrics import same_name
from strobe.gpu.nvidia.peaks import Peak
from strobe.operators.matrix_products import Found, find, peak_of, sums
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

Metrics = Mapping[str, float]

# Counts by precision, and the type whose peak they are held against: outside of the tensor cores halves are slower than
# that, and doubles where tensor cores have them, so that the time is one that is needed in any case.
_COUNTS = {"sp": "float32", "dp": "float64", "hp": "float16"}


@dataclass(frozen=True)
class Roofline:
    """Sums over the kernels of a GPU whose work is known, ns: their time, and the least that it could be."""

    took_ns: int
    least_ns: float


class Work:
    """The known work of kernels in one process. `means`: of counters, by kernel (`measured_means`)."""

    def __init__(self, trace: Trace, means: Mapping[str, Metrics]) -> None:
        """Find the products whose kernels were not measured."""
        self._trace = trace
        self._names = [region.name for region in region_rows(trace)]
        self._measured = [_whole(name, means.get(same_name(name), {})) for name in self._names] if means else []
        measured = np.array([each is not None for each in self._measured], dtype=bool) if self._measured else None
        self._products: Found = find(trace, measured)

    def of(self, device: Device, calls: Ints, took_ns: Ints) -> Roofline:
        """Return the roofline of a GPU. `calls`, `took_ns`: number and time of its kernels, by region."""
        least, took = 0.0, 0
        peaks = {dtype: self._peak(device, dtype) for dtype in _COUNTS.values()}
        for region in np.flatnonzero(calls).tolist() if self._measured else ():
            metrics = self._measured[region]
            needs = None if metrics is None else _least(metrics, peaks, int(calls[region]), int(took_ns[region]))
            if needs is not None:
                least, took = least + needs, took + int(took_ns[region])
        for each in sums(self._products):
            moved = each.kind.moved_bytes(each.dtype)
            peak = self._peak(device, each.dtype, tf32=each.tf32)
            if each.device == device and each.flop and moved and peak.gflops and peak.gb_s:
                # FLOP / (GFLOP/s) and bytes / (GB/s) are nanoseconds.
                needs = each.calls * max(each.flop / peak.gflops, moved / peak.gb_s)
                least, took = least + min(needs, each.device_ns), took + each.device_ns
        return Roofline(took, least)

    def _peak(self, device: Device, dtype: str, *, tf32: bool = False) -> Peak:
        return peak_of(self._trace, device, dtype, tf32, Peak())


def _whole(name: str, metrics: Metrics) -> Metrics | None:
    """Return the metrics of a kernel if they contain both its operations and its bytes, else None."""
    computes = any(each in metrics for each in ("flop_count_sp", "flop_sp_efficiency"))
    computes &= "tensor_throughput" in metrics or not uses_tensor_cores(name)
    rates = all(f"dram_{each}_bytes" in metrics for each in ("read", "write"))
    return metrics if computes and (rates or "dram_utilization" in metrics) else None


def _least(metrics: Metrics, peaks: Mapping[str, Peak], calls: int, took_ns: int) -> float | None:
    """Return the least time of launches like the measured ones, at most their own; None if the peak is unknown."""
    needs = [0.01 * metrics.get("tensor_throughput", 0.0) * took_ns]
    for precision, dtype in _COUNTS.items():
        count, gflops = metrics.get(f"flop_count_{precision}", 0.0), peaks[dtype].gflops
        if (percent := metrics.get(f"flop_{precision}_efficiency")) is not None:
            needs.append(0.01 * percent * took_ns)
        elif count:
            if gflops is None:
                return None
            needs.append(calls * count / gflops)
    gb_s = peaks["float32"].gb_s
    if (tenths := metrics.get("dram_utilization")) is not None:
        needs.append(0.1 * tenths * took_ns)
    elif gb_s is None:
        return None
    else:
        needs.append(calls * sum(metrics[f"dram_{each}_bytes"] for each in ("read", "write")) / gb_s)
    return min(max(needs), took_ns)
