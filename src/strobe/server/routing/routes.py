"""Every question of the page, with its parameters and bounds, and the function that answers it: `api/NAME?parameters`.

A new one is a function here, described by `@route`: what comes in was checked by its description, what goes out is
bounded by it (`endpoints.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

import pyarrow as pa

from strobe.errors import UsageError
from strobe.model.kinds import GROUPS
from strobe.model.option import Option
from strobe.model.schema import LOCATIONS as LOCATION_COLUMNS
from strobe.model.schema import PROCESSES, Column
from strobe.present.summary import Summary
from strobe.server.pictures import iteration_cells, location_cells, row_rasters
from strobe.server.pictures.cell_tiles import MAX_LEVEL, TILE_CELLS
from strobe.server.pictures.iteration_cells import Iteration
from strobe.server.pictures.row_rasters import RowPlace
from strobe.server.routing import analysis_routes
from strobe.server.routing.bodies import ARROW_TYPE, CELLS_TYPE, JSON_TYPE, Body, JsonText
from strobe.server.routing.endpoints import Endpoint, parameter
from strobe.server.run import call_tree, critical_path_parts, gpu_list
from strobe.server.run import series as run_series
from strobe.server.run.critical_path_parts import CriticalPathParts
from strobe.server.run.gpu_list import GpuList
from strobe.server.run.step_list import COLUMNS as STEP_COLUMNS
from strobe.server.run.step_list import KINDS, StepPlace, StepsAbout
from strobe.server.spans import idle_gaps, span_facts, span_links, span_search, spans_behind_row
from strobe.server.spans.idle_gaps import IdleGap
from strobe.server.spans.span_facts import SpanFacts
from strobe.server.spans.span_links import Links
from strobe.server.spans.span_tables import LOCATED_COLUMNS, SPAN_COLUMNS
from strobe.server.time_range import flat_profile, process_bars, range_sums, region_durations, spans_in_range
from strobe.server.time_range.process_bars import Bars
from strobe.server.time_range.region_durations import Durations
from strobe.server.trace_context import Chosen, OpenedFlow, TraceContext
from strobe.steps.iteration_stack.stack import METRICS
from strobe.steps.loops.structure import StructureDict
from strobe.sums.clusters import MOST_CLUSTERS

Answer = TypeVar("Answer", bound=Callable[..., object])

MOST_LOCATIONS = 1024
_MOST_HITS = 500
_MOST_BINS = 4096
_MOST_STEPS = 4000
_MOST_NAMES = 14
_MOST_WORDS, _MOST_WORD = 100, 1000
_MB = 1 << 20

ROUTES: dict[str, Endpoint] = {}


def route(
    name: str,
    *parameters: Option,
    most_bytes: int,
    media: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    about: type | None = None,
    slow: bool = False,
) -> Callable[[Answer], Answer]:
    """Describe the function below: it answers `api/NAME`. The question is the first line of its docstring.

    Its answer has one of the `media` types where it returns bytes, else it is a table with these `columns`, else JSON
    of the type that the function returns. `about` is the type of the JSON that comes with a table or a picture.
    """

    def describe(answer: Answer) -> Answer:
        question = (answer.__doc__ or "").strip().partition("\n")[0]
        types = media or ((ARROW_TYPE,) if columns else (JSON_TYPE,))
        ROUTES[name] = Endpoint(name, answer, question, parameters, types, most_bytes, slow, columns, about)
        return answer

    return describe


START_NS = parameter("start_ns", "begin of a stretch of time, ns since the trace's zero")
END_NS = parameter("end_ns", "its end, ns since the trace's zero")
LOCATION = parameter("location", "number of a thread or stream", of="location")
LOCATIONS = parameter("locations", "numbers of threads and streams", of="location", items=MOST_LOCATIONS)
TILE_LEVEL = parameter("level", "a cell is 2^level ns", most=MAX_LEVEL)
TILE = parameter("tile", f"number of the tile: {TILE_CELLS} cells, counted from the trace's zero")
MEASURE = parameter("of", row_rasters.MEASURES, str, most=8192)
WIDTH = parameter("width", "pixels that the stretch of time has on the screen", least=1, most=_MOST_BINS)
LOOP = parameter("level", "a step is an iteration of this loop; without: of the found one", str, "", most=4096)
TEXT = parameter("text", "what to look for: words, -word, group:compute, dur:>1ms", str, "", most=1000)
# The part of a run that a tree is of.
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
class _PartValues:
    """The values of PART, unchecked."""

    step: str
    step_class: str | None
    start_ns: int | None
    end_ns: int | None
    locations: tuple[int, ...] | None
    processes: tuple[int, ...] | None
    level: str

    def of(self, context: TraceContext) -> call_tree.Part:
        """Return the part of the run."""
        stretch = None
        if self.start_ns is not None or self.end_ns is not None:
            if self.start_ns is None or self.end_ns is None:
                raise UsageError("a stretch of time has a start_ns and an end_ns")
            stretch = _stretch(self.start_ns, self.end_ns)
        return call_tree.part_of(
            context,
            step=self.step,
            step_class=self.step_class,
            window=stretch,
            locations=frozenset(self.locations or ()),
            processes=frozenset(self.processes or ()),
            level=self.level,
        )


def _stretch(start_ns: int, end_ns: int) -> tuple[int, int]:
    if end_ns <= start_ns:
        raise UsageError("the stretch of time ends before it begins")
    return start_ns, end_ns


def _chosen(context: TraceContext, level: str) -> Chosen:
    return context.chosen(level)


class Meta(TypedDict):
    """What a trace is: its program, its bounds in ns since its zero, and the size of its tiles."""

    name: str
    program: str
    command: list[str]
    host: str
    python: str
    ended: str
    started_unix_ns: int
    start_ns: int
    end_ns: int
    span_count: int
    folded_count: int
    folded_processes: list[int]
    size_bytes: int
    tile_cells: int


class Traces(TypedDict):
    """The traces of a server by the names in their addresses, and which of them this one is."""

    here: str
    names: list[str]


@route("meta", most_bytes=_MB)
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
        "started_unix_ns": info.started_unix_ns,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "span_count": info.span_count,
        "folded_count": info.folded_count,
        "folded_processes": sorted(context.trace.folded),
        "size_bytes": info.size_bytes,
        "tile_cells": TILE_CELLS,
    }


@route("traces", most_bytes=_MB)
def traces(context: TraceContext) -> Traces:
    """The traces that this server shows, by the names in their addresses, and which of them this one is."""
    return {"here": context.name, "names": context.siblings}


@route("summary", LOOP, most_bytes=4 * _MB, slow=True)
def summary(context: TraceContext, level: str) -> JsonText[Summary]:
    """The Overview: verdict, one step split into its parts, findings, quality; of the steps of a level where asked."""
    return JsonText(_chosen(context, level).summary_json if level else context.summary_json)


@route("processes", columns=PROCESSES, most_bytes=64 * _MB)
def processes(context: TraceContext) -> pa.Table:
    """The processes."""
    return context.trace.processes.to_arrow()


@route("locations", columns=LOCATION_COLUMNS, most_bytes=64 * _MB)
def locations(context: TraceContext) -> pa.Table:
    """The threads and streams."""
    return context.locations


@route("cells", LOCATIONS, TILE_LEVEL, TILE, most_bytes=location_cells.cells_bytes(MOST_LOCATIONS), media=(CELLS_TYPE,))
def cells(context: TraceContext, locations: tuple[int, ...], level: int, tile: int) -> Body:
    """One tile of the innermost region, for `locations=0,3,4`."""
    return location_cells.cells_body(context, list(locations), level, tile)


@route("rows/places", most_bytes=64 * _MB)
def row_places(context: TraceContext) -> list[RowPlace]:
    """What has the same part in every process (main threads, `stream 7`, ...), with its locations in order of rank."""
    return row_rasters.places(context)


@route(
    "rows/cells",
    parameter("place", "number of the place, of rows/places", of="place"),
    parameter("row_level", "a row stands for 8^row_level locations of the place", most=row_rasters.MOST_LEVEL),
    parameter("first", "number of the first row"),
    parameter("count", "rows", least=1, most=row_rasters.MOST_ROWS),
    TILE_LEVEL,
    TILE,
    most_bytes=row_rasters.raster_bytes(row_rasters.MOST_ROWS, len(GROUPS)),
    media=(CELLS_TYPE,),
)
def row_cells(context: TraceContext, place: int, row_level: int, first: int, count: int, level: int, tile: int) -> Body:
    """One tile of rows that stand for many ranks each: shares of groups, and what is rare but important."""
    return row_rasters.row_cells(context, place, row_level, first, count, level, tile)


@route(
    "rows/shares",
    LOCATIONS,
    TILE_LEVEL,
    TILE,
    most_bytes=row_rasters.raster_bytes(1, len(GROUPS)),
    media=(CELLS_TYPE,),
)
def row_shares(context: TraceContext, locations: tuple[int, ...], level: int, tile: int) -> Body:
    """One tile of the mean shares of groups over some threads and streams."""
    return row_rasters.mean_shares(context, locations, level, tile)


@route(
    "rows/heat",
    LOCATIONS,
    MEASURE,
    TILE_LEVEL,
    TILE,
    most_bytes=row_rasters.raster_bytes(MOST_LOCATIONS, 1),
    media=(CELLS_TYPE,),
)
def row_heat(context: TraceContext, locations: tuple[int, ...], of: str, level: int, tile: int) -> Body:
    """One tile of a number for each cell: a metric, or the share of a group or of a region where that runs most."""
    return row_rasters.heat(context, locations, of, level, tile)


@route("rows/values", MEASURE, START_NS, END_NS, columns=row_rasters.VALUE_COLUMNS, most_bytes=64 * _MB, slow=True)
def row_values(context: TraceContext, of: str, start_ns: int, end_ns: int) -> pa.Table:
    """How much of something each thread and stream has in a stretch of time: exclusive ns, or a metric's mean."""
    return row_rasters.values(context, of, *_stretch(start_ns, end_ns))


