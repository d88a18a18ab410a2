"""What torch.compile compiles, how often and why, and what the code that it makes costs, by line of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from strobe.analyses.operators.compile import ANALYSIS
from strobe.model.units import format_count, format_ns, format_number_of, format_share
from strobe.operators.compilations import (
    CompiledFunction,
    causes_of_compilations,
    compilation_events,
    compiled_functions,
    phase_of_path,
)
from strobe.operators.compiled_kernels import CompiledKernel, compiled_kernels
from strobe.steps.selection import select
from strobe.steps.step_times import step_at
from strobe.sums.path_statistics import PathStatistics, path_statistics
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace

Rows = list[Mapping[str, object]]
_NO_COMPILATION = "no compilation was recorded (profiles of PyTorch have none)"
_NOTHING = {
    "function": "no call of compiled code was recorded",
    "compilation": _NO_COMPILATION,
    "event": _NO_COMPILATION,
    "kernel": "the trace has no kernels of code that torch.compile made",
    "line": "the trace has no source lines of code that torch.compile made",
    "phase": "no phase of a compilation was recorded",
}


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.operators.compile`."""
    if by in ("kernel", "line"):
        kernels = compiled_kernels(trace)
        rows = _by_kernel(kernels) if by == "kernel" else _by_line(kernels)
        note = _attribution(kernels)
    else:
        sums = path_statistics(trace, select(trace, "all", None))
        functions = compiled_functions(trace, sums)
        note = _sentence(trace, functions)
        if by == "phase":
            rows, note = _by_phase(trace, sums), ""
        elif by == "function":
            rows = _by_function(trace, functions)
        else:
            rows = _by_event(trace) if by == "event" else _by_compilation(trace, functions)
    if not rows:
        note = trace.missing(ANALYSIS.needs) or _NOTHING[by]
    return make_table(ANALYSIS.columns_with(by=by), rows, about="the whole run", note=note)


def _by_function(trace: Trace, functions: Iterable[CompiledFunction]) -> Rows:
    ranks, recorded = ranks_of(trace), bool(compilation_events(trace))
    rows: Rows = [
        {
            "rank": ranks[each.process],
            "process": each.process,
            "function": each.function,
            "graphs": each.graphs,
            "recompiles": each.recompiles,
            "graph_breaks": each.graph_breaks if recorded else None,
            "compile_ns": each.compile_ns if recorded else None,
            "calls": each.calls,
            "total_ns": each.total_ns,
            "cause": next((text for text, _ in each.causes.most_common(1)), ""),
            "place": f"{each.file}:{each.line}" if each.file else "",
        }
        for each in functions
    ]
    return sorted(rows, key=lambda row: (-int(str(row["compile_ns"] or 0)), -int(str(row["total_ns"]))))


def _by_event(trace: Trace) -> Rows:
    ranks, process_of = ranks_of(trace), processes_of_locations(trace)
    return [
        {
            "rank": ranks[process_of[each.location]],
            "process": process_of[each.location],
            "event": each.event,
            "time_ns": each.time_ns,
            "compile_id": each.compile_id,
            "function": each.function,
            "duration_ns": each.duration_ns if each.event == "compile" else None,
            "reason": each.reason,
            "place": each.place,
        }
        for each in sorted(compilation_events(trace), key=lambda each: each.time_ns)
    ]


