"""Requests of services: routes, latencies and causes are what a client outside of the recorder measured and planted."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strobe
from strobe.errors import UsageError
from strobe.record.adapters.service_requests.awaits import wait_of
from strobe.server.http.app import Application
from strobe.server.http.trace_library import Source
from tests.record.workshop import Workshop
from tests.unit.test_server import TOKEN, Page

KERNEL_CLOCK_S = 0.005  # how exact the arrival of data is that waited for the event loop
# A client in a thread of its own, with a connection for each request; it logs (route, status, seconds).
CLIENT = """
import http.client, json, threading, time

LOG = []

def ask(port, method, path, route):
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path)
    response = connection.getresponse()
    response.read()
    LOG.append((route, response.status, time.monotonic() - began))
    connection.close()

def together(port, asks):
    threads = [threading.Thread(target=ask, args=(port, *each)) for each in asks]
    for each in threads:
        each.start()
        time.sleep(0.02)
    for each in threads:
        each.join()

def save():
    with open("log.json", "w") as file:
        json.dump(LOG, file)
"""
UVICORN = """
import asyncio, concurrent.futures, socket, threading, time
import uvicorn
from fastapi import FastAPI
from client import ask, save, together

app = FastAPI()
POOL = concurrent.futures.ThreadPoolExecutor(1, "shelf")
LOCK = asyncio.Lock()

@app.get("/items/{item}")
async def item(item: str):
    await asyncio.sleep(0.002)
    return {}

def load_all():
    time.sleep(0.3)

@app.get("/blocking")
async def blocking():
    load_all()
    return {}

def read_shelf():
    time.sleep(0.2)

@app.get("/pooled")
async def pooled():
    await asyncio.get_running_loop().run_in_executor(POOL, read_shelf)
    return {}

@app.get("/locked")
async def locked():
    async with LOCK:
        await asyncio.sleep(0.2)
    return {}

@app.get("/tasks")
async def tasks():
    await asyncio.gather(asyncio.sleep(0.01), slow_half())
    return {}

async def slow_half():
    await asyncio.sleep(0.2)

@app.get("/broken")
async def broken():
    raise RuntimeError("the program's own")

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, loop="asyncio"))

def drive():
    port = listening.getsockname()[1]
    for number in range(40):
        ask(port, "GET", f"/items/sesame{number}?token=swordfish", "GET /items/{item}")
    together(port, [("GET", "/blocking", "GET /blocking"), ("GET", "/items/x", "GET /items/{item}")])
    for name in ("pooled", "locked"):
        together(port, [("GET", f"/{name}", f"GET /{name}")] * 2)
    ask(port, "GET", "/tasks", "GET /tasks")
    ask(port, "GET", "/broken", "GET /broken")
    save()
    server.should_exit = True

driver = threading.Thread(target=drive)
driver.start()
server.run(sockets=[listening])
driver.join()
"""


def dicts(table: strobe.Table) -> list[dict[str, Any]]:
    """The rows of a table."""
    return table.to_pylist()


def log_of(workshop: Workshop) -> dict[str, list[tuple[int, float]]]:
    """Status and seconds of each route, as the client has them."""
    found: dict[str, list[tuple[int, float]]] = {}
    for route, status, seconds in json.loads((workshop.folder / "log.json").read_text(encoding="utf-8")):
        found.setdefault(route, []).append((status, seconds))
    return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A service of FastAPI under uvicorn, recorded."""
    pytest.importorskip("fastapi")
    workshop = Workshop(tmp_path_factory.mktemp("service"))
    workshop.write("client.py", CLIENT)
    done = workshop.recorded("--trace=+requests", str(workshop.write("service.py", UVICORN)))
    assert done.returncode == 0, done.stderr
    return workshop


def slowest(service: Workshop, route: str) -> dict[str, Any]:
    """The row of the slowest request of a route."""
    with strobe.open(service.trace) as trace:
        return next(row for row in dicts(trace.requests(by="request")) if row["route"] == route)


