"""What ran in a time range, by name or by another column: how often, how long by itself, and how long each lasted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from strobe.errors import InconclusiveError
from strobe.model.schema import Column
from strobe.operators.labels import MODULE
from strobe.server.routing.endpoints import MB, TIME_RANGE, parameter, route
from strobe.server.spans.span_tables import expected_spans, process_title, thread_title
from strobe.server.time_range.range_sums import CUT, MEANWHILE, clipped_self_ns, running_locations, spans_in, summed
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import Bools, Ints
from strobe.tables.table import make_table
from strobe.trace.definition_rows import location_rows, process_rows, region_rows
from strobe.trace.spans import SpanArrays

MOST_ROWS = 5000
BY = ("name", "group", "role", "file", "caller", "module", "thread", "process", "rank", "step", "phase")
# Spans that are read for an answer: about half a second.
_MOST_READ = 2_000_000
PHASES = ("before the forward pass", "forward and backward", "after the backward pass", "outside of steps in detail")
_TITLES = {"data_wait": "data", CUT: "steps cut by the edge", MEANWHILE: "other threads and processes"}
COLUMNS = (
    Column("name", "string", "", "name of the region, or what the row is by"),
    Column("group", "string", "", "what it is drawn and summed as; empty where rows are neither names nor groups"),
    Column("executions", "int64", "", "executions that begin in the time range"),
    Column("exclusive_ns", "int64", "ns", "time in it without what it called, inside the time range"),
    Column("share", "float64", "", "the same as a part of all exclusive time, 0 to 1"),
    Column("mean_ns", "float64", "ns", "exclusive time by executions that begin"),
    Column("shortest_ns", "int64", "ns", "shortest duration of an execution that begins; null where not read"),
    Column("average_ns", "float64", "ns", "mean duration of executions that begin; null where not read"),
    Column("longest_ns", "int64", "ns", "longest duration of an execution that begins; null where not read"),
)


class _Durations(NamedTuple):
    """Durations of the executions that begin: their number, their sum, and both extremes, ns."""

    executions: int
    total_ns: int
    shortest_ns: int
    longest_ns: int

    @property
    def cells(self) -> tuple[int, float, int]:
        return self.shortest_ns, self.total_ns / self.executions, self.longest_ns


_NOT_READ = (None, None, None)
_Key = tuple[str, str]
_Row = tuple[str, str, int | None, int]


@route(
    "window/profile",
    *TIME_RANGE,
    parameter("by", "what rows are", str, "name", choices=BY),
    columns=COLUMNS,
    most_bytes=16 * MB,
    slow=True,
)
def flat_profile(context: TraceContext, start_ns: int, end_ns: int, by: str = "name") -> pa.Table:
    """What ran in a time range, by name or another column: how often, how long by itself, how long each lasted.

    by: `name`, `group`, `role`, `file` of the region; `caller`, the region around it; `module`, the innermost
    `nn.Module` around it; `thread` (or stream), `process`, `rank`; `step`, in which it begins; `phase`, the part of the
    step trace in which it begins (before the forward pass, forward and backward, after the backward pass). Those with
    most exclusive time in [start_ns, end_ns) come first; there are at most `MOST_ROWS`. Durations are whole ones,
    also of executions that end after the time range. Times of folded steps of which it is not known what they called
    are rows without executions. Metadata: `rows` of the whole table, and `about`. Where more than two million spans
    lie in the time range, names have no durations, and other rows are refused.
    """
    read = sum(expected_spans(context, at, start_ns, end_ns) for at in running_locations(context)) <= _MOST_READ
    if by != "name" and not read:
        raise InconclusiveError(
            f"more than {_MOST_READ} spans are in this stretch of time, too many to sort by {by}",
            do="Choose a shorter stretch.",
        )
    own, executions, durations = _spans(context, by, start_ns, end_ns) if read else (Counter(), Counter(), {})
    about = "spans in detail: folded steps have none" if context.trace.folded else "exact"
    rows: list[_Row] = []
    if by == "name":
        sums = summed(context, start_ns, end_ns)
        own, executions = _by_name(context, sums.own.astype(np.int64), sums.count)
        rows = [(f"folded steps: {_TITLES.get(name, name)}", "other", None, ns) for name, ns in sums.folded.items()]
        about = _about(sums.folded_steps, sums.counted_steps)
    rows += [(*key, count, own[key]) for key, count in executions.items()]
    rows.sort(key=lambda row: (-row[3], row[0]))
    whole = max(1, sum(row[3] for row in rows))

    def cells(row: _Row) -> tuple[object, ...]:
        lasted = durations.get(row[:2])
        return (*row, row[3] / whole, row[3] / row[2] if row[2] else None, *(lasted.cells if lasted else _NOT_READ))

    table = make_table(COLUMNS, [cells(row) for row in rows[:MOST_ROWS]], name="flat_profile").to_arrow()
    metadata = {"rows": str(len(rows)), "about": about}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})


def _by_name(context: TraceContext, own_ns: Ints, count: Ints) -> tuple[Counter[_Key], Counter[_Key]]:
    """Return exclusive time and executions by name and group, from those by region."""
    own, executions = Counter[_Key](), Counter[_Key]()
    for region in np.flatnonzero((count > 0) | (own_ns > 0)).tolist():
        key = context.names.names[region], context.names.groups[region]
        executions[key] += int(count[region])
        own[key] += int(own_ns[region])
    return own, executions


def _spans(
    context: TraceContext, by: str, start_ns: int, end_ns: int
) -> tuple[Counter[_Key], Counter[_Key], dict[_Key, _Durations]]:
    """Return what `flat_profile` has in its rows, from the spans in a time range."""
    number_of, key_of = _numbering(context, by)
    own, executions, durations = Counter[_Key](), Counter[_Key](), dict[_Key, _Durations]()
    for location in running_locations(context):
        spans = spans_in(context, location, start_ns, end_ns)
        if not len(spans["row"]):
            continue
        numbers, at = np.unique(number_of(location, spans), return_inverse=True)
        own_ns = np.bincount(at, weights=clipped_self_ns(spans, start_ns, end_ns)).astype(np.int64)
        begins = spans["start_ns"] >= start_ns
        count = np.bincount(at[begins], minlength=len(numbers))
        total = np.bincount(at[begins], weights=spans["duration_ns"][begins], minlength=len(numbers))
        shortest, longest = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), dtype=np.int64)
        np.minimum.at(shortest, at[begins], spans["duration_ns"][begins])
        np.maximum.at(longest, at[begins], spans["duration_ns"][begins])
        for k, number in enumerate(numbers.tolist()):
            key = key_of(number)
            own[key] += int(own_ns[k])
            executions[key] += int(count[k])
            if count[k]:
                new = _Durations(int(count[k]), int(total[k]), int(shortest[k]), int(longest[k]))
                durations[key] = _joined(durations[key], new) if key in durations else new
    return own, executions, durations


def _joined(a: _Durations, b: _Durations) -> _Durations:
    shortest, longest = min(a.shortest_ns, b.shortest_ns), max(a.longest_ns, b.longest_ns)
    return _Durations(a.executions + b.executions, a.total_ns + b.total_ns, shortest, longest)


def _numbering(context: TraceContext, by: str) -> tuple[Callable[[int, SpanArrays], Ints], Callable[[int], _Key]]:
    """Return what gives the spans of a location a number each, and what gives a number its name and group."""
    regions, names = region_rows(context.trace), context.names.names
    if by in ("name", "group", "role", "file"):
        texts: list[str] = [str(getattr(each, by) or "unknown") for each in regions]
        groups = context.names.groups if by in ("name", "group") else [""] * len(texts)
        return lambda _, spans: spans["region"].astype(np.int64), lambda region: (texts[region], groups[region])
    if by == "caller":
        return lambda _, spans: _caller(spans), lambda region: (names[region] if region >= 0 else "nothing", "")
    if by == "module":
        modules = [name.removeprefix(MODULE) for name in names] + ["outside of modules"]
        is_module = np.array([name.startswith(MODULE) for name in names], dtype=bool)
        return lambda _, spans: _module(spans, is_module), lambda region: (modules[region], "")
    if by == "step":
        steps = context.steps
        outside = "outside of steps"
        return lambda _, spans: steps.numbers_at(spans["start_ns"]), lambda step: (
            f"step {step}" if step >= 0 else outside,
            "",
        )
    if by == "phase":
        return partial(_phase, context), lambda phase: (PHASES[phase], "")
    places = [_place(context, by, location) for location in range(len(context.span_counts))]
    return lambda location, spans: np.full(len(spans["row"]), location), lambda location: (places[location], "")


def _phase(context: TraceContext, location: int, spans: SpanArrays) -> Ints:
    """Return the number of the phase in `PHASES` that each span of a location begins in, by the steps of its process.

    A process without steps of its own (a worker of the loader) lives in those of the process that has most.
    """
    found = context.step_phases
    if not any((each.backward_end_ns > each.forward_ns).any() for each in found):
        raise InconclusiveError(
            "no step of this trace has a forward and a backward pass that its names show",
            do="strobe step-trace divides steps of PyTorch.",
        )
    process = location_rows(context.trace)[location].process
    own = (each for each in found if each.steps.process == process)
    phases = next(own, max(found, key=lambda each: len(each.steps)))
    start_ns, steps = spans["start_ns"], phases.steps
    at = np.searchsorted(steps.start_ns, start_ns, side="right") - 1
    inside = (at >= 0) & (start_ns < steps.end_ns[at])
    passes = (start_ns >= phases.forward_ns[at]).astype(np.int64) + (start_ns >= phases.backward_end_ns[at])
    return np.where(inside, passes, len(PHASES) - 1)


def _place(context: TraceContext, by: str, location: int) -> str:
    if by == "thread":
        return thread_title(context, location)
    process = process_rows(context.trace)[location_rows(context.trace)[location].process]
    return process_title(process) if by == "process" or process.rank is not None else "without a rank"


def _parents(spans: SpanArrays) -> tuple[Ints, Ints]:
    """Return the places of spans with a parent that is there, and the places of these parents."""
    (child,) = np.nonzero(np.isin(spans["parent"], spans["row"]))
    return child, np.searchsorted(spans["row"], spans["parent"][child])


def _caller(spans: SpanArrays) -> Ints:
    """Return the region around each span; -1 for outermost ones."""
    child, parent = _parents(spans)
    found = np.full(len(spans["row"]), -1, dtype=np.int64)
    found[child] = spans["region"][parent]
    return found


def _module(spans: SpanArrays, is_module: Bools) -> Ints:
    """Return the region of the innermost module around each span, itself included; -1 where there is none."""
    found = np.where(is_module[spans["region"]], spans["region"].astype(np.int64), -1)
    child, parent = _parents(spans)
    depth = spans["depth"][child]
    # From the outermost inwards: what a parent is in is known before its children ask.
    for level in np.unique(depth).tolist():
        own, around = child[depth == level], parent[depth == level]
        found[own] = np.where(found[own] < 0, found[around], found[own])
    return found


def _about(folded_steps: int, counted_steps: int) -> str:
    if folded_steps:
        return f"from spans; of {folded_steps} folded steps only the time is known"
    return f"exact, with the statistics of {counted_steps} folded steps" if counted_steps else "exact"
