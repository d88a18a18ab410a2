"""A part of a run: some ranks, steps or times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from strobe.errors import UsageError
from strobe.steps.step_times import step_times
from strobe.steps.steps import find_steps
from strobe.trace.processes.process_part import PartReader
from strobe.trace.trace import Trace

Range = tuple[int, int]
_AnyTrace = TypeVar("_AnyTrace", bound=Trace)


def part_of(trace: _AnyTrace, ranks: Range | None, steps: Range | None, time_ns: Range | None) -> _AnyTrace:
    """Return the part of a trace: see `Trace.part`."""
    chosen = _processes(trace, ranks)
    windows = [_window(trace, process, steps, time_ns) for process in chosen]
    if chosen and all(window is not None and window[0] >= window[1] for window in windows):
        raise UsageError("nothing was recorded in that range", do=_known_range(trace, steps is not None))
    readers = []
    for process, window in zip(chosen, windows, strict=True):
        reader, zero = trace.readers[process], trace.zero_of(process)
        readers.append(reader if window is None else PartReader(reader, window[0] + zero, window[1] + zero))
    files = [trace.files[process] for process in chosen] if trace.files else []
    job = replace(trace.job, zero_ns=trace.zero_ns)
    return trace.with_readers(readers, files, job, trace.workers)


def _processes(trace: Trace, ranks: Range | None) -> list[int]:
    rows: list[dict[str, Any]] = trace.processes.to_arrow().to_pylist()
    if ranks is None:
        return list(range(len(rows)))
    first, last = ranks
    inside = {i for i, row in enumerate(rows) if row["rank"] is not None and first <= row["rank"] <= last}
    if not inside:
        known_ranks = sorted(row["rank"] for row in rows if row["rank"] is not None)
        known = f"Ranks: {known_ranks[0]} to {known_ranks[-1]}" if known_ranks else "Its processes have no ranks."
        raise UsageError(f"no rank from {first} to {last} in this trace", do=known)
    # Child processes, for example workers of a loader, go with their rank.
    pids = {(rows[i]["host"], rows[i]["pid"]) for i in inside}
    children = {i for i, row in enumerate(rows) if row["rank"] is None and (row["host"], row["parent_pid"]) in pids}
    return sorted(inside | children)


def _window(trace: Trace, process: int, steps: Range | None, time_ns: Range | None) -> Range | None:
    """Return the times of a process that are in the part, None for all."""
    begin, end = time_ns if time_ns is not None else (-(2**62), 2**62)
    if steps is not None:
        number, starts, ends = step_times(trace, process)
        inside = (number >= steps[0]) & (number <= steps[1])
        if not inside.any():
            return 0, 0
        begin, end = max(begin, int(starts[inside].min())), min(end, int(ends[inside].max()))
    elif time_ns is None:
        return None
    row: dict[str, Any] = trace.processes.to_arrow().slice(process, 1).to_pylist()[0]
    return None if begin <= row["started_ns"] and end > row["ended_ns"] else (begin, end)


def _known_range(trace: Trace, steps: bool) -> str:
    if not steps:
        return f"The trace ends at {trace.info.duration_ns} ns."
    last = max((each.first_number + len(each) - 1 for each in find_steps(trace).processes if len(each)), default=-1)
    return f"Steps: 0 to {last}" if last >= 0 else "No steps were found in it."
