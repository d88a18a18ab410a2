"""Source lines: how often each line of the chosen functions ran, how long it took, on the host and on GPUs."""

from __future__ import annotations

from dataclasses import replace

from strobe.analyses.program.lines import ANALYSIS
from strobe.gpu.launches import with_calls
from strobe.sums.source_lines import source_of, summed_lines
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, function: str | None, whole: bool) -> Table:
    """Return the answer; see `strobe.analyses.program.lines`."""
    # Counters of lines are there without a GPU, and without the calls that launch something, too.
    locations = trace.locations.to_arrow().to_pylist()
    launches = bool(with_calls(trace, [each["location"] for each in locations if each["kind"] == "thread"]))
    functions = [each for each in summed_lines(trace.side_table("lines")) if (function or "") in each.name]
    rows = []
    changed = set()
    for each in sorted(functions, key=lambda each: -each.total_ns):
        source = source_of(each, trace.job.started_unix_ns)
        if source.changed:
            changed.add(each.file)
        numbers = sorted({*each.lines, *source.lines}) if whole else sorted(each.lines)
        for number in numbers:
            hits, total_ns = each.lines.get(number, (0, 0))
            gpu_ns, kernels = each.on_gpu.get(number, (0, 0)) if launches and each.on_gpu else (None, None)
            rows.append(
                {
                    "file": each.file,
                    "line": number,
                    "function": each.name,
                    "hits": hits,
                    "total_ns": total_ns,
                    "per_hit_ns": total_ns / hits if hits else None,
                    "share": total_ns / each.total_ns if each.total_ns else 0.0,
                    "gpu_ns": gpu_ns,
                    "kernels": kernels,
                    "source": source.lines.get(number),
                }
            )
    known = launches and any(each.on_gpu for each in functions)
    columns = [
        replace(column, extra=not known) if column.name in ("gpu_ns", "kernels") else column
        for column in ANALYSIS.columns
    ]
    note = f"changed since the run, so their text is not shown: {', '.join(sorted(changed))}" if changed else ""
    if not rows:
        note = f"no line of a function '{function}' was counted" if function else trace.missing(("lines",))
    return make_table(columns, rows, note=note)
