"""Calls and their costs: one tree of call paths, and below each what it launched on GPUs.

Two measures: host time, of threads, and GPU time, of kernels, copies and memory sets. What a GPU did is below the call
(or the operator) that launched it; where that is unknown, at the root.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strobe.api.trace import Trace
from strobe.errors import UsageError
from strobe.gpu.devices import devices
from strobe.gpu.folded_work import folded_note
from strobe.gpu.launched_by_path import launch_path, launched
from strobe.gpu.launches import Launches, launches
from strobe.gpu.work import Work
from strobe.model.kinds import GROUPS
from strobe.model.schema import Column
from strobe.model.units import format_count, format_ns
from strobe.server.routing.endpoints import END_NS, LOOP, MB, MOST_LOCATIONS, START_NS, parameter, route
from strobe.server.spans.span_tables import LOCATED_COLUMNS, located_spans, longest_rows, longest_spans, region_texts
from strobe.server.time_range.folded_steps import folded_process
from strobe.server.time_range.range_sums import clipped_self_ns, spans_in
from strobe.server.trace_context import TraceContext
from strobe.steps.folded_time import Stretches
from strobe.steps.selection import Selection, select
from strobe.steps.training_activities import PROFILER_STEP
from strobe.sums.path_statistics import selected_statistics
from strobe.sums.weight_unit import weight_unit
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import location_rows, processes_of_locations
from strobe.trace.folded import Folded
from strobe.trace.spans import SpanArrays, chosen_spans

# Nodes of an answer: what is left out then is narrower than a hair in every picture of the whole.
_MOST_NODES = 100_000
_MOST_SPANS = 50


COLUMNS = (
    Column("parent", "int32", "", "row of the caller, -1 at a root"),
    Column("call_path", "int32", "", "of what a GPU did: the call path that launched it, -1 where that is unknown"),
    Column("device", "uint8", "", "1 for what a GPU did"),
    Column("calls", "int64", "", "executions"),
    Column("total_ns", "int64", "ns", "host time with all that it calls"),
    Column("self_ns", "int64", "ns", "host time without what it calls"),
    Column("gpu_ns", "int64", "ns", "what GPUs did for it and for all that it calls, of several streams each counted"),
    Column("region", "int64", "", "its region"),
    Column("line", "int64", "", "line of its source, 0 where it has none"),
    Column("name", "string", "", "name of its region"),
    Column("group", "string", "", "what it is drawn as", values=GROUPS),
    Column("file", "string", "", "file of its source"),
)


class TreeAbout(TypedDict):
    """The part of the run in words; what is unknown (`note`); the number of nodes, sent or not; the unit of the
    numbers of a profile without times ("": they are times)."""

    about: str
    note: str
    nodes: int
    unit: str


# The part of a run that a tree is of: what `part_of` takes.
PART = (
    parameter("step", "all, steady, 14, or 10..20", str, "all", most=100),
    parameter("class", "class of steps", str, None, most=1000, argument="step_class"),
    parameter("start_ns", START_NS.help + "; with end_ns, instead of steps", default=None),
    parameter("end_ns", END_NS.help, default=None),
    parameter("locations", "only these threads and streams", default=None, of="location", items=MOST_LOCATIONS),
    parameter("processes", "only these processes", default=None, of="process", items=MOST_LOCATIONS),
    LOOP,
)


@dataclass(frozen=True)
class Part:
    """A part of a run: steps of it, or what lies in [start_ns, end_ns) of it; of all locations, or of some."""

    selection: Selection
    window: tuple[int, int] | None
    locations: Bools  # by location
    trace: Trace


def part_of(
    context: TraceContext,
    *,
    step: str = "all",
    step_class: str | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    locations: Collection[int] | None = None,
    processes: Collection[int] | None = None,
    level: str = "",
) -> Part:
    """Return the part that a question names: steps as for `select`; by default all locations of all processes."""
    if (start_ns is None) != (end_ns is None):
        raise UsageError("a time range needs both start_ns and end_ns")
    window = None if start_ns is None or end_ns is None else (start_ns, end_ns)
    # Steps are looked for only where somebody asks for some.
    trace = context.trace if window else context.chosen(level).trace if level else context.read
    selection = select(trace, "all" if window else step, None if window else step_class)
    process = processes_of_locations(context.trace)
    there = np.arange(len(process)) < len(trace.locations)  # all, or those of a run's beginning
    chosen = np.isin(np.arange(len(process)), list(locations or ())) | np.isin(process, list(processes or ()))
    return Part(selection, window, chosen & there if locations or processes else there, trace)


@route("tree", *PART, columns=COLUMNS, about=TreeAbout, most_bytes=64 * MB, slow=True)
def tree(context: TraceContext, **part: Any) -> pa.Table:
    """Who calls what, and what that costs on the host and on GPUs, in a part of the run."""
    return call_tree(context, part_of(context, **part))


def call_tree(context: TraceContext, part: Part, most: int = _MOST_NODES) -> pa.Table:
    """Return a row per call path and per kernel, copy or memory set below one; parents come before their children.

    Columns: COLUMNS. A path around what was selected has no calls of its own, and as total the sum of what is below it.
    Metadata `about`: TreeAbout as JSON.
    """
    host = _HostSums(len(context.call_path_arrays[0]), context)
    notes = [
        part.selection.note,
        *(() if part.window else (context.read_part, folded_note(part.trace, devices(part.trace)))),
    ]
    host.add_all(part, notes)
    parent, region = context.call_path_arrays
    stands, alike = context.alike_paths, context.alike_regions
    counting = partial(_counting, part)
    on_gpu = launched(part.trace, counting, stands, alike)
    parent = np.concatenate([np.append(stands, -1)[parent], on_gpu.path])
    region = np.concatenate([alike[region], on_gpu.region])
    paths, none = len(stands), np.zeros(len(on_gpu.path), dtype=np.int64)
    calls = np.concatenate([host.calls, on_gpu.calls])
    total, own = np.concatenate([host.total, none]), np.concatenate([host.own, none])
    gpu = np.concatenate([np.zeros(paths, dtype=np.int64), on_gpu.ns])
    weight = _add_below(parent, context.call_path_levels, total, own, calls, gpu)
    kept = _kept(parent, weight, gpu, calls, most)
    place = np.full(len(parent) + 1, -1, dtype=np.int64)  # the last one: of -1
    place[kept] = np.arange(len(kept))
    device = kept >= paths
    table = named(context, region[kept], {
        "parent": place[parent[kept]].astype(np.int32),
        "call_path": np.where(device, parent[kept], kept).astype(np.int32),
        "device": device.astype(np.uint8),
        "calls": calls[kept],
        "total_ns": total[kept],
        "self_ns": own[kept],
        "gpu_ns": gpu[kept],
    })  # fmt: skip
    there = int(((weight > 0) | (gpu > 0) | (calls > 0)).sum())
    if there > len(kept):
        notes.append(f"{format_count(there - len(kept))} of {format_count(there)} call paths are too small to be sent")
    about: TreeAbout = {
        "about": part.selection.about if part.window is None else format_ns(part.window[1] - part.window[0]),
        "note": "; ".join(filter(None, notes)),
        "nodes": there,
        "unit": weight_unit(context.trace) or "",
    }
    return table.replace_schema_metadata({"about": json.dumps(about)})


@route(
    "tree/spans",
    parameter("call_path", "number of the call path; default: what has no known launch", default=-1),
    parameter("region", "region that the call path launched; default: the call path itself", default=None, of="region"),
    *PART,
    columns=LOCATED_COLUMNS,
    most_bytes=4 * MB,
    slow=True,
)
def node_spans(context: TraceContext, call_path: int, region: int | None, **of_run: Any) -> pa.Table:
    """The longest spans of a node of the tree: of `call_path`, or of the `region` that it launched.

    Metadata: the number of all of them (`count`). Folded calls are not among them.
    """
    part = part_of(context, **of_run)
    found = (
        _path_spans(context, part, call_path) if region is None else _launched_spans(context, part, call_path, region)
    )
    tables, count = [], 0
    for location, arrays, number in found:
        count += number
        tables.append(located_spans(context, location, arrays))
    return longest_spans(tables, _MOST_SPANS).replace_schema_metadata({"count": str(count)})


class _HostSums:
    """By call path: executions, and ns with and without callees."""

    def __init__(self, paths: int, context: TraceContext) -> None:
        self._facts, self._stands = context, context.alike_paths
        self.calls, self.total, self.own = (np.zeros(paths, dtype=np.int64) for _ in range(3))

    def add_all(self, part: Part, notes: list[str]) -> None:
        """Add spans and statistics of threads, and note what is not known of folded steps."""
        context = self._facts
        kinds = [row.kind for row in location_rows(context.trace)]
        # As in the analyses: time of tasks is time of the program where there is nothing else.
        wanted = "thread" if {"thread", "stream"} & set(kinds) else "task"
        hosts = np.array([kind == wanted for kind in kinds], dtype=bool) & part.locations
        folded, unknown = _statistics(context, part, notes)
        process = processes_of_locations(context.trace)
        for location in np.flatnonzero(hosts).tolist():
            if context.span_counts[location]:
                around = unknown.get(process[location])
                self._add_spans(part, location, around(location) if around else None)
        for rows in folded:
            here = rows.chosen(hosts[rows.location])
            self._add(here.call_path, here.count, here.total_ns, here.own_ns)

    def _add_spans(self, part: Part, location: int, without: Stretches | None) -> None:
        if part.window is None:
            sums = part.trace.path_sums(location, part.selection.stretches(location))
            self._add(slice(len(sums["calls"])), sums["calls"], sums["total_ns"], sums["own_ns"])
            return
        arrays = spans_in(self._facts, location, *part.window)
        own = clipped_self_ns(arrays, *part.window, without)
        self._add(arrays["call_path"], np.ones_like(own), _clipped(arrays, part.window), own)

    def _add(self, path: npt.NDArray[np.integer] | slice, calls: Ints, total: Ints, own: Ints) -> None:
        for sums, values in ((self.calls, calls), (self.total, total), (self.own, own)):
            np.add.at(sums, self._stands[path], values)


def _clipped(arrays: SpanArrays, window: tuple[int, int]) -> Ints:
    end = np.minimum(arrays["start_ns"] + arrays["duration_ns"], window[1])
    inside: Ints = np.maximum(0, end - np.maximum(arrays["start_ns"], window[0]))
    return inside


def _statistics(
    context: TraceContext, part: Part, notes: list[str]
) -> tuple[list[Folded], Mapping[int, Callable[[int], Stretches]]]:
    """Return the statistics that belong to a part, and, by process and location, when it is not known what ran."""
    if part.window is None:
        return list(selected_statistics(part.trace, part.selection)), {}
    folded, unknown, most, short = [], {}, 0, 0
    for process in context.trace.folded:
        one = folded_process(context, process)
        if one.whole_in(context, *part.window):
            folded.append(one.statistics)
        else:
            unknown[process] = partial(one.of_location, context)
            most = max(most, len(one.stretches.overlapping(*part.window)))
            short += int(one.statistics.count[one.statistics.is_short].sum())
    if most:
        notes.append(f"what {format_count(most)} folded steps here called is only known of all folded steps together")
    if short:
        notes.append(f"{format_count(short)} calls below --min-duration are only known of the whole run")
    return folded, unknown


def _counting(part: Part, work: Work, who: Launches) -> Ints:
    """Return how long activities count in a part, ns; -1 for those that do not belong to it.

    Steps: those that were launched in them. Locations: those that ran or were launched there.
    """
    host = np.where(who.call.location >= 0, who.call.location, who.operator.location)
    chosen = part.locations[work.location] | ((host >= 0) & part.locations[host])
    if part.window is not None:
        end = np.minimum(work.end_ns, part.window[1])
        ns = end - np.maximum(work.start_ns, part.window[0])
        return np.where(chosen, ns, -1)
    called = who.call.location >= 0
    where = np.where(called, who.call.location, work.location)
    begin = np.where(called, who.call.start_ns, work.start_ns)
    for location in np.unique(where).tolist():
        here = where == location
        mask = part.selection.keep(location, begin[here])
        if mask is not None:
            chosen[here] &= mask
    return np.where(chosen, work.end_ns - work.start_ns, -1)


def _add_below(parent: Ints, levels: Sequence[Ints], total: Ints, own: Ints, calls: Ints, gpu: Ints) -> Ints:
    """Add to each node what is below it: of `gpu` everywhere, of `total` where the node itself was not selected.

    Return how wide each node must be at least to hold what is below it.
    """
    weight, below = (np.zeros(len(parent), dtype=np.int64) for _ in range(2))
    paths = sum(len(level) for level in levels)
    for nodes in (np.arange(paths, len(parent)), *levels):
        total[nodes] = np.where((calls[nodes] > 0) | (total[nodes] > 0), total[nodes], below[nodes])
        weight[nodes] = np.maximum(total[nodes], weight[nodes] + np.maximum(0, own[nodes]))
        nodes = nodes[parent[nodes] >= 0]
        for sums, values in ((below, total), (weight, weight), (gpu, gpu)):
            np.add.at(sums, parent[nodes], values[nodes])
    return weight


def _kept(parent: Ints, weight: Ints, gpu: Ints, calls: Ints, most: int) -> Ints:
    """Return the nodes that are something, or the `most` widest of them in either measure: parents are as wide."""
    there = np.flatnonzero((weight > 0) | (gpu > 0) | (calls > 0))
    if len(there) <= most:
        return there
    roots = parent < 0
    share = np.maximum(weight / max(1, int(weight[roots].sum())), gpu / max(1, int(gpu[roots].sum())))
    return np.sort(there[np.argsort(-share[there], kind="stable")[:most]])


def named(context: TraceContext, region: Ints, columns: Mapping[str, npt.NDArray[np.generic]]) -> pa.Table:
    """Return columns with number, name, group, file and line of each row's region."""
    texts = region_texts(context, region, "name", "group", "file")
    name = texts["name"]
    short = pc.if_else(pc.starts_with(name.dictionary, PROFILER_STEP), PROFILER_STEP.rstrip("#"), name.dictionary)
    texts["name"] = pa.DictionaryArray.from_arrays(name.indices, short)
    line = context.regions.column("line").cast(pa.int64()).fill_null(0).to_numpy()[region]
    return pa.table({**columns, "region": region, "line": line, **texts})


