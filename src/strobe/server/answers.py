"""Every question of the page, with its parameters and bounds, and the function that answers it: `api/NAME?parameters`.

A new one is a function here, described by `@route`: what comes in was checked by its description, what goes out is
bounded by it (`endpoints.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from strobe.errors import UsageError
from strobe.model.kinds import GROUPS
from strobe.server import (
    analysed,
    bars,
    behind,
    call_tree,
    critical,
    detail,
    durations,
    flat_profile,
    gaps,
    gpus,
    iterations,
    links,
    metrics,
    rows,
    search,
    tables,
    visible,
    window,
)
from strobe.server.endpoints import JSON_TYPE, Endpoint, Parameter
from strobe.server.facts import Chosen, Facts
from strobe.server.steps import KINDS
from strobe.server.tables import ARROW_TYPE, CELLS_TYPE, Body, arrow_body
from strobe.server.tiles import MAX_LEVEL, TILE_CELLS
from strobe.structure.clusters import MOST_CLUSTERS
from strobe.structure.stack import METRICS

Answer = TypeVar("Answer", bound=Callable[..., Body])

MOST_LOCATIONS = 1024
_MOST_HITS = 500
_MOST_BINS = 4096
_MOST_STEPS = 4000
_MOST_NAMES = 14
_MOST_WORDS, _MOST_WORD = 100, 1000
_MB = 1 << 20

ROUTES: dict[str, Endpoint] = {}


def route(
    name: str, *parameters: Parameter, most_bytes: int, media: tuple[str, ...] = (ARROW_TYPE,), slow: bool = False
) -> Callable[[Answer], Answer]:
    """Describe the function below: it answers `api/NAME`. The question is the first line of its docstring."""

    def describe(answer: Answer) -> Answer:
        question = (answer.__doc__ or "").strip().partition("\n")[0]
        ROUTES[name] = Endpoint(name, answer, question, parameters, media, most_bytes, slow)
        return answer

    return describe


START_NS = Parameter("start_ns", "begin of a stretch of time, ns since the trace's zero")
END_NS = Parameter("end_ns", "its end, ns since the trace's zero")
LOCATION = Parameter("location", "number of a thread or stream", of="location")
LOCATIONS = Parameter("locations", "numbers of threads and streams", of="location", items=MOST_LOCATIONS)
TILE_LEVEL = Parameter("level", "a cell is 2^level ns", most=MAX_LEVEL)
TILE = Parameter("tile", f"number of the tile: {TILE_CELLS} cells, counted from the trace's zero")
MEASURE = Parameter("of", rows.MEASURES, "text", most=8192)
WIDTH = Parameter("width", "pixels that the stretch of time has on the screen", least=1, most=_MOST_BINS)
LOOP = Parameter("level", "a step is an iteration of this loop; without: of the found one", "text", "", most=4096)
TEXT = Parameter("text", "what to look for: words, -word, group:compute, dur:>1ms", "text", "", most=1000)
# The part of a run that a tree is of.
PART = (
    Parameter("step", "all, steady, 14, or 10..20", "text", "all", most=100),
    Parameter("class", "class of steps", "text", None, most=1000, argument="step_class"),
    Parameter("start_ns", START_NS.help + "; with end_ns, instead of steps", default=None),
    Parameter("end_ns", END_NS.help, default=None),
    Parameter("locations", "only these threads and streams", default=None, of="location", items=MOST_LOCATIONS),
    Parameter("processes", "only these processes", default=None, of="process", items=MOST_LOCATIONS),
    LOOP,
)


@dataclass(frozen=True)
class _PartValues:
    """What PART says, as it came."""

    step: str
    step_class: str | None
    start_ns: int | None
    end_ns: int | None
    locations: tuple[int, ...] | None
    processes: tuple[int, ...] | None
    level: str

    def of(self, facts: Facts) -> call_tree.Part:
        """Return the part of the run."""
        stretch = None
        if self.start_ns is not None or self.end_ns is not None:
            if self.start_ns is None or self.end_ns is None:
                raise UsageError("a stretch of time has a start_ns and an end_ns")
            stretch = _stretch(self.start_ns, self.end_ns)
        return call_tree.part_of(
            facts,
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


def _chosen(facts: Facts, level: str) -> Chosen:
    return facts.chosen(level)


def _json(value: Any) -> Body:
    return Body(json.dumps(value, allow_nan=False).encode(), JSON_TYPE)


@route("meta", most_bytes=_MB, media=(JSON_TYPE,))
def meta(facts: Facts) -> Body:
    """What the trace is: its name, its command, its bounds in ns since its zero, and the size of tiles."""
    info, (start_ns, end_ns) = facts.trace.info, facts.bounds
    return _json(
        {
            "name": facts.path.name,
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
            "folded_processes": sorted(facts.trace.folded),
            "size_bytes": info.size_bytes,
            "tile_cells": TILE_CELLS,
        }
    )


@route("traces", most_bytes=_MB, media=(JSON_TYPE,))
def traces(facts: Facts) -> Body:
    """The traces that this server shows, by the names in their addresses, and which of them this one is."""
    return _json({"here": facts.name, "names": facts.siblings})


@route("summary", LOOP, most_bytes=4 * _MB, media=(JSON_TYPE,), slow=True)
def summary(facts: Facts, level: str) -> Body:
    """The Overview: verdict, one step split into its parts, findings, quality; of the steps of a level where asked."""
    text = _chosen(facts, level).summary_json if level else facts.summary_json
    return Body(text.encode(), JSON_TYPE)


@route("processes", most_bytes=64 * _MB)
def processes(facts: Facts) -> Body:
    """The processes."""
    return arrow_body(facts.trace.processes.to_arrow())


@route("locations", most_bytes=64 * _MB)
def locations(facts: Facts) -> Body:
    """The threads and streams."""
    return arrow_body(facts.locations)


@route("cells", LOCATIONS, TILE_LEVEL, TILE, most_bytes=tables.cells_bytes(MOST_LOCATIONS), media=(CELLS_TYPE,))
def cells(facts: Facts, locations: tuple[int, ...], level: int, tile: int) -> Body:
    """One tile of the innermost region, for `locations=0,3,4`."""
    return tables.cells_body(facts, list(locations), level, tile)


@route("rows/places", most_bytes=64 * _MB, media=(JSON_TYPE,))
def row_places(facts: Facts) -> Body:
    """What has the same part in every process (main threads, `stream 7`, ...), with its locations in order of rank."""
    return _json(rows.places(facts))


@route(
    "rows/cells",
    Parameter("place", "number of the place, of rows/places", of="place"),
    Parameter("row_level", "a row stands for 8^row_level locations of the place", most=rows.MOST_LEVEL),
    Parameter("first", "number of the first row"),
    Parameter("count", "rows", least=1, most=rows.MOST_ROWS),
    TILE_LEVEL,
    TILE,
    most_bytes=rows.raster_bytes(rows.MOST_ROWS, len(GROUPS)),
    media=(CELLS_TYPE,),
)
def row_cells(facts: Facts, place: int, row_level: int, first: int, count: int, level: int, tile: int) -> Body:
    """One tile of rows that stand for many ranks each: shares of groups, and what is rare but important."""
    return rows.row_cells(facts, place, row_level, first, count, level, tile)


@route(
    "rows/shares",
    LOCATIONS,
    TILE_LEVEL,
    TILE,
    most_bytes=rows.raster_bytes(1, len(GROUPS)),
    media=(CELLS_TYPE,),
)
def row_shares(facts: Facts, locations: tuple[int, ...], level: int, tile: int) -> Body:
    """One tile of the mean shares of groups over some threads and streams."""
    return rows.mean_shares(facts, locations, level, tile)


@route(
    "rows/heat",
    LOCATIONS,
    MEASURE,
    TILE_LEVEL,
    TILE,
    most_bytes=rows.raster_bytes(MOST_LOCATIONS, 1),
    media=(CELLS_TYPE,),
)
def row_heat(facts: Facts, locations: tuple[int, ...], of: str, level: int, tile: int) -> Body:
    """One tile of a number for each cell: a metric, or the share of a group or of a region where that runs most."""
    return rows.heat(facts, locations, of, level, tile)


@route("rows/values", MEASURE, START_NS, END_NS, most_bytes=64 * _MB, slow=True)
def row_values(facts: Facts, of: str, start_ns: int, end_ns: int) -> Body:
    """How much of something each thread and stream has in a stretch of time: exclusive ns, or a metric's mean."""
    return arrow_body(rows.values(facts, of, *_stretch(start_ns, end_ns)))


