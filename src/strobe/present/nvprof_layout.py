"""Answers in the layout of nvprof (CUDA 9 and later), which people know by heart and scripts parse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strobe.answers.ask import ask
from strobe.errors import UsageError
from strobe.model.gpu_metrics import METRICS
from strobe.present.aligned import aligned_rows
from strobe.tables.table import Table
from strobe.trace.trace import Trace

_NEEDED = ("calls", "total_ns", "min_ns", "max_ns")
_ACTIVITIES, _CALLS = "GPU activities", "API calls"
_TYPES = {"kernels": _ACTIVITIES, "copies": _ACTIVITIES, "calls": _CALLS}
_HEAD = f"{'Type':>16}  {'Time(%)':>7}{'Time':>10}{'Calls':>10}{'Avg':>10}{'Min':>10}{'Max':>10}  Name"
_METRIC = "{:>11}  {:>40}  {:>60}  {:>11}  {:>11}  {:>11}"
_LEVELS = ((0, "Idle"), (3, "Low"), (6, "Mid"), (9, "High"), (10**9, "Max"))
_TRACE = (
    *("Start", "Duration", "Grid Size", "Block Size", "Regs*", "SSMem*", "DSMem*", "Size", "Throughput"),
    *("SrcMemType", "DstMemType", "Device", "Context", "Stream", "Name"),
)
_LEGEND = """
Regs: Number of registers used per CUDA thread. This number includes registers used internally by the CUDA driver and/or tools and can be more than what the compiler shows.
SSMem: Static shared memory allocated per CUDA block.
DSMem: Dynamic shared memory allocated per CUDA block.
SrcMemType: The type of source memory accessed by memory operation/copy
DstMemType: The type of destination memory accessed by memory operation/copy
"""  # noqa: E501


def text(table: Table) -> str:
    """Return a table in nvprof's layout: `gpu_trace` as --print-gpu-trace, hardware metrics as --metrics, others as its
    summary.

    Raises UsageError where the table has none of the columns that nvprof prints.
    """
    if table.name == "gpu_trace":
        return _gpu_trace(table)
    if table.name == "kernel_metrics":
        return _metrics(table)
    for name in _NEEDED:
        if name not in table.columns:
            raise UsageError(f"--format nvprof needs the column '{name}', which this table does not have")
    rows = table.to_arrow().to_pylist()
    kind = _TYPES.get(table.name, table.name.capitalize())
    return "\n".join([_HEAD, *_block(kind, _by_name(table, rows), _everything(rows))]) + "\n"


def summary(trace: Trace) -> str:
    """Return what nvprof prints at the end of a run: GPU activities and API calls of each process.

    Time(%) is of the block that a row stands in.
    """
    asked: list[tuple[str, list[Table]]] = [
        (_ACTIVITIES, [ask(trace, "kernels"), ask(trace, "copies")]),
        (_CALLS, [ask(trace, "calls")]),
    ]
    out: list[str] = []
    for process in trace.processes.to_pylist():
        blocks: list[str] = []
        for kind, tables in asked:
            sums: list[_Sum] = []
            for table in tables:
                own = [row for row in table.to_arrow().to_pylist() if row["process"] == process["process"]]
                sums += _by_name(table, own)
            blocks += _block(kind, sums, sum(each.total_ns for each in sums))
        if blocks:
            command = f"{process['pid']}, command: {process['argv']}"
            out += [f"=={process['pid']}== NVPROF is profiling process {command}"]
            out += [f"=={process['pid']}== Profiling result:", _HEAD, *blocks]
    if not out:
        raise UsageError("--format nvprof: this trace has neither GPU activities nor calls of CUDA or HIP")
    return "\n".join(out) + "\n"


@dataclass
class _Sum:
    name: str
    calls: int = 0
    total_ns: int = 0
    min_ns: int | None = None
    max_ns: int = 0


def _by_name(table: Table, rows: Iterable[dict[str, Any]]) -> list[_Sum]:
    """Sum rows of one name: nvprof distinguishes neither GPUs nor kinds of memory."""
    sums: dict[str, _Sum] = {}
    for row in rows:
        name = _name(table, row)
        found = sums.setdefault(name, _Sum(name))
        found.calls += row["calls"]
        found.total_ns += row["total_ns"]
        found.min_ns = row["min_ns"] if found.min_ns is None else min(found.min_ns, row["min_ns"])
        found.max_ns = max(found.max_ns, row["max_ns"])
    return list(sums.values())


def _name(table: Table, row: dict[str, Any]) -> str:
    if table.name == "copies":
        return "[CUDA memset]" if row["kind"] == "set" else f"[CUDA memcpy {row['kind']}]"
    return str(row["name"] if "name" in row else row[table.columns[0]])


def _everything(rows: Sequence[dict[str, Any]]) -> float:
    """Return the time of all rows that the table was made from, whatever was cut from it since.

    Shares are of the exclusive time where there is one, and of a GPU or process where there are several: one of which
    no row is left does not count.
    """
    largest: dict[object, dict[str, Any]] = {}
    for row in rows:
        owner = tuple(row.get(name) for name in ("process", "device"))
        if (row.get("share") or 0) > (largest.get(owner, {}).get("share") or 0):
            largest[owner] = row
    known = sum(row.get("self_ns", row["total_ns"]) / row["share"] for row in largest.values())
    return float(known or sum(row["total_ns"] for row in rows))


def _block(kind: str, sums: Iterable[_Sum], everything: float) -> list[str]:
    lines = []
    label = f"{kind}:"
    for each in sorted(sums, key=lambda each: -each.total_ns):
        times = (each.total_ns, each.total_ns / max(1, each.calls), each.min_ns or 0, each.max_ns)
        total, average, low, high = (time_text(value) for value in times)
        share = f"{100 * each.total_ns / (everything or 1):.2f}%"
        numbers = f"{share:>7}{total:>10}{each.calls:>10}{average:>10}{low:>10}{high:>10}"
        lines.append(f"{label:>16}  {numbers}  {each.name}")
        label = ""
    return lines


def _gpu_trace(table: Table) -> str:
    arrow = table.to_arrow()
    models = {key.decode(): name.decode() for key, name in (arrow.schema.metadata or {}).items()}
    rows = [_TRACE, *(_trace_cells(row, models) for row in arrow.to_pylist())]
    return "\n".join(aligned_rows(rows, [name != "Name" for name in _TRACE])) + "\n" + _LEGEND


def _metrics(table: Table) -> str:
    needed = ("name", "metric", "launches", "min", "max", "avg", "unit")
    for name in needed:
        if name not in table.columns:
            raise UsageError(f"--format nvprof needs the column '{name}', which is not among --columns")
    lines, kernel = [_METRIC.format("Invocations", "Metric Name", "Metric Description", "Min", "Max", "Avg")], None
    for row in table.to_arrow().to_pylist():
        if row["name"] != kernel:
            kernel = row["name"]
            lines.append(f"    Kernel: {kernel}")
        about = METRICS[row["metric"]].about if row["metric"] in METRICS else row["metric"]
        values = (metric_text(row[name], row["unit"]) for name in ("min", "max", "avg"))
        lines.append(_METRIC.format(row["launches"], row["metric"], about, *values))
    return "\n".join(lines) + "\n"


def metric_text(value: float | None, unit: str) -> str:
    """A value as nvprof wrote it: `62.50%`, `Mid (5)` of 10, `31.250GB/s`, `0.625000`, `1.0240e+03`."""
    if value is None:
        return "-"
    if unit == "%":
        return f"{value:.2f}%"
    if unit == "byte/s":
        return f"{size_text(round(value))}/s"
    if unit == "of 10":
        level = round(value)
        return f"{next(name for most, name in _LEVELS if level <= most)} ({level})"
    return f"{value:.6f}" if abs(value) < 1000 else f"{value:.4e}"


def _trace_cells(row: dict[str, Any], models: Mapping[str, str]) -> tuple[str, ...]:
    def shape(value: str | None) -> str:
        return f"({value.replace('x', ' ')})" if value else "-"

    def shown(value: object) -> str:
        return "-" if value is None else str(value)

    correlation = "" if row["correlation"] is None else f" [{row['correlation']}]"
    rate, device = row["throughput_gb_s"], row["device"]
    return (
        time_text(row["start_ns"]),
        time_text(row["duration_ns"]),
        shape(row["grid"]),
        shape(row["block"]),
        shown(row["registers_per_thread"]),
        *(size_text(row[name]) for name in ("static_shared_bytes", "dynamic_shared_bytes", "size_bytes")),
        "-" if rate is None else f"{size_text(round(rate * 1e9))}/s",
        shown(row["source"]),
        shown(row["destination"]),
        "-" if device is None else f"{models.get(f'gpu {device}', 'GPU')} ({device})",
        shown(row["context"]),
        shown(row["stream"]),
        f"{row['name']}{correlation}",
    )


def time_text(value_ns: float) -> str:
    """A time as nvprof wrote it: `46.6474s` (6 digits), `737.97ms`, `1.1405ms`, `230.07us` (5 digits), `512ns`."""
    for size, unit, digits in ((1e9, "s", 6), (1e6, "ms", 5), (1e3, "us", 5)):
        if value_ns >= size:
            value = value_ns / size
            return f"{value:.{digits - len(str(int(value)))}f}{unit}"
    return f"{value_ns:.0f}ns"


def size_text(value: int | None) -> str:
    """A number of bytes as nvprof wrote it: `1.0000KB`, `12.500MB` (5 digits, of 1024 each), `16B`; `-` for none."""
    if value is None:
        return "-"
    for size, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if value >= size:
            shown = value / size
            return f"{shown:.{max(0, 5 - len(str(int(shown))))}f}{unit}"
    return f"{value}B"
