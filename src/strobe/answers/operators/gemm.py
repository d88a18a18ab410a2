"""Matrix products, convolutions and attention: FLOPs, bytes, speed, and how close to what the GPU can do."""

from __future__ import annotations

from typing import Any

from strobe.analyses.operators.gemm import ANALYSIS
from strobe.gpu.above_peak import reason_above_bandwidth, reason_above_compute
from strobe.gpu.nvidia.peaks import Peak
from strobe.operators.matrix_products import NO_FLOPS, NO_PEAK, NO_SHAPES, find, peak_of, stated_peak, sums
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace


def run(trace: Trace, *, peak_gflops: float | None, bandwidth_gb_s: float | None) -> Table:
    """Return the answer; see `strobe.analyses.operators.gemm`."""
    stated = stated_peak(peak_gflops, bandwidth_gb_s)
    found = find(trace)
    ranks = trace.processes.column("rank")
    with_gpu = {device.process for device in found.devices}
    kernels = {region.name for region in region_rows(trace) if region.role == "kernel"}
    rows: list[dict[str, Any]] = []
    unknown, no_peak = 0, set()
    above: dict[str, int] = {}
    for each in sums(found):
        device, flop = each.device, each.flop
        moved = each.kind.moved_bytes(each.dtype)
        time_ns = each.device_ns if device else each.host_ns if each.process not in with_gpu else 0
        rate = flop * each.calls / time_ns if flop and time_ns else None
        peak = peak_of(trace, device, each.dtype, each.tf32, stated)
        intensity = flop / moved if flop and moved else None
        reach = min(peak.gflops, intensity * peak.gb_s) if intensity and peak.gflops and peak.gb_s else None
        # Above peaks that were given there is nothing to explain.
        if rate and peak.gflops and rate > peak.gflops and not stated.gflops:
            reason = reason_above_compute(rate / peak.gflops, each.kind.shapes, kernels)
            above[reason] = above.get(reason, 0) + 1
        elif rate and reach and rate > reach and stated == Peak():
            above[reason_above_bandwidth()] = above.get(reason_above_bandwidth(), 0) + 1
        bound = None if reach is None else "compute" if reach == peak.gflops else "memory"
        unknown += 0 if flop else each.calls
        if rate and not peak.gflops:
            no_peak.add(f"{each.dtype or 'unknown types'} on {each.hardware(trace)}")
        rows.append(
            {
                **vars(each),
                "rank": ranks[each.process],
                "device": device.number if device else None,
                "operator": each.kind.name,
                "dtype": each.dtype or None,
                **{name: getattr(each.kind.product, name, None) for name in ("batch", "m", "n", "k")},
                "flop": flop,
                "moved_bytes": moved,
                "intensity": intensity,
                "device_ns": each.device_ns if device else None,
                "avg_ns": time_ns / each.calls if time_ns else None,
                "gflops": rate,
                "peak_gflops": peak.gflops,
                "efficiency": rate / peak.gflops if rate and peak.gflops else None,
                "bound": bound,
                "of_roofline": rate / reach if rate and reach else None,
                "shapes": each.kind.shapes,
            }
        )
    notes = [NO_SHAPES] if not rows else []
    if unknown:
        notes.append(NO_FLOPS.format(unknown, sum(len(gemms) for gemms in found.threads.values())))
    notes += [NO_PEAK.format(", ".join(sorted(no_peak)))] if no_peak else []
    for reason, count in above.items():
        notes.append(f"{count} {'row is' if count == 1 else 'rows are'} above the peak; likely reason: {reason}")
    rows.sort(key=lambda row: (-(row["device_ns"] or 0), -row["host_ns"]))
    return make_table(ANALYSIS.columns, rows, about="the whole run", note="; ".join(notes))