@route("stack", LOCATION, TILE_LEVEL, TILE, columns=SPAN_COLUMNS, most_bytes=8 * _MB, media=(ARROW_TYPE, CELLS_TYPE))
def stack(context: TraceContext, location: int, level: int, tile: int) -> Body:
    """One tile of one location with its nesting."""
    return location_cells.stack_body(context, location, level, tile)


@route(
    "span",
    LOCATION,
    START_NS,
    END_NS,
    parameter("depth", "only at this depth, 0 being the outermost", default=None),
    parameter("region", "only of this region", default=None),
    LOOP,
    most_bytes=4 * _MB,
    slow=True,
)
def span(
    context: TraceContext, location: int, start_ns: int, end_ns: int, depth: int | None, region: int | None, level: str
) -> SpanFacts | None:
    """The span that fills most of a window of a location, of one depth or region where given; or null."""
    steps = _chosen(context, level).steps
    start_ns, end_ns = _stretch(start_ns, end_ns)
    return span_facts.find_span(context, location, start_ns, end_ns, depth=depth, region=region, steps=steps)


@route(
    "neighbour",
    LOCATION,
    parameter("start_ns", "when the span starts, ns since the trace's zero"),
    parameter("depth", "its depth, 0 being the outermost"),
    parameter("way", "which one", str, choices=span_facts.WAYS),
    LOOP,
    most_bytes=4 * _MB,
    slow=True,
)
def neighbour(
    context: TraceContext, location: int, start_ns: int, depth: int, way: str, level: str
) -> SpanFacts | None:
    """The span beside, around, or inside another one: for those who walk by keys."""
    return span_facts.neighbour(context, location, start_ns, depth, way, _chosen(context, level).steps)