def test_each_request_has_its_route_status_and_latency(service: Workshop) -> None:
    known = log_of(service)
    with strobe.open(service.trace) as trace:
        rows = {row["route"]: row for row in dicts(trace.requests())}
    assert {route: row["requests"] for route, row in rows.items()} == {route: len(own) for route, own in known.items()}
    assert {route for route, row in rows.items() if row["failed"]} == {"GET /broken"}
    for route in ("GET /blocking", "GET /locked", "GET /pooled"):
        seconds = max(seconds for _, seconds in known[route])
        # The client is slower by its connection and its own thread.
        assert seconds - 0.1 < rows[route]["max_ns"] / 1e9 <= seconds + KERNEL_CLOCK_S


def test_percentiles_are_those_of_the_rows(service: Workshop) -> None:
    with strobe.open(service.trace) as trace:
        latencies = [row[0] for row in trace.sql("select latency_ns from requests where route like '%item}'").rows()]
        (row,) = (row for row in dicts(trace.requests()) if row["route"] == "GET /items/{item}")
    wanted = np.percentile(latencies, [50, 90, 95, 99])
    assert [row[name] for name in ("median_ns", "p90_ns", "p95_ns", "p99_ns")] == [round(each) for each in wanted]


def test_shares_of_routes_are_of_the_time_of_all_requests(service: Workshop) -> None:
    with strobe.open(service.trace) as trace:
        sums = dict(trace.sql("select route, sum(latency_ns)::bigint from requests group by route").rows())
        rows = dicts(trace.requests())
    whole = sum(sums.values())
    assert [row["share"] for row in rows] == pytest.approx([sums[row["route"]] / whole for row in rows])
    assert [row["cumulative_share"] for row in rows] == pytest.approx(
        np.cumsum(sorted(sums.values(), reverse=True)) / whole
    )


def test_one_route_can_be_asked_for(service: Workshop) -> None:
    with strobe.open(service.trace) as trace:
        (row,) = dicts(trace.requests(route="GET /locked"))
        assert (row["requests"], row["share"]) == (len(log_of(service)["GET /locked"]), 1)
        # One of two is above the 95th percentile: the one that waits for the other's lock.
        causes = {row["kind"]: row for row in dicts(trace.requests(by="cause", route="GET /locked"))}
        assert causes["lock"]["slow_requests"] == 1
        with pytest.raises(UsageError, match="no request of the route 'GET /nowhere'") as error:
            trace.requests(route="GET /nowhere")
        assert "GET /items/{item}" in error.value.do


def test_the_page_has_the_figures_of_the_verb(service: Workshop) -> None:
    trace = strobe.open(service.trace)
    page = Page(Application([Source(trace.path, lambda: trace)], token=TOKEN))
    answer = page.get("requests").json()
    assert [row["route"] for row in answer["routes"]] == [row["route"] for row in dicts(trace.requests())]
    known = log_of(service)
    assert (
        answer["requests"]
        == sum(answer["counts"])
        == sum(answer["over_time"]["counts"])
        == sum(map(len, known.values()))
    )
    assert answer["failed"] == len(known["GET /broken"])
    latencies = [row[0] for row in trace.sql("select latency_ns from requests").rows()]
    assert answer["percentiles"]["p95_ns"] == round(np.percentile(latencies, 95))
    by_route = {each["route"]: each for each in answer["slow"]}
    assert set(by_route) == {"", *(name for name, own in known.items() if len(own) > 1)}
    for name, slow in by_route.items():
        assert sum(part["total_ns"] for part in slow["parts"]) + slow["rest_ns"] == slow["total_ns"]
        assert dicts(trace.requests(by="cause", route=name))[0]["total_ns"] == slow["parts"][0]["total_ns"]
    (longest, *_) = answer["slowest"]
    assert longest["latency_ns"] == max(latencies)
    spans = trace.sql(
        f"select name, duration_ns from spans where location = {longest['location']} "
        f"and start_ns = {longest['start_ns']} and depth = 0"
    )
    assert spans.rows() == [(longest["route"], longest["latency_ns"])]
    one = page.get("requests?route=GET%20/pooled").json()
    assert (one["requests"], {row["route"] for row in one["slowest"]}) == (len(known["GET /pooled"]), {"GET /pooled"})


@pytest.mark.every_python
def test_who_stopped_the_event_loop_is_named(service: Workshop) -> None:
    with strobe.open(service.trace) as trace:
        rows = [
            row
            for row in dicts(trace.requests(by="request"))
            if row["cause"] == "GET /blocking" and row["kind"] != "running"
        ]
    assert [(row["route"], row["kind"]) for row in rows] == [("GET /items/{item}", "start")]
    assert rows[0]["function"].startswith("load_all (service.py")
    assert rows[0]["total_ns"] > 0.2e9
    row = slowest(service, "GET /blocking")
    assert row["kind"] == "running"
    assert row["function"].startswith("load_all (service.py")
    assert row["running_ns"] >= 0.3e9


