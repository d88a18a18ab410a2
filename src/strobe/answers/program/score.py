"""Scoring of functions for a filter: how often each was called, what its spans take, and whether to leave it out."""

from __future__ import annotations

import numpy as np

from strobe.analyses.program.score import ANALYSIS
from strobe.model.units import format_number_of, format_share
from strobe.steps.selection import select
from strobe.sums.path_statistics import one_for_each_name, path_statistics
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_CAN_BE_FILTERED = ("compiler", "python")


def run(trace: Trace, *, min_share: float, max_call_ns: int) -> Table:
    """Return the answer; see `strobe.analyses.program.score`."""
    sums = path_statistics(trace, select(trace, "all", None))
    regions = trace.regions.to_arrow().to_pylist()
    row, size = one_for_each_name(trace)[sums.region], len(regions)
    calls, own_ns = (np.bincount(row, each, size).astype(np.int64) for each in (sums.calls, sums.own_ns))
    spans = np.zeros(size)
    for location in range(len(trace.definitions.locations)):
        spans += np.bincount(row, trace.path_sums(location, None)["calls"], size)
    bytes_ = trace.info.size_bytes * spans / max(1, spans.sum())
    share, per_call_ns = calls / max(1, calls.sum()), own_ns / np.maximum(1, calls)
    functions = [each["role"] == "function" and each["paradigm"] in _CAN_BE_FILTERED for each in regions]
    out = np.array(functions, dtype=bool) & (share >= min_share) & (per_call_ns <= max_call_ns)
    rows = [
        {
            "name": region["name"],
            "paradigm": region["paradigm"],
            "calls": int(calls[i]),
            "share": float(share[i]),
            "bytes": round(bytes_[i]),
            "self_ns": int(own_ns[i]),
            "per_call_ns": float(per_call_ns[i]),
            "filter": "EXCLUDE" if out[i] else "",
        }
        for i, region in enumerate(regions)
        if calls[i]
    ]
    left_out, of_spans = format_number_of(int(out.sum()), "function"), spans[out].sum() / max(1, spans.sum())
    saved = f"{format_share(share[out].sum())} of all calls and {format_share(of_spans)} of spans"
    note = f"to leave out: {left_out} with {saved}; strobe filter writes them into a file"
    table = make_table(ANALYSIS.columns, rows, note=note if out.any() else "no function is worth leaving out")
    return table.sort("share")
