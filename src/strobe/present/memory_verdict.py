"""The verdict about a snapshot of memory: it has no times, but what was allocated at the peak, and for what."""

from __future__ import annotations

from strobe.answers.ask import ask
from strobe.model.units import format_bytes, format_share
from strobe.present.verdict_parts import Verdict
from strobe.sums.weight_unit import weight_unit
from strobe.trace.trace import Trace

_SHOWN = 0.1  # of the peak: categories with so much are named
_UNKNOWN = "unknown"


def memory_verdict(trace: Trace) -> Verdict | None:
    """Return what the memory with the highest peak has at it; None for recordings of anything else than memory."""
    if weight_unit(trace) != "bytes" or not len(trace.side_table("allocations")):
        return None
    peak = max(ask(trace, "memory").to_arrow().to_pylist(), key=lambda row: row["peak_bytes"] or 0, default=None)
    if peak is None or not peak["peak_bytes"]:
        return None
    name = f"{peak['memory']} {peak['device']}" if peak["device"] is not None else peak["memory"]
    text = f"memory only: at its peak {name} has {format_bytes(peak['peak_bytes'])} allocated"
    if reserved := peak["peak_reserved_bytes"]:
        text += f", {format_share(peak['peak_bytes'] / reserved)} of {format_bytes(reserved)} reserved"
    owners = [
        row
        for row in ask(trace, "memory_owners", by="category").to_arrow().to_pylist()
        if row["device"] == peak["device"]
    ]
    known = [row for row in owners if row["category"] != _UNKNOWN and row["share"] >= _SHOWN]
    named = [f"{format_share(row['share'])} {row['category']}" for row in sorted(known, key=lambda row: -row["share"])]
    return Verdict("memory", f"{text}: {', '.join(named)}" if named else text)
