"""Every question of the page: `api/NAME?parameters`.

A new one is a function described by `@route`, in the module that answers it: requests are checked, and answers
bounded, by that description (`endpoints.py`). Here are the questions that need no module of their own.
"""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa

from strobe.model.schema import LOCATIONS as LOCATION_COLUMNS
from strobe.model.schema import PROCESSES
from strobe.present.summary import Summary
from strobe.ranks.flight_recorder.entries import has_dumps

# Modules are imported for their routes.
from strobe.server.pictures import gpu_rows, iteration_cells, location_cells, row_rasters  # noqa: F401
from strobe.server.pictures.cell_tiles import TILE_CELLS
from strobe.server.routing import analysis_routes
from strobe.server.routing.bodies import JsonText
from strobe.server.routing.endpoints import (
    LOOP,
    MB,
    MOST_LOCATIONS,
    ROUTES,
    TIME_RANGE,
    WIDTH,
    Endpoint,
    parameter,
    route,
)
from strobe.server.run import (  # noqa: F401
    call_tree,
    catalogue,
    comparison,
    critical_path_parts,
    gpu_list,
    memory_tree,
    notes,
    over_steps,
    query,
    report,
    service_requests,
)
from strobe.server.run.series import READING_COLUMNS, SERIES_COLUMNS, readings_table, series_table
from strobe.server.run.step_list import COLUMNS as STEP_COLUMNS
from strobe.server.run.step_list import KINDS, StepPlace, StepsAbout
from strobe.server.spans import idle_gaps, span_facts, span_links, span_search, spans_behind_row  # noqa: F401
from strobe.server.time_range import (  # noqa: F401
    flat_profile,
    message_lines,
    message_matrix,
    process_bars,
    range_sums,
    rank_pictures,
    region_durations,
    spans_in_range,
    wall_time,
)
from strobe.server.trace_context import OpenedFlow, TraceContext
from strobe.steps.loops.structure import StructureDict

_MOST_STEPS = 4000
_MOST_WORDS, _MOST_WORD = 100, 1000
_MOST_LOST = 4000  # more are not told apart on a screen


class LostStretch(TypedDict):
    """Spans of a location that are lost to damage: they began in these ns since the trace's zero."""

    location: int
    start_ns: int
    end_ns: int
    spans: int


class Meta(TypedDict):
    """What a trace is: its program, its bounds in ns since its zero, and the size of its tiles.

    sampled: the threads that have no spans, and are drawn from their samples.
    flight_recorder: whether it is made of dumps of PyTorch's flight recorder.
    """

    name: str
    program: str
    command: list[str]
    host: str
    python: str
    ended: str
    running: bool
    started_unix_ns: int
    start_ns: int
    end_ns: int
    span_count: int
    folded_count: int
    folded_processes: list[int]
    sampled: list[int]
    flight_recorder: bool
    size_bytes: int
    tile_cells: int
    lost: list[LostStretch]


@route("meta", most_bytes=MB)
def meta(context: TraceContext) -> Meta:
    """What the trace is: its name, its command, its bounds in ns since its zero, and the size of tiles."""
    info, (start_ns, end_ns) = context.trace.info, context.bounds
    return {
        "name": context.path.name,
        "program": info.program,
        "command": [word[:_MOST_WORD] for word in info.command[:_MOST_WORDS]],
        "host": info.host,
        "python": info.python,
        "ended": info.ended,
        "running": info.running,
        "started_unix_ns": info.started_unix_ns,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "span_count": info.span_count,
        "folded_count": info.folded_count,
        "folded_processes": sorted(context.trace.folded),
        "sampled": sorted(context.sampled.locations),
        "flight_recorder": has_dumps(context.trace),
        "size_bytes": info.size_bytes,
        "tile_cells": TILE_CELLS,
        "lost": [
            {"location": each.location, "start_ns": each.begin_ns, "end_ns": each.end_ns, "spans": each.spans}
            for each in context.trace.lost_spans[:_MOST_LOST]
        ],
    }


