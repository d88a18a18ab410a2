"""What torch.compile compiled in a run: functions with their graphs, recompiles and graph breaks, and the time of it.

Recordings hold the table `compilations`. Profiles of PyTorch hold regions only: `Torch-Compiled Region: FRAME/NUMBER`
is a call of what the frame was compiled to the NUMBERth time, from 0 on, and phases of compilations are ranges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from strobe.model.compiled_code import COMPILATION, COMPILED_REGION, PHASE
from strobe.sums.path_statistics import PathStatistics
from strobe.trace.definition_rows import processes_of_locations, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


class Event(NamedTuple):
    """A row of `compilations`, with the function that is known for its frame."""

    location: int
    time_ns: int
    event: str
    compile_id: str
    function: str
    file: str
    line: int
    reason: str
    duration_ns: int

    @property
    def again(self) -> bool:
        """Whether its frame had been compiled before."""
        return not self.compile_id.endswith("/0")

    @property
    def place(self) -> str:
        """FILE:LINE, "" if unknown."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass
class CompiledFunction:
    """A function with all of its frames: what follows a graph break is a frame of its own.

    graphs: compilations that did not fail; of a profile, those that were called. calls, total_ns: of the compiled code.
    """

    process: int
    function: str
    file: str = ""
    line: int = 0
    frames: set[str] = field(default_factory=set)
    graphs: int = 0
    recompiles: int = 0
    graph_breaks: int = 0
    compile_ns: int = 0
    calls: int = 0
    total_ns: int = 0
    causes: Counter[str] = field(default_factory=Counter)


@cached_on_trace
def compilation_events(trace: Trace) -> list[Event]:
    """Return what was compiled, in order of time within a thread."""
    table = trace.side_table("compilations")
    columns = [table.to_arrow().column(name).to_pylist() for name in Event._fields]
    rows = [Event(*row) for row in zip(*columns, strict=True)]
    process_of = processes_of_locations(trace)
    known = {
        (process_of[row.location], frame_of(row.compile_id)): row for row in rows if row.event == "compile" and row.file
    }
    nothing = Event(0, 0, "", "", "", "", 0, "", 0)
    found = []
    for row in rows:
        of_frame = known.get((process_of[row.location], frame_of(row.compile_id)), nothing)
        own = row if row.file else of_frame
        found.append(
            row._replace(
                function=row.function or of_frame.function or "",
                file=own.file or "",
                line=own.line or 0,
                reason=row.reason or "",
                duration_ns=row.duration_ns or 0,
            )
        )
    return found


def frame_of(compile_id: str) -> str:
    """Return the number of the frame of a compilation: 0 of 0/3."""
    return compile_id.rpartition("/")[0]


def compiled_functions(trace: Trace, sums: PathStatistics) -> list[CompiledFunction]:
    """Return the functions that were compiled. `sums`: of all threads, for the calls of what was compiled."""
    process_of = processes_of_locations(trace)
    events = compilation_events(trace)
    frames: dict[tuple[int, str], CompiledFunction] = {}
    functions: dict[tuple[int, str, str], CompiledFunction] = {}
    graphs: set[tuple[int, str]] = set()
    for each in events:
        process, frame = process_of[each.location], frame_of(each.compile_id)
        if (process, frame) not in frames:
            key = (process, each.function or frame, each.file if each.function else "")
            frames[process, frame] = functions.setdefault(key, CompiledFunction(process, key[1], key[2]))
        of = frames[process, frame]
        of.frames.add(frame)
        if each.event == "compile":
            of.line = of.line or each.line
            if not each.reason:  # the backward graph of a compilation may follow it
                graphs.add((process, each.compile_id))
            of.compile_ns += each.duration_ns
        else:
            of.recompiles += each.event == "recompile"
            of.graph_breaks += each.event == "graph_break"
            of.causes[cause(each)] += 1
    for process, compile_id in graphs:
        frames[process, frame_of(compile_id)].graphs += 1
    _add_calls(trace, sums, frames, bool(events))
    return list({id(each): each for each in frames.values()}.values())


def cause(event: Event) -> str:
    """Return why a function was compiled again, or breaks off, without the numbers of compilations."""
    reason = re.sub(r"^\d+/\d+: ", "", event.reason)
    return f"{reason} ({event.place})" if event.event == "graph_break" and event.place else reason


def causes_of_compilations(trace: Trace) -> Iterator[tuple[Event, bool, list[str]]]:
    """Yield each compilation, whether it is of a backward graph, and why.

    That is the guards that failed, graph breaks in its frame, why it made no graph. A backward graph has the number of
    its frame's compilation, which comes first: its guards, too, and not its breaks.
    """
    process_of = processes_of_locations(trace)
    noted: dict[tuple[int, str, str], list[str]] = {}
    events = compilation_events(trace)
    frames: set[tuple[int, str]] = set()
    for each in events:
        if each.event != "compile":
            noted.setdefault((process_of[each.location], each.compile_id, each.event), []).append(cause(each))
    for each in events:
        if each.event == "compile":
            of = (process_of[each.location], each.compile_id)
            breaks = [f"graph break: {text}" for text in noted.pop((*of, "graph_break"), [])]
            yield each, of in frames, [*noted.get((*of, "recompile"), []), *breaks, *filter(None, [each.reason])]
            frames.add(of)


def _add_calls(
    trace: Trace, sums: PathStatistics, frames: dict[tuple[int, str], CompiledFunction], recorded: bool
) -> None:
    """Add the calls of compiled code. Which process they are of is not known of sums: the one that has the frame."""
    seen: dict[str, set[str]] = {}
    regions = region_rows(trace)
    for path in np.flatnonzero(sums.calls > 0).tolist():
        found = COMPILED_REGION.match(regions[int(sums.region[path])].name)
        if not found:
            continue
        of = next((each for (_, frame), each in frames.items() if frame == found[1]), None)
        if of is None:
            of = frames[0, found[1]] = CompiledFunction(0, f"region {found[1]}", frames={found[1]})
        of.calls += int(sums.calls[path])
        of.total_ns += int(sums.total_ns[path]) * bool(sums.outermost[path])
        seen.setdefault(found[1], set()).add(found[2])
        if not recorded:
            of.graphs = len(seen[found[1]])
            of.recompiles = max(map(int, seen[found[1]]))


def phase_of_path(trace: Trace, sums: PathStatistics) -> list[str]:
    """Return the phase of torch.compile that each call path lies in, the innermost one; "" for none."""
    regions = region_rows(trace)
    of_region = []
    for each in regions:
        found = PHASE.match(each.name)
        of_region.append((found[1] or found[2]) if found else COMPILATION if each.name == COMPILATION else "")
    phases: list[str] = []
    for parent, region in zip(sums.parent.tolist(), sums.region.tolist(), strict=True):
        phases.append(of_region[region] or (phases[parent] if parent >= 0 else ""))
    return phases
