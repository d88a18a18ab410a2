"""Requests that a service answers: how many, how fast by route, and what the slow ones wait for.

Requests are found without a marker: of ASGI applications under uvicorn, aiohttp.web, servers of asyncio streams, and
http.server. The latency is that of the server: from the arrival of the request's data until the last byte of the
response was given to the socket. Where the event loop was busy when the data arrived, the arrival is what the kernel
has for the connection, to 4 ms. Percentiles are exact, over every request, whether steps were folded or not: the
value at rank (n - 1) p, linear between two requests, as numpy.percentile has it. Failed are those with a status of
500 and more, or without a response.

A route is the template that the application declares. Servers without routes have the path; a part of it that is not
a plain word of letters is {}. Queries and bodies are never recorded.

The kinds of what a request does: start (arrived, until its code began), running (its code runs on the event loop),
loop (it could go on, but the loop ran others, or collected garbage), and waits: sleep, lock, semaphore, condition,
event, queue, thread (its job runs in an executor), thread pool (its job waits for a thread), connection pool, outgoing
call, socket, client (the body, or a client that reads slowly), task (another task, where not known better), process,
other (a future, nobody knows whose). The cause of a wait for a lock or semaphore of asyncio is who releases it. Where
a request waits for tasks of its own, it is what the one of them does that ends last. What lasts less than 1 ms is
`short`. Of http.server the kinds are `thread`, its functions by name, and `core`: its thread was ready to run, but the
machine had no core for it. How long is known, not when: on the timeline it comes last.

Slow requests are those above the 95th percentile of all, or of the route that is asked for. The sentence is about
them, if half of them take at least twice as long as the median of all, and what it names is at least a quarter of
their time. It has a second part about requests that take twice the median of their own route, if something else holds
these up.
"""

from strobe.model.columns import RANK, Column, when
from strobe.model.option import Option, one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "How fast does a service answer, by route, and what do its slow requests wait for?",
    needs=("requests",),
    options=(
        one_of(
            "by",
            "One row per route, per request (slowest first), or per cause of slow requests.",
            "route",
            "request",
            "cause",
        ),
        Option("route", "Only requests of this route: its method and template, as the table has them.", default=""),
    ),
    raises=("the trace has no request of the route",),
    columns=(
        *when(RANK, Column("process", "uint32", "", "process that answers", extra=True), by=("route", "request")),
        *when(
            Column("request", "int64", "", "number of the request in its process"),
            Column("start_ns", "int64", "ns", "when it arrived", extra=True),
            Column("location", "uint32", "", "row of the timeline that shows it", extra=True),
            by="request",
        ),
        *when(Column("route", "string", "", "method and template of the route"), by=("route", "request")),
        *when(
            Column("requests", "int64", "", "requests that were answered, or given up"),
            Column("rate", "float64", "1/s", "requests per second, over the time from the first to the last of all"),
            Column("failed", "int64", "", "of them those with a status of 500 and more, or without a response"),
            Column("median_ns", "int64", "ns", "median latency"),
            Column("p90_ns", "int64", "ns", "90th percentile of the latency"),
            Column("p95_ns", "int64", "ns", "95th percentile of the latency"),
            Column("p99_ns", "int64", "ns", "99th percentile of the latency"),
            Column("max_ns", "int64", "ns", "longest latency"),
            Column("share", "float64", "", "of the latencies of all requests, added up"),
            Column("cumulative_share", "float64", "", "the same, together with the rows above", extra=True),
            by="route",
        ),
        *when(
            Column("status", "int64", "", "status of the response, null where none was sent"),
            Column("latency_ns", "int64", "ns", "from its arrival to the end of its response"),
            Column("start_delay_ns", "int64", "ns", "until its code began", extra=True),
            Column(
                "running_ns", "int64", "ns", "its code ran on the event loop (http.server: CPU time); null: not known"
            ),
            Column("collecting_ns", "int64", "ns", "of that, the garbage collector ran", extra=True),
            Column("loop_ns", "int64", "ns", "it could go on, but the event loop ran others"),
            by="request",
        ),
        *when(Column("slow_requests", "int64", "", "slow requests that have it"), by="cause"),
        Column("kind", "string", "", "what took most of its time: see above", when=(("by", ("request", "cause")),)),
        Column("function", "string", "", "function that ran, or that waited", when=(("by", ("request", "cause")),)),
        Column(
            "cause",
            "string",
            "",
            "who kept it waiting, where known; of running its own route",
            when=(("by", ("request", "cause")),),
        ),
        Column("total_ns", "int64", "ns", "how long, of all that it is of", when=(("by", ("request", "cause")),)),
        *when(
            Column("times", "float64", "", "how often a request does so, in the mean"),
            Column("share", "float64", "", "of the time of all slow requests"),
            by="cause",
        ),
    ),
)