@route("stack", LOCATION, TILE_LEVEL, TILE, most_bytes=8 * _MB, media=(ARROW_TYPE, CELLS_TYPE))
def stack(facts: Facts, location: int, level: int, tile: int) -> Body:
    """One tile of one location with its nesting."""
    return tables.stack_body(facts, location, level, tile)


@route(
    "span",
    LOCATION,
    START_NS,
    END_NS,
    Parameter("depth", "only at this depth, 0 being the outermost", default=None),
    Parameter("region", "only of this region", default=None),
    LOOP,
    most_bytes=4 * _MB,
    media=(JSON_TYPE,),
    slow=True,
)
def span(
    facts: Facts, location: int, start_ns: int, end_ns: int, depth: int | None, region: int | None, level: str
) -> Body:
    """The span that fills most of a window of a location, of one depth or region where given; or null."""
    steps = _chosen(facts, level).steps
    start_ns, end_ns = _stretch(start_ns, end_ns)
    return _json(detail.find_span(facts, location, start_ns, end_ns, depth=depth, region=region, steps=steps))


@route(
    "neighbour",
    LOCATION,
    Parameter("start_ns", "when the span starts, ns since the trace's zero"),
    Parameter("depth", "its depth, 0 being the outermost"),
    Parameter("way", "which one", "choice", choices=detail.WAYS),
    LOOP,
    most_bytes=4 * _MB,
    media=(JSON_TYPE,),
    slow=True,
)
def neighbour(facts: Facts, location: int, start_ns: int, depth: int, way: str, level: str) -> Body:
    """The span beside, around, or inside another one: for those who walk by keys."""
    return _json(detail.neighbour(facts, location, start_ns, depth, way, _chosen(facts, level).steps))