def test_a_job_that_waits_for_a_thread_is_behind_another(service: Workshop) -> None:
    row = slowest(service, "GET /pooled")
    assert row["latency_ns"] > 0.35e9
    with strobe.open(service.trace) as trace:
        query = f"select kind, cause, duration_ns from request_parts where request = {row['request']} order by time_ns"
        parts = [each for each in trace.sql(query).rows() if each[2] > 0.1e9]
    assert [(kind, cause) for kind, cause, _ in parts] == [("thread pool", "read_shelf"), ("thread", None)]


@pytest.mark.every_python
def test_waits_have_their_kind_and_the_function_that_waits(service: Workshop) -> None:
    row = slowest(service, "GET /locked")
    assert row["kind"] in ("lock", "sleep")  # as long as each other
    with strobe.open(service.trace) as trace:
        found = trace.sql(f"select kind, code from request_parts where request = {row['request']}").rows()
    assert {(kind, code.partition(" ")[0]) for kind, code in found if kind in ("lock", "sleep")} == {
        ("lock", "locked"),
        ("sleep", "locked"),
    }


def test_a_wait_for_tasks_is_what_the_last_of_them_does(service: Workshop) -> None:
    row = slowest(service, "GET /tasks")
    assert (row["kind"], row["function"].partition(" ")[0]) == ("sleep", "slow_half")


def test_values_of_paths_and_queries_are_not_in_the_trace(service: Workshop) -> None:
    files = [file.read_bytes() for file in Path(service.trace).rglob("*") if file.is_file()]
    with strobe.open(service.trace) as trace:
        texts = str([trace.side_table(name).to_pylist() for name in ("requests", "request_parts")])
    for secret in ("sesame", "swordfish"):
        assert secret not in texts
        assert not any(secret.encode() in content for content in files)


def test_requests_are_lanes_of_their_own(service: Workshop) -> None:
    with strobe.open(service.trace) as trace:
        query = (
            "select l.kind, count(*) from spans s join locations l using (location) "
            "where s.name like 'GET /%' group by all"
        )
        assert trace.sql(query).rows() == [("task", sum(map(len, log_of(service).values())))]


def test_a_traceback_of_the_service_is_its_own(workshop: Workshop) -> None:
    workshop.write("client.py", CLIENT)
    program = str(workshop.write("service.py", UVICORN))
    plain, recorded = workshop.plain(program), workshop.recorded("--trace=+requests", program)
    assert "RuntimeError: the program's own" in plain.stderr
    assert recorded.visible == plain.visible


AIOHTTP = """
import asyncio, threading
from aiohttp import web
from client import ask, save

async def item(request):
    await asyncio.sleep(0.05)
    return web.json_response({})

async def broken(request):
    raise web.HTTPServiceUnavailable

async def main():
    app = web.Application()
    app.router.add_get("/items/{item}", item)
    app.router.add_get("/broken", broken)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    def drive():
        for _ in range(3):
            ask(port, "GET", "/items/7", "GET /items/{item}")
        ask(port, "GET", "/broken", "GET /broken")
    await asyncio.to_thread(drive)
    await runner.cleanup()
    save()

asyncio.run(main())
"""
STREAMS = """
import asyncio
from client import ask, save

async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    await asyncio.sleep(0.05)
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    await writer.drain()
    await reader.read()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    def drive():
        for number in range(3):
            ask(port, "GET", f"/items/{number}?q=1", "GET /items/{}")
    await asyncio.to_thread(drive)
    server.close()
    save()

asyncio.run(main())
"""
THREADS = """
import http.server, threading, time
from client import ask, save

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.05)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever).start()
for number in range(3):
    ask(server.server_port, "GET", f"/items/{number}?q=1", "GET /items/{}")
server.shutdown()
save()
"""


