"""Matrix products that could be one: equal ones, one after the other, and what merging them would gain."""

from __future__ import annotations

from typing import Any

from strobe.analyses.operators.gemm_merging import ANALYSIS
from strobe.operators.matrix_product_merging import NO_CANDIDATE, NO_KERNELS, candidates, predicted
from strobe.operators.matrix_products import NO_PEAK, NO_SHAPES, find, stated_peak, sums
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, peak_gflops: float | None, bandwidth_gb_s: float | None) -> Table:
    """Return the answer; see `strobe.analyses.operators.gemm_merging`."""
    stated = stated_peak(peak_gflops, bandwidth_gb_s)
    found = find(trace)
    ranks = trace.processes.column("rank")
    rows: list[dict[str, Any]] = []
    no_peak = set()
    products = sums(found)
    for each in candidates(trace, found):
        after, basis = predicted(trace, products, each, stated)
        if after is None:
            no_peak.add(f"{each.dtype or 'unknown types'} on GPU {each.device.number}")
        elif after >= each.device_ns:
            continue
        rows.append(
            {
                **vars(each),
                **vars(each.product),
                **each.device.cells,
                "rank": ranks[each.device.process],
                "operator": each.kind.name,
                "dtype": each.dtype or None,
                "predicted_ns": after,
                "gain_ns": None if after is None else each.device_ns - after,
                "speedup": None if after is None else each.device_ns / after,
                "basis": basis,
                "independent": "by size" if each.independent else "unknown",
                "shapes": each.kind.shapes,
            }
        )
    notes = [NO_PEAK.format(", ".join(sorted(no_peak)))] if no_peak else []
    if not rows:
        known = any(len(gemms) for gemms in found.threads.values())
        notes.append(NO_SHAPES if not known else NO_CANDIDATE if found.devices else NO_KERNELS)
    rows.sort(key=lambda row: -(row["gain_ns"] or 0))
    return make_table(ANALYSIS.columns, rows, about="the whole run", note="; ".join(notes))
