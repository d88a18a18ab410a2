"""When `strobe requests` has a sentence: only where slow requests, or those of a route, stand out."""

from typing import cast

import pytest

from strobe.answers.program.requests import verdict
from strobe.sums.requests import Part, Request, slow_requests
from strobe.sums.samples import stack_of
from strobe.trace.trace import Trace

MS = 1_000_000


def request(number: int, latency_ms: int) -> Request:
    """A request that waits for a lock all the time."""
    waits = (Part("lock", "hold (app.py:3)", "", 1, number * MS, latency_ms * MS),)
    return Request(0, 0, number, "GET /", 200, number * MS, latency_ms * MS, 0, 0, 0, waits)


@pytest.mark.parametrize("one_off", [0, 1, 2])
def test_a_few_that_stand_out_among_slow_ones_are_no_reason(one_off: int) -> None:
    """Of 100 requests 5 are slow by definition; half of them have to take twice the median."""
    latencies = [10] * 95 + [15] * (5 - one_off) + [400] * one_off
    requests = [request(number, latency) for number, latency in enumerate(latencies)]
    trace = cast(Trace, None)  # a healthy service needs no look into it
    assert verdict(trace, requests, slow_requests(requests)) == ""


def test_fast_requests_that_a_tick_of_the_scheduler_makes_slow_are_no_reason() -> None:
    """Half of the requests take 1 ms, and 5 % three times as long: 2 ms may be any other program's."""
    requests = [request(number, latency) for number, latency in enumerate([1] * 95 + [3] * 5)]
    assert verdict(cast(Trace, None), requests, slow_requests(requests)) == ""


def test_what_strobe_runs_in_a_service_counts_as_its_caller() -> None:
    served = ("main (/srv/app.py:3)", "write (/usr/lib/python3.13/asyncio/streams.py:300)")
    ours = "sending (/opt/strobe/record/adapters/service_requests/servers.py:80)"
    assert stack_of("\n".join((*served, ours))) == (served, False)
    assert stack_of("\n".join(served)) == (served, True)