@route("gpus", most_bytes=16 * _MB, media=(JSON_TYPE,), slow=True)
def known_gpus(facts: Facts) -> Body:
    """The GPUs of the run: whose, what they can do, which readings are theirs, and what held their clocks down."""
    return _json(gpus.gpus(facts))


@route("series", most_bytes=4 * _MB, slow=True)
def series(facts: Facts) -> Body:
    """What was measured over time."""
    return arrow_body(metrics.series_table(facts.series))


@route(
    "readings",
    Parameter("series", "only these series, by number", default=None, of="series", items=MOST_LOCATIONS),
    START_NS,
    END_NS,
    WIDTH,
    most_bytes=64 * _MB,
)
def readings(facts: Facts, series: tuple[int, ...] | None, start_ns: int, end_ns: int, width: int) -> Body:
    """The readings of some or all series in a window."""
    wanted = range(len(facts.series)) if series is None else sorted(set(series))
    return arrow_body(metrics.readings_table(facts.series, wanted, *_stretch(start_ns, end_ns), width))


@route(
    "critical",
    Parameter("at_ns", "a moment of the step, ns since the trace's zero"),
    START_NS,
    END_NS,
    WIDTH,
    most_bytes=16 * _MB,
    media=(JSON_TYPE,),
    slow=True,
)
def critical_path(facts: Facts, at_ns: int, start_ns: int, end_ns: int, width: int) -> Body:
    """Where the critical path of the step at `at_ns` goes through the locations in a window."""
    return _json(critical.critical_path(facts, at_ns, *_stretch(start_ns, end_ns), width))


@route(
    "steps",
    Parameter("limit", "rows at most", default=_MOST_STEPS, least=1, most=_MOST_STEPS),
    Parameter("process", "those of this process; without: of the one that has most", default=None, of="process"),
    LOOP,
    most_bytes=4 * _MB,
    slow=True,
)
def step_list(facts: Facts, limit: int, process: int | None, level: str) -> Body:
    """All steps of a process, or, where there are too many to draw, the most telling one of each stretch."""
    steps = _chosen(facts, level).steps
    return arrow_body((steps if process is None else steps.of(process)).table(limit))


@route(
    "step",
    Parameter("time_ns", "a moment, ns since the trace's zero"),
    Parameter("kind", "which one", "choice", "at", choices=KINDS),
    LOOP,
    most_bytes=_MB,
    media=(JSON_TYPE,),
    slow=True,
)
def step_near(facts: Facts, time_ns: int, kind: str, level: str) -> Body:
    """The step after, before, or at a moment, or the next outlier; null where there is none."""
    return _json(_chosen(facts, level).steps.near(time_ns, kind))


