"""What is in a trace: program, machine, how long, how it ended, how much was recorded."""

from __future__ import annotations

from datetime import datetime

from strobe.analyses.program.info import ANALYSIS
from strobe.model.units import format_bytes, format_ns
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import representativeness, usual_steps
from strobe.tables.table import Table, make_table
from strobe.trace.quality import losses
from strobe.trace.trace import Trace


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.program.info`."""
    info = trace.info
    started = (
        datetime.fromtimestamp(info.started_unix_ns / 1e9).isoformat(" ", "seconds") if info.started_unix_ns else ""
    )
    rows = [
        ("path", info.path),
        ("command", " ".join(info.command)),
        ("working_directory", info.working_directory),
        ("host", info.host),
        ("python", info.python),
        ("started", started),
        ("duration", format_ns(info.duration_ns)),
        ("duration_ns", str(info.duration_ns)),
        ("ended", info.ended),
        ("processes", str(info.process_count)),
        ("locations", str(info.location_count)),
        ("spans", str(info.span_count)),
        *_folded(trace),
        ("regions", str(len(trace.regions))),
        ("call_paths", str(len(trace.call_paths))),
        ("metrics", ", ".join(sorted({str(name) for name in trace.metrics().column("metric")}))),
        ("recorded", ", ".join(sorted({str(name) for name in trace.regions.column("paradigm")}))),
        ("size", f"{format_bytes(info.size_bytes)}, {_density(info.size_bytes, info.span_count, info.folded_count)}"),
        ("size_bytes", str(info.size_bytes)),
        ("lost", "; ".join(losses(trace)) or "nothing"),
        ("format_version", str(info.format_version)),
    ]
    return make_table(ANALYSIS.columns, rows)


def _density(size_bytes: int, spans: int, folded: int) -> str:
    each = size_bytes / max(1, spans + folded)
    return f"{each:.2g} bytes an execution" if folded else f"{each:.1f} bytes a span"


def _folded(trace: Trace) -> list[tuple[str, str]]:
    """Return how much was folded into statistics, if anything was, and whether what was kept stands for it."""
    if not trace.folded:
        return []
    steps = find_steps(trace).processes
    rows = [("folded", f"{trace.folded_count} executions in statistics, beside the spans")]
    if steps:
        kept, total = int(steps[0].kept.sum()), len(steps[0])
        usual = usual_steps(trace)
        ratio = representativeness(usual) if usual else None
        rows.append(("kept_steps", f"{kept} of {total} steps in detail ({100 * kept / total:.2g} %)"))
        rows.append(("kept_mean_ratio", "" if ratio is None else f"{ratio:.4f}"))
    return rows
