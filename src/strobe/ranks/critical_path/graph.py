"""The graph of the critical path of a window (a step, or the whole run): of one process, or of all linked ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.errors import UsageError
from strobe.gpu.devices import devices
from strobe.ranks.critical_path import gpu_edges, rank_edges, thread_edges
from strobe.ranks.critical_path.longest_path import Builder, Graph
from strobe.steps.steps import find_steps
from strobe.steps.steps_table import steps_columns
from strobe.steps.thread_spans import main_location
from strobe.tables.table import make_table
from strobe.trace.definition_rows import location_rows, process_rows, ranks_of, threads_of
from strobe.trace.trace import Trace

# A path is computed of at most so many spans; of a longer run without steps, of those in its middle.
_MOST = 1 << 19


@dataclass(frozen=True)
class Window:
    """A stretch of a process: [start_ns, end_ns) on its threads, and their launches in it; or the `whole` run."""

    process: int
    start_ns: int
    end_ns: int
    whole: bool = False


def graph(trace: Trace, windows: Sequence[Window]) -> Graph:
    """Return the graph of all that processes did in their windows, linked by collectives and messages.

    Every span of a thread gives two moments, where it begins and ends, and so does everything on a GPU.
    """
    builder = Builder()
    parts = [_of_process(trace, builder, window) for window in windows]
    rank_edges.link(trace, builder, parts)
    kinds = thread_edges.kind_of_path(trace)
    left_out = [np.zeros(0, dtype=np.int64)]
    for part in parts:
        added = gpu_edges.add_edges(trace, builder, part.chains, part.calls, part.work, part.syncs, part.early)
        left_out.append(added)
        for chain in part.chains:
            chain.add_edges(builder, kinds)
    return builder.graph(np.concatenate(left_out))


def _of_process(trace: Trace, builder: Builder, window: Window) -> rank_edges.Part:
    begin, end = window.start_ns, window.end_ns
    builder.begin_window(begin)
    main = main_location(trace, window.process)
    # The work of a thread before its first and after its last span is unknown.
    chains = [
        thread_edges.chain(
            trace, builder, at.location, max(begin, at.first_ns), min(end, at.last_ns),
            main=at.location == main,
        )
        for at in location_rows(trace)
        if at.process == window.process and at.kind == "thread"
        if at.first_ns < end and at.last_ns > begin
    ]  # fmt: skip
    thread_edges.link(trace, chains)
    own = [device for device in devices(trace) if device.process == window.process]
    calls = gpu_edges.calls_of(trace, chains)
    work = gpu_edges.activities_of(trace, builder, own, calls, begin, end, whole=window.whole)
    syncs = gpu_edges.syncs_of(trace, own, calls, begin, end)
    work = gpu_edges.in_order(builder, calls, work, syncs)
    rank = ranks_of(trace)[window.process]
    return rank_edges.Part(rank, chains, calls, work, syncs, np.zeros(len(work.row), dtype=bool))


def processes_of(trace: Trace, rank: str) -> list[list[int]]:
    """Return the processes of each path: `all` ranks in one, `each` rank in its own, or one rank by its number.

    If no process has a rank, nothing links them: `all` is the one with most work on GPUs, else the one that lasts
    longest; `each` are all of these. Raises UsageError for an unknown rank.
    """
    ranks = ranks_of(trace)
    of_rank = {number: process for process, number in reversed(list(enumerate(ranks))) if number is not None}
    if rank not in ("all", "each"):
        if not rank.isdigit() or int(rank) not in of_rank:
            known = ", ".join(map(str, sorted(of_rank))) or "none: leave the option out"
            raise UsageError(f"--rank: no rank '{rank}' in this trace", do=f"all, each, or one of: {known}")
        return [[of_rank[int(rank)]]]
    found = [of_rank[number] for number in sorted(of_rank)]
    if not found:
        found = _without_ranks(trace)
        found = found[:1] if rank == "all" else sorted(found)
    return [found] if rank == "all" else [[process] for process in found]


def unlinked(trace: Trace) -> list[int]:
    """Return the processes that did something and that no other one started: without ranks nothing links them."""
    processes = process_rows(trace)
    pids = {each.pid for each in processes}
    ran = {at.process for at in location_rows(trace) if at.kind != "task" and at.span_count}
    return [each.process for each in processes if each.process in ran and each.parent_pid not in pids - {each.pid}]


def _without_ranks(trace: Trace) -> list[int]:
    """Return the processes that used a GPU, most work first; else the unlinked ones, the longest first."""
    size: Counter[int] = Counter()
    for device in devices(trace):
        size[device.process] += device.spans
    if not size:
        for process in unlinked(trace):
            threads = threads_of(trace, process)
            size[process] = max((at.last_ns - at.first_ns for at in threads if at.span_count), default=0)
    return sorted(size, key=lambda process: (-size[process], process)) or [0]


def windows(trace: Trace, processes: list[int], step: str) -> tuple[list[Window], str]:
    """Return the window of each process, and its name. Raises UsageError for an unknown step.

    `step`: a number, or `all`: the whole run. Without it: the steady step of the most common class whose length (of the
    slowest process) is the median, of those kept in detail; without any steps, the whole run. Processes without the
    step have the time of those with it.
    """
    if step == "all":
        return _whole_run(trace, processes)
    steps = make_table("steps", steps_columns(find_steps(trace))).to_arrow()
    rows = [
        row
        for row in steps.to_pylist()
        if row["process"] in processes and row["detail"] == "all" and row["duration_ns"] > 0
    ]
    chosen = int(step) if step.isdigit() else _usual(rows) if not step else None
    found = {
        row["process"]: Window(row["process"], row["start_ns"], row["start_ns"] + row["duration_ns"])
        for row in rows
        if row["step"] == chosen
    }
    if not found:
        if step:
            known = sorted({row["step"] for row in rows})
            listed = f"{known[0]} to {known[-1]}, or all" if known else "none; all is the whole run"
            raise UsageError(f"--step: no step '{step}' with all its spans in this trace", do=f"Steps: {listed}")
        return _whole_run(trace, processes)
    begin, end = min(each.start_ns for each in found.values()), max(each.end_ns for each in found.values())
    return [found.get(process, Window(process, begin, end)) for process in processes], f"step {chosen}"


def _usual(rows: list[dict[str, Any]]) -> int | None:
    """Return the number of the step whose length is the median, None without steps."""
    rows = [row for row in rows if row["steady"]] or rows
    usual = {name for name, _ in Counter(row["class"] for row in rows).most_common(1)}
    longest: dict[int, int] = {}
    for row in (row for row in rows if row["class"] in usual):
        longest[row["step"]] = max(row["duration_ns"], longest.get(row["step"], 0))
    in_order = sorted(longest, key=lambda number: (longest[number], number))
    return in_order[(len(in_order) - 1) // 2] if in_order else None


def _whole_run(trace: Trace, processes: list[int]) -> tuple[list[Window], str]:
    locations = [at for at in location_rows(trace) if at.process in processes and at.span_count and at.kind != "task"]
    if not locations:
        return [], "the whole run"
    begin, end = min(at.first_ns for at in locations), max(at.last_ns for at in locations)
    spans = sum(at.span_count for at in locations)
    if spans <= _MOST:
        return [Window(process, begin, end, whole=True) for process in processes], "the whole run"
    middle, half = (begin + end) // 2, int((end - begin) * (_MOST / spans) / 2) + 1
    title = f"{2 * half / 1e9:.3g} s in the middle of the run"
    return [Window(process, middle - half, middle + half) for process in processes], title