def _path_spans(context: TraceContext, part: Part, call_path: int) -> Iterator[tuple[int, SpanArrays, int]]:
    for location in np.flatnonzero(part.locations).tolist():
        if not context.span_counts[location]:
            continue
        arrays = spans_in(context, location, *part.window) if part.window else part.trace.span_arrays(location)
        wanted = context.alike_paths[arrays["call_path"]] == call_path
        mask = None if part.window else part.selection.keep(location, arrays["start_ns"])
        rows = np.flatnonzero(wanted if mask is None else wanted & mask)
        yield location, chosen_spans(arrays, longest_rows(arrays["duration_ns"], rows, _MOST_SPANS)), len(rows)


def _launched_spans(context: TraceContext, part: Part, path: int, region: int) -> Iterator[tuple[int, SpanArrays, int]]:
    for device in devices(part.trace):
        for work, who in launches(part.trace, device):
            wanted = (launch_path(who, context.alike_paths) == path) & (context.alike_regions[work.region] == region)
            wanted &= _counting(part, work, who) >= 0
            for location in np.unique(work.location[wanted]).tolist():
                rows = np.flatnonzero(wanted & (work.location == location))
                some = work.chosen(longest_rows(work.end_ns - work.start_ns, rows, _MOST_SPANS))
                spans = context.trace.span_arrays(location, int(some.start_ns.min()) - 1, int(some.end_ns.max()) + 1)
                yield location, chosen_spans(spans, np.searchsorted(spans["row"], some.row)), len(rows)