@route("structure", most_bytes=16 * _MB, media=(JSON_TYPE,), slow=True)
def structure(facts: Facts) -> Body:
    """The loops of the run as a tree of levels, its folded flow graph, and which level the steps are."""
    return Body(facts.structure_json.encode(), JSON_TYPE)


@route(
    "flow",
    Parameter("open", "operators to look into, with ~ between them", "text", "", most=16_384, argument="opened"),
    most_bytes=16 * _MB,
    media=(JSON_TYPE,),
    slow=True,
)
def flow(facts: Facts, opened: str) -> Body:
    """The flow graph of operators that no other one called, and of those inside of `open=name~name`."""
    return _json(facts.flow(frozenset(filter(None, opened.split("~")))))


@route(
    "iterations",
    Parameter("metric", "what a cell tells", "choice", "duration", choices=METRICS),
    Parameter("sort", "order of the rows", "choice", "time", choices=iterations.SORTS),
    Parameter("rows", "rows at most", default=iterations.MOST_ROWS, least=1, most=iterations.MOST_ROWS),
    LOOP,
    most_bytes=8 * _MB,
    media=(CELLS_TYPE,),
    slow=True,
)
def iteration_stack(facts: Facts, metric: str, sort: str, rows: int, level: str) -> Body:
    """Steps x positions, one byte a cell."""
    return iterations.iterations_body(facts, _chosen(facts, level), metric, sort, rows)


@route(
    "iteration",
    Parameter("step", "number of the step"),
    LOOP,
    most_bytes=16 * _MB,
    media=(JSON_TYPE,),
    slow=True,
)
def one_iteration(facts: Facts, step: int, level: str) -> Body:
    """One step of the stack in exact numbers; null where it was not kept in detail."""
    return _json(iterations.iteration(facts, _chosen(facts, level).stack, step))


@route("window", START_NS, END_NS, most_bytes=_MB, slow=True)
def window_statistics(facts: Facts, start_ns: int, end_ns: int) -> Body:
    """Which groups and names take the time of a window, over all locations."""
    return arrow_body(window.window_table(facts, *_stretch(start_ns, end_ns), _MOST_NAMES))


@route("window/profile", START_NS, END_NS, most_bytes=16 * _MB)
def range_profile(facts: Facts, start_ns: int, end_ns: int) -> Body:
    """The flat profile of a stretch of time: what ran in it, how often, for how long by itself; over all locations."""
    return arrow_body(flat_profile.flat_profile(facts, *_stretch(start_ns, end_ns)))


@route(
    "window/bars",
    START_NS,
    END_NS,
    Parameter("by", "what bars are made of", "choice", "group", choices=bars.BY),
    Parameter("clusters", "number of clusters; 0: as many as stand out", default=0, most=MOST_CLUSTERS),
    most_bytes=8 * _MB,
    media=(JSON_TYPE,),
)
def process_bars(facts: Facts, start_ns: int, end_ns: int, by: str, clusters: int) -> Body:
    """Where the time of every process went in a stretch of time, and clusters of those that are alike."""
    return _json(bars.bars(facts, *_stretch(start_ns, end_ns), by=by, count=clusters or None))


@route(
    "window/durations",
    START_NS,
    END_NS,
    Parameter("name", "name of the region", "text", most=8192),
    Parameter("low_ns", "list those that last at least so long", default=None),
    Parameter("high_ns", "list those that last at most so long", default=None),
    most_bytes=_MB,
    media=(JSON_TYPE,),
    slow=True,
)
def region_durations(
    facts: Facts, start_ns: int, end_ns: int, name: str, low_ns: int | None, high_ns: int | None
) -> Body:
    """How long the executions of a region last that begin in a stretch of time, and which of them last how long."""
    return _json(durations.durations(facts, name, *_stretch(start_ns, end_ns), low_ns, high_ns))


@route("window/spans", LOCATIONS, START_NS, END_NS, most_bytes=64 * _MB, slow=True)
def spans_in_view(facts: Facts, locations: tuple[int, ...], start_ns: int, end_ns: int) -> Body:
    """The spans of some locations in a stretch of time, to keep."""
    return arrow_body(visible.visible_spans(facts, sorted(set(locations)), *_stretch(start_ns, end_ns)))