@pytest.mark.every_python
@pytest.mark.parametrize(("name", "program"), [("aiohttp", AIOHTTP), ("asyncio", STREAMS), ("http", THREADS)])
def test_other_servers_have_requests_too(workshop: Workshop, name: str, program: str) -> None:
    pytest.importorskip(name)
    workshop.write("client.py", CLIENT)
    done = workshop.recorded("--trace=+requests", str(workshop.write("service.py", program)))
    assert (done.returncode, done.stderr) == (0, "")
    known = log_of(workshop)
    with strobe.open(done.trace) as trace:
        rows = {row["route"]: row for row in dicts(trace.requests())}
    assert {route: (row["requests"], row["failed"]) for route, row in rows.items()} == {
        route: (len(own), sum(status >= 500 for status, _ in own)) for route, own in known.items()
    }
    for route, row in rows.items():
        if "items" in route:
            # Nothing kept these servers busy: the kernel's coarse clock is not asked.
            assert 0.05 <= row["max_ns"] / 1e9 <= max(seconds for _, seconds in known[route])


@pytest.mark.every_python
def test_requests_on_uvloop_have_what_their_tasks_do_and_wait_for(workshop: Workshop) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvloop")
    workshop.write("client.py", CLIENT)
    program = UVICORN.replace('loop="asyncio"', 'loop="uvloop"')
    done = workshop.recorded("--trace=+requests", str(workshop.write("service.py", program)))
    assert done.returncode == 0, done.stderr
    known = log_of(workshop)
    with strobe.open(done.trace) as trace:
        rows = {row["route"]: row for row in dicts(trace.requests())}
        kinds = {row["route"]: (row["kind"], row["function"]) for row in dicts(trace.requests(by="request"))}
    assert {route: row["requests"] for route, row in rows.items()} == {route: len(own) for route, own in known.items()}
    assert kinds["GET /blocking"][0] == "running"
    assert kinds["GET /blocking"][1].startswith("load_all (service.py")
    assert kinds["GET /tasks"][0] == "sleep"
    assert kinds["GET /tasks"][1].startswith("slow_half ")


STARVED = """
import http.server, multiprocessing, os, threading, time
from client import ask, save

def spin():
    while True:
        pass

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        until = time.thread_time() + (0.1 if self.path == "/items" else 0)
        while time.thread_time() < until:
            pass
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words):
        pass

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
other = multiprocessing.get_context("fork").Process(target=spin, daemon=True)
other.start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever).start()
for name in ["quick"] * 40 + ["items"] * 3:
    ask(server.server_port, "GET", f"/{name}", f"GET /{name}")
server.shutdown()
other.kill()
save()
"""


def test_a_thread_that_has_no_core_does_not_run_its_function_longer(workshop: Workshop) -> None:
    workshop.write("client.py", CLIENT)
    done = workshop.recorded("--trace=+requests", str(workshop.write("service.py", STARVED)))
    assert done.returncode == 0, done.stderr
    with strobe.open(done.trace) as trace:
        query = (
            "select kind, sum(p.duration_ns) / 1e9 from request_parts p join requests using (location, request) "
            "where route = 'GET /items' group by all"
        )
        spent = dict(trace.sql(query).rows())
        sentence = trace.requests().note
    assert spent["core"] > 0.1  # two processes on one core: about as long as it runs
    assert 0.3 <= spent["thread"] < 0.3 + 0.5 * spent["core"] + 0.1
    assert "is waited for a core" in sentence


@pytest.mark.every_python
def test_a_wait_behind_a_context_manager_or_a_generator_is_named() -> None:
    """Neither hands on what it awaits: its steps are objects of their own."""

    async def items(queue: asyncio.Queue[int]) -> AsyncIterator[int]:
        yield await queue.get()

    async def entering(queue: asyncio.Queue[int]) -> None:
        async with asynccontextmanager(items)(queue):
            pass

    async def iterating(queue: asyncio.Queue[int]) -> None:
        async for _ in items(queue):
            pass

    async def named(waiting: Callable[[asyncio.Queue[int]], Coroutine[object, object, None]]) -> str:
        task = asyncio.create_task(waiting(asyncio.Queue()))
        await asyncio.sleep(0)
        try:
            return wait_of(task).kind
        finally:
            task.cancel()

    with ThreadPoolExecutor() as threads:  # another test may have left an event loop in this one
        kinds = [threads.submit(asyncio.run, named(each)).result() for each in (entering, iterating)]
    assert kinds == ["queue", "queue"]
