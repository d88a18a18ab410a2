"""Tools about spans: those of a part of the run or of a name, and one span with what is around it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from strobe.agents.handles import FORMS, place_of, span_handle, span_of, step_handle
from strobe.agents.runs import Runs
from strobe.agents.texts import Line, answer
from strobe.agents.tools import SKIP, TOP, TRACE, tool
from strobe.model.schema import SPAN_TABLES
from strobe.server.routing.endpoints import parameter
from strobe.server.spans.span_facts import describe
from strobe.server.spans.span_links import links
from strobe.server.spans.span_search import TEXT, hits, parse_query
from strobe.server.spans.span_tables import joined_spans, located_spans, longest_rows
from strobe.server.trace_context import TraceContext
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.spans import SpanArrays, chosen_spans

_MOST_INSIDE = 10
_COLUMNS = ("name", "start_ns", "duration_ns", "group", "depth")


@tool(
    TRACE,
    parameter("where", f"part of the run: {FORMS}", str, ""),
    TEXT,
    parameter("order", "the longest first, or by start", str, "longest", ("longest", "start")),
    TOP,
    SKIP,
)
def spans(runs: Runs, trace: str, where: str, text: str, order: str, top: int, skip: int) -> str:
    """List spans (one execution each of a function, operator, kernel, call, ...) in a part of a run, or of a name:
    handles, names, times in ns, and where they ran. The count and the sum are of all that match."""
    context = runs.open(trace)
    place = place_of(context, where)
    parts, count, total_ns, most = [], 0, 0, skip + top
    for location, arrays, matching in hits(context, parse_query(text), place.locations(context), place.time_ns):
        count += len(matching)
        total_ns += int(arrays["duration_ns"][matching].sum())
        first = (
            matching[: skip + top] if order == "start" else longest_rows(arrays["duration_ns"], matching, skip + top)
        )
        parts.append(located_spans(context, location, chosen_spans(arrays, first)))
    by = ("start_ns", "ascending") if order == "start" else ("duration_ns", "descending")
    found = joined_spans(parts).sort_by([by]).slice(0, most)
    lines = [
        (
            span_handle(row["location"], row["row"]),
            *(str(row[name]) for name in _COLUMNS),
            _whose(context, row["location"]),
        )
        for row in found.to_pylist()
    ]
    head = [
        f"{context.name}: {count} spans, {total_ns} ns together" + (f", that overlap {where}" if where else ""),
        _folded(context),
        "\t".join(("span", *_COLUMNS, "ran on")),
    ]
    return answer(head, lines, skip=skip, count=str(count) if count > len(lines) else "")


def _folded(context: TraceContext) -> str:
    count = context.trace.folded_count
    return (
        f"{count} executions are in statistics only: the analysis profile and the table totals have them"
        if count
        else ""
    )


def _whose(context: TraceContext, location: int) -> str:
    where = location_rows(context.trace)[location]
    rank = process_rows(context.trace)[where.process].rank
    return f"thread:{location} ({where.name}), process:{where.process}" + ("" if rank is None else f" rank:{rank}")


@tool(TRACE, parameter("span", "its handle, span:2.1207", str), SKIP)
def span(runs: Runs, trace: str, span: str, skip: int) -> str:
    """One span: its times, what is around it and inside of it, how it compares with others of its name, its attributes
    (grid, bytes, shapes, ...), and its links: what launched it, what it launched, sent to or met."""
    context = runs.open(trace)
    location, one = span_of(context, span)
    return answer([context.name], list(_span(context, location, one)), skip=skip)


def _span(context: TraceContext, location: int, one: SpanArrays) -> Iterator[Line]:
    facts = describe(context, location, one, context.steps)
    start_ns, depth, row = facts["start_ns"], facts["depth"], facts["row"]
    yield (f"{span_handle(location, row)} {facts['name']}",)
    yield (f"start_ns={start_ns} duration_ns={facts['duration_ns']} self_ns={facts['self_ns']} group={facts['group']}",)
    yield (f"ran on {_whose(context, location)}" + ("" if facts["complete"] else "; it was open when recording ended"),)
    if facts["file"]:
        yield (f"defined at {facts['file']}:{facts['line']}",)
    if step := facts["step"]:
        yield (f"in {step_handle(context, step['process'], step['step'])}, class {step['class']}",)
    if folded := facts["folded"]:
        yield (f"inside, {folded['steps']} steps of {folded['time_ns']} ns are in statistics only",)
    if others := facts["sisters"]:
        yield (
            f"of its name on this thread: {others['count']} spans, {others['total_ns']:.10g} ns together, median "
            f"{others['median_ns']:.10g} ns, from {others['shortest_ns']:.10g} to {others['longest_ns']:.10g} ns; "
            f"{others['shorter']} are shorter",
        )
    for name in SPAN_TABLES:
        for batch in context.trace.side_batches(name, location):
            for found in batch.filter(pc.equal(batch.column("row"), row)).to_pylist():
                known = (f"{key}={value}" for key, value in found.items() if value not in (None, ""))
                own = [text for text in known if not text.startswith(("row=", "location="))]
                yield (f"{name}: {' '.join(own)}",)
    yield from _around(context, location, start_ns, depth, row)
    found = links(context, location, start_ns, depth)
    for link in found["links"]:
        end = _handle_at(context, link["location"], link["start_ns"], link["depth"])
        inside = ", from inside of it" if link["inside"] else ""
        times = f"start_ns={link['start_ns']} duration_ns={link['duration_ns']}"
        yield (f"link {link['way']} ({link['kind']}{inside}): {end} {link['name']} {times}",)
    if found["count"] > len(found["links"]):
        yield (f"{found['count'] - len(found['links'])} more links: the table links of the tool sql",)


def _around(context: TraceContext, location: int, start_ns: int, depth: int, row: int) -> Iterator[Line]:
    """What is around a span, the innermost first, and the longest of what is directly inside."""
    near = context.trace.span_arrays(location, start_ns, start_ns + 1)
    outer = np.flatnonzero((near["depth"] < depth) & (near["row"] < row))[::-1]
    for at in outer.tolist():
        name = context.names.names[int(near["region"][at])]
        times = f"start_ns={near['start_ns'][at]} duration_ns={near['duration_ns'][at]}"
        yield (f"around it: {span_handle(location, int(near['row'][at]))} {name} {times}",)
    arrays = context.whole_location(location)
    inside = np.flatnonzero(arrays["parent"] == row)
    longest = inside[np.argsort(-arrays["duration_ns"][inside], kind="stable")[:_MOST_INSIDE]]
    if len(inside):
        yield (f"directly inside: {len(inside)} spans, {int(arrays['duration_ns'][inside].sum())} ns; the longest:",)
    for at in longest.tolist():
        name, duration_ns = context.names.names[int(arrays["region"][at])], int(arrays["duration_ns"][at])
        yield (f"  {span_handle(location, int(arrays['row'][at]))} {name} duration_ns={duration_ns}",)


def _handle_at(context: TraceContext, location: int, start_ns: int, depth: int) -> str:
    spans = context.trace.span_arrays(location, start_ns, start_ns + 1)
    here = np.flatnonzero((spans["start_ns"] == start_ns) & (spans["depth"] == depth))
    return span_handle(location, int(spans["row"][here[0]])) if len(here) else f"thread:{location}"