@route("gpus", most_bytes=16 * _MB, slow=True)
def known_gpus(context: TraceContext) -> GpuList:
    """The GPUs of the run: whose, what they can do, which readings are theirs, and what held their clocks down."""
    return gpu_list.gpus(context)


@route("series", columns=run_series.SERIES_COLUMNS, most_bytes=4 * _MB, slow=True)
def series(context: TraceContext) -> pa.Table:
    """What was measured over time."""
    return run_series.series_table(context.series)


@route(
    "readings",
    parameter("series", "only these series, by number", default=None, of="series", items=MOST_LOCATIONS),
    START_NS,
    END_NS,
    WIDTH,
    columns=run_series.READING_COLUMNS,
    most_bytes=64 * _MB,
)
def readings(context: TraceContext, series: tuple[int, ...] | None, start_ns: int, end_ns: int, width: int) -> pa.Table:
    """The readings of some or all series in a window."""
    wanted = range(len(context.series)) if series is None else sorted(set(series))
    return run_series.readings_table(context.series, wanted, *_stretch(start_ns, end_ns), width)


@route(
    "critical",
    parameter("at_ns", "a moment of the step, ns since the trace's zero"),
    START_NS,
    END_NS,
    WIDTH,
    most_bytes=16 * _MB,
    slow=True,
)
def critical_path(context: TraceContext, at_ns: int, start_ns: int, end_ns: int, width: int) -> CriticalPathParts:
    """Where the critical path of the step at `at_ns` goes through the locations in a window."""
    return critical_path_parts.critical_path(context, at_ns, *_stretch(start_ns, end_ns), width)