@route(
    "links",
    LOCATION,
    Parameter("start_ns", "when the span starts, ns since the trace's zero"),
    Parameter("depth", "spans around it"),
    most_bytes=4 * _MB,
    media=(JSON_TYPE,),
)
def span_links(facts: Facts, location: int, start_ns: int, depth: int) -> Body:
    """What a span started, what started it, who it sent to or met."""
    return _json(links.links(facts, location, start_ns, depth))


@route(
    "gap",
    LOCATION,
    Parameter("way", "which gap of the row", "choice", "at", choices=gaps.WAYS),
    Parameter("time_ns", "around when, or beside which gap; ns since the trace's zero", default=0),
    Parameter("start_ns", START_NS.help + ", for the longest", default=0),
    Parameter("end_ns", END_NS.help, default=1),
    Parameter("shortest_ns", "gaps of at least this length", default=0),
    Parameter("number", "0 is the longest, 1 the next longest", default=0, most=1000),
    most_bytes=_MB,
    media=(JSON_TYPE,),
)
def idle_gap(
    facts: Facts, location: int, way: str, time_ns: int, start_ns: int, end_ns: int, shortest_ns: int, number: int
) -> Body:
    """A gap of a row: around a moment, the next or previous one, or the longest of a stretch of time; or null."""
    return _json(gaps.gap(facts, location, way, time_ns, *_stretch(start_ns, end_ns), shortest_ns, number))


@route("tree", *PART, most_bytes=64 * _MB, slow=True)
def tree(facts: Facts, **part: Any) -> Body:
    """Who calls what, and what that costs on the host and on GPUs, in a part of the run."""
    return arrow_body(call_tree.call_tree(facts, _PartValues(**part).of(facts)))


@route(
    "tree/spans",
    Parameter("call_path", "number of the call path; without: of what nobody launched", default=-1),
    Parameter("region", "what it launched, by its region", default=None, of="region"),
    *PART,
    most_bytes=4 * _MB,
    slow=True,
)
def tree_spans(facts: Facts, call_path: int, region: int | None, **part: Any) -> Body:
    """The longest spans of a node of the tree: of `call_path`, or of the `region` that it launched."""
    return arrow_body(call_tree.node_spans(facts, _PartValues(**part).of(facts), call_path, region))


@route("search/spans", TEXT, most_bytes=8 * _MB, slow=True)
def search_spans(facts: Facts, text: str) -> Body:
    """The longest spans that match a search, with the number of all of them."""
    return arrow_body(search.search_spans(facts, text, _MOST_HITS))


@route("search/regions", TEXT, most_bytes=8 * _MB, slow=True)
def search_regions(facts: Facts, text: str) -> Body:
    """The regions that match a search."""
    return arrow_body(search.search_regions(facts, text, _MOST_HITS))


@route(
    "search/density",
    TEXT,
    Parameter("bins", "equal parts of the run", least=1, most=_MOST_BINS),
    most_bytes=_MB,
    slow=True,
)
def search_density(facts: Facts, text: str, bins: int) -> Body:
    """Where in the run the hits of a search are."""
    return arrow_body(search.search_density(facts, text, bins))


@route(
    "behind",
    *(Parameter(cell, "a cell of the row", "text", None, most=16_384) for cell in sorted(behind.CELLS)),
    Parameter("after_ns", "the first one after this moment, ns since the trace's zero", default=-1),
    most_bytes=8 * _MB,
    slow=True,
)
def behind_row(facts: Facts, after_ns: int, **cells: str | None) -> Body:
    """The spans behind a row of a table, by cells of the row: the first one (after `after_ns`), then the longest."""
    named = {name: text for name, text in cells.items() if text is not None}
    return arrow_body(behind.behind(facts, named, _MOST_HITS, after_ns))


def endpoint(name: str) -> Endpoint | None:
    """Return the description of a question by its name, None where there is none; `table/NAME` is an analysis."""
    kind, _, analysis = name.partition("/")
    return analysed.endpoint(analysis) if kind == "table" else ROUTES.get(name)


def endpoints() -> list[Endpoint]:
    """Return all questions that can be asked, those to analyses last. Loads every analysis."""
    return [*ROUTES.values(), *filter(None, map(analysed.endpoint, analysed.names()))]
