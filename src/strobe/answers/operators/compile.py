"""What torch.compile compiles, how often and why, and what the code that it makes costs, by line of the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from strobe.analyses.operators.compile import ANALYSIS
from strobe.model.units import format_count, format_ns, format_number_of, format_share
from strobe.operators.compilations import (
    CompiledFunction,
    compilation_events,
    compiled_functions,
    phase_of_path,
)
from strobe.operators.compiled_kernels import CompiledKernel, compiled_kernels
from strobe.steps.selection import select
from strobe.sums.path_statistics import PathStatistics, path_statistics
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace

Rows = list[Mapping[str, object]]
_NOTHING = {
    "kernel": "the trace has no kernels of code that torch.compile made",
    "line": "the trace has no source lines of code that torch.compile made",
}


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.operators.compile`."""
    selection = select(trace, "all", None)
    sums = path_statistics(trace, selection)
    if by in ("kernel", "line"):
        kernels = compiled_kernels(trace, sums)
        rows = _by_kernel(kernels) if by == "kernel" else _by_line(kernels)
        note = _attribution(kernels)
    elif by == "phase":
        rows = _by_phase(trace, sums)
        note = ""
    else:
        functions = compiled_functions(trace, sums)
        rows = _by_function(trace, functions) if by == "function" else _by_event(trace)
        note = _sentence(trace, functions)
    if not rows:
        note = trace.missing(ANALYSIS.needs) or _NOTHING.get(by, "the trace has no compilations of torch.compile")
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


def _by_kernel(kernels: Iterable[CompiledKernel]) -> Rows:
    return [
        {
            "kernel": each.kernel,
            "operators": ", ".join(each.operators),
            "source_lines": ", ".join(each.source_lines),
            "calls": each.calls,
            "total_ns": each.total_ns,
            "region": each.region,
            "graph": each.graph,
            "file": each.file,
            "line": each.line or None,
            "shapes": ", ".join(each.shapes),
            "reason": each.reason,
        }
        for each in sorted(kernels, key=lambda each: -each.total_ns)
    ]


def _by_line(kernels: Iterable[CompiledKernel]) -> Rows:
    sums: dict[str, list[int]] = {}
    for each in kernels:
        for line in each.source_lines:
            own = sums.setdefault(line, [0, 0, 0])
            for i, value in enumerate((1, each.calls, each.total_ns)):
                own[i] += value
    return [
        {"source_line": line, "kernels": count, "calls": calls, "total_ns": total_ns}
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
    run_ns = trace.info.duration_ns * len({each.process for each in functions})
    share = f" ({format_share(ns / run_ns)} of the run)" if run_ns else ""
    return f"compiling takes {format_ns(ns)}{share}, for {format_number_of(graphs, 'graph')}"


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