@route(
    "steps",
    parameter("limit", "rows at most", default=_MOST_STEPS, least=1, most=_MOST_STEPS),
    parameter("process", "those of this process; without: of the one that has most", default=None, of="process"),
    LOOP,
    columns=STEP_COLUMNS,
    about=StepsAbout,
    most_bytes=4 * _MB,
    slow=True,
)
def step_list(context: TraceContext, limit: int, process: int | None, level: str) -> pa.Table:
    """All steps of a process, or, where there are too many to draw, the most telling one of each stretch."""
    steps = _chosen(context, level).steps
    return (steps if process is None else steps.of(process)).table(limit)


@route(
    "step",
    parameter("time_ns", "a moment, ns since the trace's zero"),
    parameter("kind", "which one", str, "at", choices=KINDS),
    LOOP,
    most_bytes=_MB,
    slow=True,
)
def step_near(context: TraceContext, time_ns: int, kind: str, level: str) -> StepPlace | None:
    """The step after, before, or at a moment, or the next outlier; null where there is none."""
    return _chosen(context, level).steps.near(time_ns, kind)


@route("structure", most_bytes=16 * _MB, slow=True)
def structure(context: TraceContext) -> JsonText[StructureDict]:
    """The loops of the run as a tree of levels, its folded flow graph, and which level the steps are."""
    return JsonText(context.structure_json)


@route(
    "flow",
    parameter("open", "operators to look into, with ~ between them", str, "", most=16_384, argument="opened"),
    most_bytes=16 * _MB,
    slow=True,
)
def flow(context: TraceContext, opened: str) -> OpenedFlow:
    """The flow graph of operators that no other one called, and of those inside of `open=name~name`."""
    return context.flow(frozenset(filter(None, opened.split("~"))))


