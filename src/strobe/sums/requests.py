"""Requests of services as rows, and what the slow ones of them spend their time on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strobe.sums.request_functions import Functions
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

SLOW = 0.95  # slow requests are above this quantile
_FAILED = 500


@dataclass(frozen=True)
class Part:
    """What a request did, or waited for, of a kind, from start_ns on; `thread_id` answers it."""

    kind: str
    code: str
    cause: str
    thread_id: int
    start_ns: int
    duration_ns: int


@dataclass(frozen=True)
class Request:
    """A request; `location`: its row of the timeline; `running_ns`: None where its event loop could not be watched."""

    process: int
    location: int
    number: int
    route: str
    status: int | None
    start_ns: int
    latency_ns: int
    start_delay_ns: int
    running_ns: int | None
    collecting_ns: int
    parts: tuple[Part, ...]

    @property
    def failed(self) -> bool:
        """Whether it has no response, or one of an error of the server."""
        return self.status is None or self.status >= _FAILED


@dataclass
class Spent:
    """Time that some requests spend on one thing; `waits` counts how often."""

    kind: str
    function: str
    cause: str
    total_ns: int = 0
    waits: int = 0
    requests: set[tuple[int, int]] = field(default_factory=set)


@cached_on_trace
def requests_of(trace: Trace) -> list[Request]:
    """Return the requests of a trace, in order of arrival."""
    parts: dict[tuple[int, int], list[Part]] = defaultdict(list)
    process_of = [each.process for each in location_rows(trace)]
    rows: list[dict[str, Any]] = trace.side_table("request_parts").to_arrow().to_pylist()
    for row in rows:
        kind, code, cause = (row[name] or "" for name in ("kind", "code", "cause"))
        own = parts[process_of[row["location"]], row["request"]]
        own.append(Part(kind, code, cause, row["thread_id"], row["time_ns"], row["duration_ns"]))
    requests = list[Request]()
    rows = trace.side_table("requests").to_arrow().to_pylist()
    for row in rows:
        process, number = process_of[row["location"]], row["request"]
        requests.append(
            Request(
                process,
                row["location"],
                number,
                row["route"] or "",
                row["status"],
                row["time_ns"],
                row["latency_ns"],
                row["start_delay_ns"],
                row["running_ns"],
                row["collecting_ns"],
                tuple(sorted(parts[process, number], key=lambda part: part.start_ns)),
            )
        )
    return sorted(requests, key=lambda each: each.start_ns)


def slow_requests(requests: Sequence[Request]) -> list[Request]:
    """Return those whose latency is above the 95th percentile of all."""
    latencies = [each.latency_ns for each in requests]
    limit = float(np.quantile(latencies, SLOW)) if latencies else 0.0
    return [each for each in requests if each.latency_ns > limit]


def unusual_requests(requests: Sequence[Request], times: float, least_ns: int) -> list[Request]:
    """Return those that take at least `times` the median of their route, and `least_ns` more."""
    routes: dict[str, list[Request]] = defaultdict(list)
    for each in requests:
        routes[each.route].append(each)
    usual = {route: median_ns(own) for route, own in routes.items()}
    return [
        each for each in requests if each.latency_ns >= max(times * usual[each.route], usual[each.route] + least_ns)
    ]


def median_ns(requests: Sequence[Request]) -> float:
    """Return the median latency."""
    return float(np.median([each.latency_ns for each in requests]))


@cached_on_trace
def _functions(trace: Trace) -> Functions:
    return Functions(trace)


def spent_by(trace: Trace, requests: Sequence[Request]) -> list[Spent]:
    """Return what requests spend their time on, most first; `short` is what lasts less than 1 ms each time.

    What ran on the event loop is folded with most steps. It counts for the function in which that of the same cause is
    most of the time where it is in detail.
    """
    functions, most_ns = _functions(trace), max((each.latency_ns for each in requests_of(trace)), default=0)
    found: dict[tuple[str, str, str], Spent] = {}
    for request in requests:
        rest = request.latency_ns
        for part in request.parts:
            for key, duration_ns in _pieces(functions, request, part, most_ns):
                _add(found, key, duration_ns, 1, {(request.process, request.number)})
            rest -= part.duration_ns
        if rest > 0:
            _add(found, ("short", "", ""), rest, 1, {(request.process, request.number)})
    for key in [key for key in found if key[0] in _ON_LOOP and not key[1]]:
        known = [each for each in found.values() if each.kind in _ON_LOOP and each.function and each.cause == key[2]]
        if known and key[2]:
            function = max(known, key=lambda each: each.total_ns).function
            folded = found.pop(key)
            _add(found, (key[0], function, key[2]), folded.total_ns, folded.waits, folded.requests)
    return sorted(found.values(), key=lambda each: -each.total_ns)


_ON_LOOP = ("running", "loop", "start")


def _add(
    found: dict[tuple[str, str, str], Spent],
    key: tuple[str, str, str],
    total_ns: int,
    waits: int,
    requests: set[tuple[int, int]],
) -> None:
    spent = found.setdefault(key, Spent(*key))
    spent.total_ns += total_ns
    spent.waits += waits
    spent.requests |= requests


def _pieces(functions: Functions, request: Request, part: Part, most_ns: int) -> list[tuple[tuple[str, str, str], int]]:
    """Return kind, function and cause of what a part is made of, each with its time."""
    begin, end = part.start_ns, part.start_ns + part.duration_ns
    if part.kind in _ON_LOOP:
        function = functions.longest(request.process, part.thread_id, begin, end, most_ns)
        cause = (part.cause or request.route) if part.kind == "running" else part.cause
        return [((part.kind, function, cause), part.duration_ns)]
    if part.kind == "thread" and not part.code:
        # Waits for a core are somewhere in it, not only at its end: each function has its share of them.
        until = request.start_ns + request.latency_ns
        own = functions.alone(request.process, part.thread_id, begin, until, most_ns)
        ran = part.duration_ns / (until - begin)
        return [((part.kind, name, ""), round(spent_ns * ran)) for name, spent_ns in own]
    return [((part.kind, part.code, part.cause), part.duration_ns)]