@route("summary", LOOP, most_bytes=4 * MB, slow=True)
def summary(context: TraceContext, level: str) -> JsonText[Summary]:
    """The Overview: verdict, one step split into its parts, findings, quality; of the steps of a level where asked."""
    return JsonText(context.chosen(level).summary_json if level else context.summary_json)


@route("processes", columns=PROCESSES, most_bytes=64 * MB)
def processes(context: TraceContext) -> pa.Table:
    """The processes."""
    return context.trace.processes.to_arrow()


@route("locations", columns=LOCATION_COLUMNS, most_bytes=64 * MB)
def locations(context: TraceContext) -> pa.Table:
    """The threads and streams."""
    return context.trace.locations.to_arrow()


@route("series", columns=SERIES_COLUMNS, most_bytes=4 * MB, slow=True)
def series(context: TraceContext) -> pa.Table:
    """What was measured over time."""
    return series_table(context.series)


@route(
    "readings",
    parameter("series", "only these series, by number", default=None, of="series", items=MOST_LOCATIONS),
    *TIME_RANGE,
    WIDTH,
    columns=READING_COLUMNS,
    most_bytes=64 * MB,
)
def readings(context: TraceContext, series: tuple[int, ...] | None, start_ns: int, end_ns: int, width: int) -> pa.Table:
    """The readings of some or all series in a window."""
    wanted = range(len(context.series)) if series is None else sorted(set(series))
    return readings_table(context.series, wanted, start_ns, end_ns, width)


@route(
    "steps",
    parameter("limit", "rows at most", default=_MOST_STEPS, least=1, most=_MOST_STEPS),
    parameter("process", "steps of this process; default: of the process with most steps", default=None, of="process"),
    LOOP,
    columns=STEP_COLUMNS,
    about=StepsAbout,
    most_bytes=4 * MB,
    slow=True,
)
def step_list(context: TraceContext, limit: int, process: int | None, level: str) -> pa.Table:
    """All steps of a process, or, where there are too many to draw, the most important one of each stretch."""
    steps = context.chosen(level).steps
    return (steps if process is None else steps.of(process)).table(limit)


@route(
    "step",
    parameter("time_ns", "a moment, ns since the trace's zero"),
    parameter("kind", "which one", str, "at", choices=KINDS),
    LOOP,
    most_bytes=MB,
    slow=True,
)
def step_near(context: TraceContext, time_ns: int, kind: str, level: str) -> StepPlace | None:
    """The step after, before, or at a moment, or the next outlier; null where there is none."""
    return context.chosen(level).steps.near(time_ns, kind)


@route("structure", most_bytes=16 * MB, slow=True)
def structure(context: TraceContext) -> JsonText[StructureDict]:
    """The loops of the run as a tree of levels, its folded flow graph, and which level the steps are."""
    return JsonText(context.structure_json)


@route(
    "flow",
    parameter("open", "operators to look into, with ~ between them", str, "", most=16_384, argument="opened"),
    most_bytes=16 * MB,
    slow=True,
)
def flow(context: TraceContext, opened: str) -> OpenedFlow:
    """The flow graph of operators that no other one called, and of those inside of `open=name~name`."""
    return context.flow(frozenset(filter(None, opened.split("~"))))


def endpoint(name: str) -> Endpoint | None:
    """Return the description of a question by its name, None where there is none; `table/NAME` is an analysis."""
    kind, _, analysis = name.partition("/")
    return analysis_routes.endpoint(analysis) if kind == "table" else ROUTES.get(name)


def endpoints() -> list[Endpoint]:
    """Return all questions that can be asked, those to analyses last. Loads every analysis."""
    own = [ROUTES[name] for name in sorted(ROUTES)]
    return [*own, *filter(None, map(analysis_routes.endpoint, analysis_routes.names()))]