@route(
    "iterations",
    parameter("metric", "the metric of a cell", str, "duration", choices=METRICS),
    parameter("sort", "order of the rows", str, "time", choices=iteration_cells.SORTS),
    parameter("rows", "rows at most", default=iteration_cells.MOST_ROWS, least=1, most=iteration_cells.MOST_ROWS),
    LOOP,
    about=iteration_cells.StackHeader,
    most_bytes=8 * _MB,
    media=(CELLS_TYPE,),
    slow=True,
)
def iteration_stack(context: TraceContext, metric: str, sort: str, rows: int, level: str) -> Body:
    """Steps x positions, one byte a cell."""
    return iteration_cells.iterations_body(context, _chosen(context, level), metric, sort, rows)


@route(
    "iteration",
    parameter("step", "number of the step"),
    LOOP,
    most_bytes=16 * _MB,
    slow=True,
)
def one_iteration(context: TraceContext, step: int, level: str) -> Iteration | None:
    """One step of the stack in exact numbers; null where it was not kept in detail."""
    return iteration_cells.iteration(context, _chosen(context, level).stack, step)


@route("window", START_NS, END_NS, columns=range_sums.COLUMNS, most_bytes=_MB, slow=True)
def window_statistics(context: TraceContext, start_ns: int, end_ns: int) -> pa.Table:
    """Which groups and names take the time of a window, over all locations."""
    return range_sums.window_table(context, *_stretch(start_ns, end_ns), _MOST_NAMES)


@route("window/profile", START_NS, END_NS, columns=flat_profile.COLUMNS, most_bytes=16 * _MB)
def range_profile(context: TraceContext, start_ns: int, end_ns: int) -> pa.Table:
    """The flat profile of a stretch of time: what ran in it, how often, for how long by itself; over all locations."""
    return flat_profile.flat_profile(context, *_stretch(start_ns, end_ns))


@route(
    "window/bars",
    START_NS,
    END_NS,
    parameter("by", "what bars are made of", str, "group", choices=process_bars.BY),
    parameter("clusters", "number of clusters; 0: as many as stand out", default=0, most=MOST_CLUSTERS),
    most_bytes=8 * _MB,
)
def bars_of_processes(context: TraceContext, start_ns: int, end_ns: int, by: str, clusters: int) -> Bars:
    """Where the time of every process went in a stretch of time, and clusters of those that are alike."""
    return process_bars.bars(context, *_stretch(start_ns, end_ns), by=by, count=clusters or None)


@route(
    "window/durations",
    START_NS,
    END_NS,
    parameter("name", "name of the region", str, most=8192),
    parameter("low_ns", "list those that last at least so long", default=None),
    parameter("high_ns", "list those that last at most so long", default=None),
    most_bytes=_MB,
    slow=True,
)
def durations_of_region(
    context: TraceContext, start_ns: int, end_ns: int, name: str, low_ns: int | None, high_ns: int | None
) -> Durations:
    """How long the executions of a region last that begin in a stretch of time, and which of them last how long."""
    return region_durations.durations(context, name, *_stretch(start_ns, end_ns), low_ns, high_ns)


@route("window/spans", LOCATIONS, START_NS, END_NS, columns=spans_in_range.COLUMNS, most_bytes=64 * _MB, slow=True)
def spans_in_view(context: TraceContext, locations: tuple[int, ...], start_ns: int, end_ns: int) -> pa.Table:
    """The spans of some locations in a stretch of time, to keep."""
    return spans_in_range.visible_spans(context, sorted(set(locations)), *_stretch(start_ns, end_ns))


@route(
    "links",
    LOCATION,
    parameter("start_ns", "when the span starts, ns since the trace's zero"),
    parameter("depth", "spans around it"),
    most_bytes=4 * _MB,
)
def links_of_span(context: TraceContext, location: int, start_ns: int, depth: int) -> Links:
    """What a span started, what started it, who it sent to or met."""
    return span_links.links(context, location, start_ns, depth)


