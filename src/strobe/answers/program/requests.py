"""Requests that a service answers: how many, how fast by route, and what the slow ones wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from strobe.analyses.program.requests import ANALYSIS
from strobe.errors import UsageError
from strobe.model.units import format_ns, format_share
from strobe.sums.requests import Request, Spent, median_ns, requests_of, slow_requests, spent_by, unusual_requests
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace

_PERCENTILES = {"median_ns": 50, "p90_ns": 90, "p95_ns": 95, "p99_ns": 99}
# Than the median: what slow requests must be for a sentence about them. Less than a tick of the kernel's scheduler is
# the machine's.
_SLOWER, _LEAST_NS = 2, 4_000_000
_MAIN = 0.25  # of the time of the slow requests
_FEW, _RARE = 5, 0.02  # requests that are slower than usual: fewer are not worth a word
_COLLECTOR = "garbage collector"  # as a cause
_MANY = 5  # waits of one kind one after the other


def run(trace: Trace, *, by: str, route: str) -> Table:
    """Return the answer; see `strobe.analyses.program.requests`."""
    requests = requests_of_route(trace, route)
    if not requests:
        return make_table(ANALYSIS.columns_with(by=by), [], about="requests of services")
    slow = slow_requests(requests)
    if by == "route":
        rows = list(route_rows(trace, requests))
    elif by == "request":
        rows = list(request_rows(trace, requests))
    else:
        rows = cause_rows(trace, slow)
    return make_table(
        ANALYSIS.columns_with(by=by), rows, about="requests of services", note=verdict(trace, requests, slow)
    )


def requests_of_route(trace: Trace, route: str) -> Sequence[Request]:
    """Return the requests of a route, those of all where it is "". Raises UsageError where it has none."""
    every = requests_of(trace)
    requests = [each for each in every if each.route == route] if route else every
    if route and not requests:
        routes = ", ".join(sorted({each.route for each in every})) or "none: no request was recorded"
        raise UsageError(f"no request of the route '{route}'", do=f"Routes: {routes}")
    return requests


def route_rows(trace: Trace, requests: Sequence[Request]) -> Iterator[Mapping[str, object]]:
    """Yield a row for each route of each process, the one with most time first."""
    first = min((each.start_ns for each in requests), default=0)
    lasted_ns = max((each.start_ns + each.latency_ns for each in requests), default=0) - first
    ranks, all_ns, above_ns = ranks_of(trace), sum(each.latency_ns for each in requests), 0
    groups: dict[tuple[int, str], list[Request]] = {}
    for each in requests:
        groups.setdefault((each.process, each.route), []).append(each)
    for (process, route), own in sorted(groups.items(), key=lambda group: -sum(each.latency_ns for each in group[1])):
        own_ns = sum(each.latency_ns for each in own)
        above_ns += own_ns
        yield {
            "rank": ranks[process],
            "process": process,
            "route": route,
            "requests": len(own),
            "rate": 1e9 * len(own) / lasted_ns if lasted_ns else None,
            "failed": sum(each.failed for each in own),
            **percentiles(own),
            "share": own_ns / all_ns if all_ns else None,
            "cumulative_share": above_ns / all_ns if all_ns else None,
        }


def percentiles(requests: Sequence[Request]) -> dict[str, int]:
    """Return percentiles of the latency, and the longest, by the names of their columns."""
    latencies = np.array([each.latency_ns for each in requests])
    found = (round(float(each)) for each in np.percentile(latencies, list(_PERCENTILES.values())))
    return {**dict(zip(_PERCENTILES, found, strict=True)), "max_ns": int(latencies.max())}


def request_rows(trace: Trace, requests: Sequence[Request]) -> Iterator[Mapping[str, object]]:
    """Yield a row for each request, the slowest first."""
    ranks = ranks_of(trace)
    for each in sorted(requests, key=lambda each: -each.latency_ns):
        spent = spent_by(trace, [each])[0]
        loop = sum(part.duration_ns for part in each.parts if part.kind == "loop")
        yield {
            "rank": ranks[each.process],
            "process": each.process,
            "request": each.number,
            "route": each.route,
            "start_ns": each.start_ns,
            "location": each.location,
            "status": each.status,
            "latency_ns": each.latency_ns,
            "start_delay_ns": each.start_delay_ns,
            "running_ns": each.running_ns,
            "loop_ns": loop,
            "collecting_ns": each.collecting_ns,
            "kind": spent.kind,
            "function": spent.function,
            "cause": spent.cause,
            "total_ns": spent.total_ns,
        }


def cause_rows(trace: Trace, slow: Sequence[Request]) -> list[Mapping[str, object]]:
    """Return a row for each thing that slow requests spend their time on, most first."""
    all_ns = sum(each.latency_ns for each in slow)
    return [_cause(each, all_ns) for each in spent_by(trace, slow)]


def _cause(spent: Spent, all_ns: int) -> Mapping[str, object]:
    return {
        "slow_requests": len(spent.requests),
        "kind": spent.kind,
        "function": spent.function,
        "cause": spent.cause,
        "total_ns": spent.total_ns,
        "times": spent.waits / len(spent.requests),
        "share": spent.total_ns / all_ns,
    }


def verdict(trace: Trace, requests: Sequence[Request], slow: Sequence[Request]) -> str:
    """Return one sentence about what the slow requests wait for; nothing where they do not stand out.

    Where a route is slow by itself, those of others that are slower than usual are behind it: they have a part of
    the sentence if something else holds them up.
    """
    usual_ns = median_ns(requests)
    if slow and median_ns(slow) < max(_SLOWER * usual_ns, usual_ns + _LEAST_NS):
        slow = []
    parts, first = list[str](), dict[str, float]()
    if slow and (first := _main(trace, slow)):
        least = format_ns(min(each.latency_ns for each in slow))
        who = f"the {len(slow)} slow requests ({least} and more, median of all {format_ns(usual_ns)})"
        parts.append(_sentence(who, first))
    unusual = unusual_requests(requests, _SLOWER, _LEAST_NS)
    if len(unusual) >= max(_FEW, _RARE * len(requests)):
        second = _main(trace, unusual)
        if second and next(iter(second)) not in first:
            who = f"the {len(unusual)} requests that take twice the median of their route"
            parts.append(_sentence(who, second))
    return "; ".join(parts)


def _sentence(who: str, shares: Mapping[str, float]) -> str:
    return f"of the time of {who}, " + " and ".join(f"{format_share(part)} {does}" for does, part in shares.items())


def _main(trace: Trace, requests: Sequence[Request]) -> dict[str, float]:
    """Return what takes most of the time of requests, and its share, most first."""
    all_ns, spent_ns = sum(each.latency_ns for each in requests), dict[str, int]()
    for each in spent_by(trace, requests):
        if each.kind != "short":
            spent_ns[_does(each)] = spent_ns.get(_does(each), 0) + each.total_ns
    named = sorted((each for each in spent_ns if spent_ns[each] >= _MAIN * all_ns), key=lambda each: -spent_ns[each])
    return {each: spent_ns[each] / all_ns for each in named}


def _does(spent: Spent) -> str:
    where = f" in {spent.function}" if spent.function else ""
    many = spent.waits / len(spent.requests)
    often = f", {many:.0f} times one after the other" if many >= _MANY else ""
    if spent.kind in ("running", "loop", "start") and spent.cause == _COLLECTOR:
        return f"passes while the garbage collector runs on the event loop{where}"
    if spent.kind in ("loop", "start"):
        ran = " of ".join(filter(None, (spent.function, spent.cause)))
        return f"passes while the event loop runs {ran or 'others'}"
    if spent.kind == "running":
        return f"is computed on the event loop{where}"
    if spent.kind == "thread pool":
        return f"is waited for a free thread{where}" + (f", behind {spent.cause}" if spent.cause else "")
    if spent.kind == "core":
        return "is waited for a core, while the machine runs other threads"
    if spent.kind == "thread":
        return f"passes in a thread{where}"
    until = f", until {spent.cause} releases it" if spent.cause and spent.kind in ("lock", "semaphore") else ""
    return f"is waited for {_AWAITED[spent.kind]}{where}{often}{until}"


_AWAITED = {
    "sleep": "a timer", "lock": "a lock", "semaphore": "a semaphore", "condition": "a condition", "event": "an event",
    "queue": "a queue", "connection pool": "a free connection", "outgoing call": "another service", "task": "a task",
    "socket": "a socket", "client": "the client", "process": "another process", "other": "a future",
}  # fmt: skip
