"""Every question of the page and the function that answers it: `api/NAME?parameters`. Parameters are checked here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from strobe.errors import UsageError
from strobe.server import (
    analysed,
    behind,
    call_tree,
    critical,
    detail,
    iterations,
    metrics,
    search,
    tables,
    window,
)
from strobe.server.facts import Chosen, Facts
from strobe.server.steps import KINDS
from strobe.server.tables import Body, arrow_body
from strobe.server.tiles import TILE_CELLS

Parameters = Mapping[str, str]
Answer = Callable[[Facts, Parameters], Body]

_MOST_LOCATIONS = 256
_MOST_HITS = 500
_MOST_BINS = 4096
_MOST_STEPS = 4000
_MOST_NAMES = 14


def _whole(parameters: Parameters, name: str, most: int = 2**53) -> int:
    text = parameters.get(name, "")
    if not text.isdecimal() or int(text) > most:
        raise UsageError(f"'{name}={text}' is no number from 0 to {most}")
    return int(text)


def _maybe(parameters: Parameters, name: str) -> int | None:
    return _whole(parameters, name) if name in parameters else None


def _location(facts: Facts, parameters: Parameters, name: str = "location") -> int:
    return _whole(parameters, name, len(facts.span_counts) - 1)


def _chosen(facts: Facts, parameters: Parameters) -> Chosen:
    return facts.chosen(parameters.get("level", ""))


def _part(facts: Facts, parameters: Parameters) -> call_tree.Part:
    """Return the part of the run that step, class, level, start_ns and end_ns, locations, and processes say."""
    window = None
    if "start_ns" in parameters or "end_ns" in parameters:
        window = _whole(parameters, "start_ns"), _whole(parameters, "end_ns")
        if window[1] <= window[0]:
            raise UsageError("the stretch of time ends before it begins")
    return call_tree.part_of(
        facts,
        step=parameters.get("step", "all"),
        step_class=parameters.get("class"),
        window=window,
        locations=_some(parameters, "locations", len(facts.span_counts)),
        processes=_some(parameters, "processes", len(facts.trace.processes)),
        level=parameters.get("level", ""),
    )


def _some(parameters: Parameters, name: str, count: int) -> frozenset[int]:
    texts = parameters[name].split(",") if name in parameters else []
    if len(texts) > _MOST_LOCATIONS:
        raise UsageError(f"{len(texts)} {name} at once", do=f"ask for at most {_MOST_LOCATIONS}")
    return frozenset(_whole({name: text}, name, count - 1) for text in texts)


def _json(value: Any) -> Body:
    return Body(json.dumps(value, allow_nan=False).encode(), "application/json")


def meta(facts: Facts, _: Parameters) -> Body:
    """What the trace is: its name, its command, its bounds in ns since its zero, and the size of tiles."""
    info, (start_ns, end_ns) = facts.trace.info, facts.bounds
    return _json(
        {
            "name": facts.path.name,
            "program": info.program,
            "command": list(info.command),
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


def cells(facts: Facts, parameters: Parameters) -> Body:
    """One tile of the innermost region, for `locations=0,3,4`."""
    texts = parameters.get("locations", "").split(",")
    if len(texts) > _MOST_LOCATIONS:
        raise UsageError(f"{len(texts)} locations at once", do=f"ask for at most {_MOST_LOCATIONS}")
    locations = [_location(facts, {"locations": text}, "locations") for text in texts]
    return tables.cells_body(facts, locations, _whole(parameters, "level"), _whole(parameters, "tile"))


def stack(facts: Facts, parameters: Parameters) -> Body:
    """One tile of one location with its nesting."""
    level, tile = _whole(parameters, "level"), _whole(parameters, "tile")
    return tables.stack_body(facts, _location(facts, parameters), level, tile)


def span(facts: Facts, parameters: Parameters) -> Body:
    """The span that fills most of a window of a location, of one depth or region where given; or null."""
    start_ns, end_ns = _whole(parameters, "start_ns"), _whole(parameters, "end_ns")
    depth, region = _maybe(parameters, "depth"), _maybe(parameters, "region")
    location, steps = _location(facts, parameters), _chosen(facts, parameters).steps
    return _json(detail.find_span(facts, location, start_ns, end_ns, depth=depth, region=region, steps=steps))


def neighbour(facts: Facts, parameters: Parameters) -> Body:
    """The span beside, around, or inside another one: for those who walk by keys."""
    way = parameters.get("way", "")
    if way not in detail.WAYS:
        raise UsageError(f"'way={way}' is not one of {', '.join(detail.WAYS)}")
    start_ns, depth = _whole(parameters, "start_ns"), _whole(parameters, "depth")
    location, steps = _location(facts, parameters), _chosen(facts, parameters).steps
    return _json(detail.neighbour(facts, location, start_ns, depth, way, steps))


def series(facts: Facts, _: Parameters) -> Body:
    """What was measured over time."""
    return arrow_body(metrics.series_table(facts.series))


def readings(facts: Facts, parameters: Parameters) -> Body:
    """The readings of all series in a window."""
    start_ns, end_ns = _whole(parameters, "start_ns"), _whole(parameters, "end_ns")
    return arrow_body(
        metrics.readings_table(facts.series, start_ns, end_ns, max(1, _whole(parameters, "width", _MOST_BINS)))
    )


def critical_path(facts: Facts, parameters: Parameters) -> Body:
    """Where the critical path of the step at `at_ns` goes through the locations in a window."""
    at_ns, start_ns, end_ns = (_whole(parameters, name) for name in ("at_ns", "start_ns", "end_ns"))
    width = max(1, _whole(parameters, "width", _MOST_BINS))
    return _json(critical.critical_path(facts, at_ns, start_ns, end_ns, width))


def step_list(facts: Facts, parameters: Parameters) -> Body:
    """All steps, or, where there are too many to draw, the most telling one of each stretch."""
    limit = _whole(parameters, "limit", _MOST_STEPS) if "limit" in parameters else _MOST_STEPS
    return arrow_body(_chosen(facts, parameters).steps.table(max(1, limit)))


def step_near(facts: Facts, parameters: Parameters) -> Body:
    """The step after, before, or at a moment, or the next outlier; null where there is none."""
    kind = parameters.get("kind", "at")
    if kind not in KINDS:
        raise UsageError(f"'kind={kind}' is not one of {', '.join(KINDS)}")
    return _json(_chosen(facts, parameters).steps.near(_whole(parameters, "time_ns"), kind))


def structure(facts: Facts, _: Parameters) -> Body:
    """The loops of the run as a tree of levels, its folded flow graph, and which level the steps are."""
    return Body(facts.structure_json.encode(), "application/json")


def flow(facts: Facts, parameters: Parameters) -> Body:
    """The flow graph of operators that no other one called, and of those inside of `open=name~name`."""
    return _json(facts.flow(frozenset(filter(None, parameters.get("open", "").split("~")))))


def iteration_stack(facts: Facts, parameters: Parameters) -> Body:
    """Steps x positions, one byte a cell: `metric=duration|gap`, `sort=time|class|duration`, at most `rows` rows."""
    metric = iterations.metric_of(parameters.get("metric", "duration"))
    rows = _whole(parameters, "rows", iterations.MOST_ROWS) if "rows" in parameters else iterations.MOST_ROWS
    chosen = _chosen(facts, parameters)
    return iterations.iterations_body(facts, chosen, metric, parameters.get("sort", "time"), max(1, rows))


def one_iteration(facts: Facts, parameters: Parameters) -> Body:
    """One step of the stack in exact numbers; null where it was not kept in detail."""
    return _json(iterations.iteration(facts, _chosen(facts, parameters).stack, _whole(parameters, "step")))


def search_spans(facts: Facts, parameters: Parameters) -> Body:
    """The longest spans that match a search, with the number of all of them."""
    return arrow_body(search.search_spans(facts, parameters.get("text", ""), _MOST_HITS))


def search_regions(facts: Facts, parameters: Parameters) -> Body:
    """The regions that match a search."""
    return arrow_body(search.search_regions(facts, parameters.get("text", ""), _MOST_HITS))


def search_density(facts: Facts, parameters: Parameters) -> Body:
    """Where in the run the hits of a search are."""
    return arrow_body(
        search.search_density(facts, parameters.get("text", ""), max(1, _whole(parameters, "bins", _MOST_BINS)))
    )


def window_statistics(facts: Facts, parameters: Parameters) -> Body:
    """Which groups and names take the time of a window, over all locations."""
    start_ns, end_ns = _whole(parameters, "start_ns"), _whole(parameters, "end_ns")
    return arrow_body(window.window_table(facts, start_ns, end_ns, _MOST_NAMES))


def tree(facts: Facts, parameters: Parameters) -> Body:
    """Who calls what, and what that costs on the host and on GPUs, in a part of the run."""
    return arrow_body(call_tree.call_tree(facts, _part(facts, parameters)))


def tree_spans(facts: Facts, parameters: Parameters) -> Body:
    """The longest spans of a node of the tree: of `call_path`, or of the `region` that it launched."""
    part, region = _part(facts, parameters), _maybe(parameters, "region")
    path = _whole(parameters, "call_path") if "call_path" in parameters else -1
    return arrow_body(call_tree.node_spans(facts, part, path, region))


def locations(facts: Facts, _: Parameters) -> Body:
    """The threads and streams."""
    return arrow_body(facts.locations)


def processes(facts: Facts, _: Parameters) -> Body:
    """The processes."""
    return arrow_body(facts.trace.processes.to_arrow())


def table(facts: Facts, parameters: Parameters) -> Body:
    """What an analysis answers, by its name; its options are parameters of theirs. `as=csv|json`: as a file."""
    return analysed.analysed(facts, parameters.get("name", ""), parameters)


def behind_row(facts: Facts, parameters: Parameters) -> Body:
    """The spans behind a row of a table, by cells of the row: the first one (after `after_ns`), then the longest."""
    cells = {name: text for name, text in parameters.items() if name != "after_ns"}
    after_ns = _whole(parameters, "after_ns") if "after_ns" in parameters else -1
    return arrow_body(behind.behind(facts, cells, _MOST_HITS, after_ns))


def summary(facts: Facts, parameters: Parameters) -> Body:
    """The Overview: verdict, one step split into its parts, findings, quality; of the steps of a level where asked."""
    text = _chosen(facts, parameters).summary_json if parameters.get("level") else facts.summary_json
    return Body(text.encode(), "application/json")


ROUTES: dict[str, Answer] = {
    "meta": meta,
    "summary": summary,
    "processes": processes,
    "locations": locations,
    "cells": cells,
    "stack": stack,
    "span": span,
    "neighbour": neighbour,
    "series": series,
    "readings": readings,
    "critical": critical_path,
    "steps": step_list,
    "step": step_near,
    "structure": structure,
    "flow": flow,
    "iterations": iteration_stack,
    "iteration": one_iteration,
    "window": window_statistics,
    "tree": tree,
    "tree/spans": tree_spans,
    "search/spans": search_spans,
    "search/regions": search_regions,
    "search/density": search_density,
    "table": table,
    "behind": behind_row,
}