@route(
    "gap",
    LOCATION,
    parameter("way", "which gap of the row", str, "at", choices=idle_gaps.WAYS),
    parameter("time_ns", "around when, or beside which gap; ns since the trace's zero", default=0),
    parameter("start_ns", START_NS.help + ", for the longest", default=0),
    parameter("end_ns", END_NS.help, default=1),
    parameter("shortest_ns", "gaps of at least this length", default=0),
    parameter("number", "0 is the longest, 1 the next longest", default=0, most=1000),
    most_bytes=_MB,
)
def idle_gap(
    context: TraceContext,
    location: int,
    way: str,
    time_ns: int,
    start_ns: int,
    end_ns: int,
    shortest_ns: int,
    number: int,
) -> IdleGap | None:
    """A gap of a row: around a moment, the next or previous one, or the longest of a stretch of time; or null."""
    return idle_gaps.gap(context, location, way, time_ns, *_stretch(start_ns, end_ns), shortest_ns, number)


@route("tree", *PART, columns=call_tree.COLUMNS, about=call_tree.TreeAbout, most_bytes=64 * _MB, slow=True)
def tree(context: TraceContext, **part: Any) -> pa.Table:
    """Who calls what, and what that costs on the host and on GPUs, in a part of the run."""
    return call_tree.call_tree(context, _PartValues(**part).of(context))


@route(
    "tree/spans",
    parameter("call_path", "number of the call path; without: of what nobody launched", default=-1),
    parameter("region", "what it launched, by its region", default=None, of="region"),
    *PART,
    columns=LOCATED_COLUMNS,
    most_bytes=4 * _MB,
    slow=True,
)
def tree_spans(context: TraceContext, call_path: int, region: int | None, **part: Any) -> pa.Table:
    """The longest spans of a node of the tree: of `call_path`, or of the `region` that it launched."""
    return call_tree.node_spans(context, _PartValues(**part).of(context), call_path, region)


@route("search/spans", TEXT, columns=LOCATED_COLUMNS, most_bytes=8 * _MB, slow=True)
def search_spans(context: TraceContext, text: str) -> pa.Table:
    """The longest spans that match a search, with the number of all of them."""
    return span_search.search_spans(context, text, _MOST_HITS)


@route("search/regions", TEXT, columns=span_search.REGION_COLUMNS, most_bytes=8 * _MB, slow=True)
def search_regions(context: TraceContext, text: str) -> pa.Table:
    """The regions that match a search."""
    return span_search.search_regions(context, text, _MOST_HITS)


@route(
    "search/density",
    TEXT,
    parameter("bins", "equal parts of the run", least=1, most=_MOST_BINS),
    columns=span_search.DENSITY_COLUMNS,
    most_bytes=_MB,
    slow=True,
)
def search_density(context: TraceContext, text: str, bins: int) -> pa.Table:
    """Where in the run the hits of a search are."""
    return span_search.search_density(context, text, bins)


@route(
    "behind",
    *(parameter(cell, "a cell of the row", str, None, most=16_384) for cell in sorted(spans_behind_row.CELLS)),
    parameter("after_ns", "the first one after this moment, ns since the trace's zero", default=-1),
    columns=LOCATED_COLUMNS,
    most_bytes=8 * _MB,
    slow=True,
)
def behind_row(context: TraceContext, after_ns: int, **cells: str | None) -> pa.Table:
    """The spans behind a row of a table, by cells of the row: the first one (after `after_ns`), then the longest."""
    named = {name: text for name, text in cells.items() if text is not None}
    return spans_behind_row.behind(context, named, _MOST_HITS, after_ns)


def endpoint(name: str) -> Endpoint | None:
    """Return the description of a question by its name, None where there is none; `table/NAME` is an analysis."""
    kind, _, analysis = name.partition("/")
    return analysis_routes.endpoint(analysis) if kind == "table" else ROUTES.get(name)


def endpoints() -> list[Endpoint]:
    """Return all questions that can be asked, those to analyses last. Loads every analysis."""
    return [*ROUTES.values(), *filter(None, map(analysis_routes.endpoint, analysis_routes.names()))]