def _by_compilation(trace: Trace, functions: Sequence[CompiledFunction]) -> Rows:
    ranks, process_of = ranks_of(trace), processes_of_locations(trace)
    run_ns = _run_ns(trace, functions)
    rows: Rows = [
        {
            "rank": ranks[process_of[each.location]],
            "process": process_of[each.location],
            "start_ns": each.time_ns,
            "step": step if step >= 0 else None,
            "compile_id": each.compile_id,
            "function": each.function,
            "again": each.again,
            "backward": backward,
            "duration_ns": each.duration_ns,
            "run_share": each.duration_ns / run_ns if run_ns else None,
            "causes": "; ".join(causes),
            "place": each.place,
        }
        for each, backward, causes in causes_of_compilations(trace)
        for step in step_at(trace, each.location, np.array([each.time_ns + each.duration_ns // 2])).tolist()
    ]
    return sorted(rows, key=lambda row: -int(str(row["duration_ns"])))


def _by_kernel(kernels: Sequence[CompiledKernel]) -> Rows:
    whole_ns = sum(each.total_ns for each in kernels)
    return [
        {
            "kernel": each.kernel,
            "operators": ", ".join(each.operators),
            "source_lines": ", ".join(each.source_lines),
            "calls": each.calls,
            "total_ns": each.total_ns,
            "share": each.total_ns / whole_ns if whole_ns else None,
            "size_bytes": each.size_bytes,
            "region": each.region,
            "graph": each.graph,
            "file": each.file,
            "line": each.line or None,
            "shapes": ", ".join(each.shapes),
            "reason": each.reason,
        }
        for each in kernels
    ]


def _by_line(kernels: Sequence[CompiledKernel]) -> Rows:
    whole_ns = sum(each.total_ns for each in kernels)
    sums: dict[str, list[int]] = {}
    for each in kernels:
        for line in each.source_lines:
            own = sums.setdefault(line, [0, 0, 0])
            for i, value in enumerate((1, each.calls, each.total_ns)):
                own[i] += value
    return [
        {
            "source_line": line,
            "kernels": count,
            "calls": calls,
            "total_ns": total_ns,
            "share": total_ns / whole_ns if whole_ns else None,
        }
        for line, (count, calls, total_ns) in sorted(sums.items(), key=lambda each: -each[1][2])
    ]


def _by_phase(trace: Trace, sums: PathStatistics) -> Rows:
    own_ns, calls = Counter[str](), Counter[str]()
    phases = phase_of_path(trace, sums)
    for path, phase in enumerate(phases):
        if phase:
            own_ns[phase] += int(sums.own_ns[path])
            parent = int(sums.parent[path])
            # A path of the same phase below is what it calls, not the phase.
            calls[phase] += int(sums.calls[path]) if parent < 0 or phases[parent] != phase else 0
    return [{"phase": phase, "calls": calls[phase], "self_ns": ns} for phase, ns in own_ns.most_common()]


def _sentence(trace: Trace, functions: Sequence[CompiledFunction]) -> str:
    """Return what compiling takes, of all processes together; "" if it is not known."""
    ns, graphs = sum(each.compile_ns for each in functions), sum(each.graphs for each in functions)
    if not ns:
        return ""
    run_ns = _run_ns(trace, functions)
    share = f" ({format_share(ns / run_ns)} of the run)" if run_ns else ""
    return f"compiling takes {format_ns(ns)}{share}, for {format_number_of(graphs, 'graph')}"


def _run_ns(trace: Trace, functions: Iterable[CompiledFunction]) -> int:
    """Return the time of the run, once for each process that compiled."""
    return trace.info.duration_ns * len({each.process for each in functions})


def _attribution(kernels: Iterable[CompiledKernel]) -> str:
    """Return how many calls are attributed to source lines or regions, and why the others are not."""
    calls, known, reasons, on_gpu = 0, 0, Counter[str](), False
    for each in kernels:
        calls += each.calls
        known += each.calls * each.attributed
        on_gpu |= each.on_gpu
        if not each.attributed:
            reasons[each.reason] += each.calls
    if not calls:
        return ""
    to = "a source line or a compiled region" if on_gpu else "source lines"
    others = ", ".join(f"{format_count(count)} ({reason})" for reason, count in reasons.most_common())
    note = f"{format_share(known / calls)} of {format_count(calls)} calls of kernels are attributed to {to}"
    return f"{note}; the others: {others}" if others else note
