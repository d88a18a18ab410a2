"""The page Services: figures of `strobe requests`, how latencies are spread, and what slow requests wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import TypedDict, TypeVar

import numpy as np

from strobe.analyses.program.requests import ANALYSIS
from strobe.answers.program.requests import (
    cause_rows,
    percentiles,
    request_rows,
    requests_of_route,
    route_rows,
    verdict,
)
from strobe.server.routing.endpoints import MB, parameter, route
from strobe.server.time_range.region_durations import histogram
from strobe.server.trace_context import TraceContext
from strobe.sums.requests import requests_of, slow_requests
from strobe.tables.column_arrays import Ints
from strobe.tables.table import make_table
from strobe.trace.trace import Trace

_MOST_ROUTES, _MOST_SLOWEST, _MOST_PARTS = 200, 30, 8
_MOST_NAME = 8192
_MOMENTS, _LENGTHS = 96, 20  # columns and rows of the picture of latencies over time


@dataclass(frozen=True)
class RouteFigures:
    """A route of a process, as `strobe requests` has it."""

    rank: int | None
    process: int
    route: str
    requests: int
    rate: float | None
    failed: int
    median_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    share: float | None
    cumulative_share: float | None


@dataclass(frozen=True)
class SpentTime:
    """What slow requests spend time on, as `strobe requests --by cause` has it."""

    kind: str
    function: str
    cause: str
    slow_requests: int
    total_ns: int
    times: float
    share: float


@dataclass(frozen=True)
class SlowRequest:
    """A request, as `strobe requests --by request` has it."""

    rank: int | None
    process: int
    request: int
    route: str
    start_ns: int
    location: int
    status: int | None
    latency_ns: int
    kind: str
    function: str
    cause: str
    total_ns: int


Row = TypeVar("Row", RouteFigures, SpentTime, SlowRequest)


class SlowOfRoute(TypedDict):
    """What the slow requests of a route spend their time on, most first; `rest_ns` is that of all shorter parts."""

    route: str
    requests: int
    least_ns: int
    total_ns: int
    parts: list[SpentTime]
    rest_ns: int


class LatencyOverTime(TypedDict):
    """How many requests arrived when, with what latency: row by row, the longest latencies first.

    `begin_ns` are edges of columns, `edges_ns` those of rows, from the top.
    """

    begin_ns: list[int]
    edges_ns: list[float]
    counts: list[int]


class ServiceRequests(TypedDict):
    """The requests of a service, or of one of its routes: see `service_requests`."""

    note: str
    requests: int
    failed: int
    percentiles: dict[str, int]
    routes: list[RouteFigures]
    edges_ns: list[float]
    counts: list[int]
    over_time: LatencyOverTime
    slow: list[SlowOfRoute]
    slowest: list[SlowRequest]


@route(
    "requests",
    parameter("route", "only requests of this route; default: of all", str, "", most=_MOST_NAME, argument="chosen"),
    most_bytes=4 * MB,
    slow=True,
)
def service_requests(context: TraceContext, chosen: str) -> ServiceRequests:
    """The requests of a service: figures by route, latencies, and what the slow requests of each route wait for.

    `routes` are always those of all requests, the others only of the chosen route. edges_ns, counts: a histogram of the
    latencies with bins of equal width in log time. `slow`: of all requests together, under an empty name, then of each
    route. `slowest`: the slowest requests.
    """
    trace = context.read
    every, own = requests_of(trace), requests_of_route(trace, chosen)
    latencies = np.array([each.latency_ns for each in own], dtype=np.int64)
    edges, counts = histogram(latencies)
    routes = _read(RouteFigures, "route", islice(route_rows(trace, every), _MOST_ROUTES))
    names = [chosen] if chosen else ["", *dict.fromkeys(each.route for each in routes)]
    return {
        "note": verdict(trace, own, slow_requests(own)) if own else trace.missing(ANALYSIS.needs),
        "requests": len(own),
        "failed": sum(each.failed for each in own),
        "percentiles": percentiles(own) if own else {},
        "routes": routes,
        "edges_ns": edges.tolist(),
        "counts": counts.tolist(),
        "over_time": _over_time(np.array([each.start_ns for each in own], dtype=np.int64), latencies),
        "slow": [each for name in names if (each := _slow(trace, name))],
        "slowest": _read(SlowRequest, "request", islice(request_rows(trace, own), _MOST_SLOWEST)),
    }


def _read(kind: type[Row], by: str, rows: Iterable[Mapping[str, object]]) -> list[Row]:
    """Return rows of `strobe requests` as objects, which have some of its columns."""
    table = make_table(ANALYSIS.columns_with(by=by), list(rows)).to_arrow()
    return [kind(**row) for row in table.select([each.name for each in fields(kind)]).to_pylist()]


def _slow(trace: Trace, name: str) -> SlowOfRoute | None:
    """Return what the slow requests of a route spend their time on; None where none is slower than the others."""
    slow = slow_requests(requests_of_route(trace, name))
    if not slow:
        return None
    rows = cause_rows(trace, slow)
    total_ns = sum(each.latency_ns for each in slow)
    parts = _read(SpentTime, "cause", rows[:_MOST_PARTS])
    return {
        "route": name,
        "requests": len(slow),
        "least_ns": min(each.latency_ns for each in slow),
        "total_ns": total_ns,
        "parts": parts,
        "rest_ns": total_ns - sum(each.total_ns for each in parts),
    }


def _over_time(start_ns: Ints, latency_ns: Ints) -> LatencyOverTime:
    if not len(start_ns):
        return {"begin_ns": [], "edges_ns": [], "counts": []}
    first, last = int(start_ns.min()), int(start_ns.max())
    begin = np.linspace(first, last + 1, _MOMENTS + 1)
    low, high = max(1, int(latency_ns.min())), max(2, int(latency_ns.max()))
    edges = np.geomspace(low, high * 1.001, _LENGTHS + 1)
    counts, _, _ = np.histogram2d(np.maximum(latency_ns, low), start_ns, (edges, begin))
    return {
        "begin_ns": begin.astype(np.int64).tolist(),
        "edges_ns": edges[::-1].tolist(),
        "counts": counts[::-1].astype(np.int64).ravel().tolist(),
    }
