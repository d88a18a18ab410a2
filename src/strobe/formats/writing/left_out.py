"""Sentences about the data that a format of events cannot hold."""

from __future__ import annotations

from strobe.trace.trace import Trace

_SUMS = (
    "lines",
    "call_edges",
    "path_metrics",
    "message_totals",
    "io_totals",
    "sample_totals",
    "folded_collectives",
    "thread_waits",
    "compilations",
    "compiled_kernels",
    "requests",
    "request_parts",
)


def sums_left_out(trace: Trace, format_name: str) -> list[str]:
    """Return sentences about sums without times, and requests, for which a format has no place."""
    notes = []
    if trace.folded_count:
        folded = f"{trace.folded_count} executions that were folded into statistics"
        notes.append(f"{folded} are left out: {format_name} has no place for sums")
    for name in _SUMS:
        if rows := sum(reader.tables().get(name, 0) for reader in trace.readers):
            notes.append(f"{rows} rows of the table {name} are left out: {format_name} has no place for them")
    allocated_by = trace.side_table("memory_blocks").to_arrow().column("call_path")
    if blocks := len(allocated_by) - allocated_by.null_count:
        notes.append(f"who allocated {blocks} blocks of memory is left out: {format_name} has no place for call paths")
    return notes
