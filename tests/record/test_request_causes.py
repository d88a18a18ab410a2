"""What slow requests wait for is what was planted: a busy loop, another service, a collection, who holds a lock."""

from pathlib import Path
from typing import Any

import pytest

import strobe
from tests.record.test_service_requests import CLIENT, KERNEL_CLOCK_S, dicts, log_of
from tests.record.workshop import Workshop


def recorded(workshop: Workshop, program: str) -> Path:
    """The trace of a service that asks itself and ends."""
    workshop.write("client.py", CLIENT)
    done = workshop.recorded("--trace=+requests", str(workshop.write("service.py", program)))
    assert (done.returncode, done.stderr) == (0, "")
    return workshop.trace


def slowest(trace: strobe.Trace, route: str) -> dict[str, Any]:
    """The row of the slowest request of a route."""
    return next(row for row in dicts(trace.requests(by="request")) if row["route"] == route)


KEPT_ALIVE = """
import asyncio, http.client, threading, time
from aiohttp import web
from client import LOG, ask, save

async def page(request):
    return web.json_response({})

async def block(request):
    time.sleep(0.4)
    return web.json_response({})

async def main():
    app = web.Application()
    app.router.add_get("/page", page)
    app.router.add_get("/block", block)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    def drive():
        kept = http.client.HTTPConnection("127.0.0.1", port)
        def once():
            began = time.monotonic()
            kept.request("GET", "/page")
            kept.getresponse().read()
            LOG.append(("GET /page", 200, time.monotonic() - began))
        for _ in range(5):
            once()
        other = threading.Thread(target=ask, args=(port, "GET", "/block", "GET /block"))
        other.start()
        time.sleep(0.1)
        once()
        other.join()
        kept.close()
    await asyncio.to_thread(drive)
    await runner.cleanup()
    save()

asyncio.run(main())
"""


@pytest.mark.every_python
def test_a_request_on_an_open_connection_of_aiohttp_arrives_while_the_loop_is_busy(workshop: Workshop) -> None:
    pytest.importorskip("aiohttp")
    with strobe.open(recorded(workshop, KEPT_ALIVE)) as trace:
        rows = [each for each in dicts(trace.requests(by="request")) if each["kind"] == "start"]
    (row,) = (each for each in rows if each["cause"] == "GET /block")
    measured = max(seconds for _, seconds in log_of(workshop)["GET /page"])
    assert measured > 0.2
    assert measured - 0.05 < row["latency_ns"] / 1e9 < measured + KERNEL_CLOCK_S
    assert row["route"] == "GET /page"


PROXY = """
import asyncio
from client import ask, save

async def upstream(reader, writer):
    await reader.readline()
    await asyncio.sleep(0.1)
    writer.write(b"ok")
    writer.close()

async def ask_upstream(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"HTTP/1.1 500 is none of the service's answers\\n")
    body = await reader.read()
    writer.close()
    return body

async def main():
    other = await asyncio.start_server(upstream, "127.0.0.1", 0)
    async def answer(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        if early:
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n")
        body = await ask_upstream(other.sockets[0].getsockname()[1])
        if not early:
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n")
        writer.write(body)
        await reader.read()
        writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    def drive():
        global early
        for name, early in (("late", False), ("early", True)):
            ask(server.sockets[0].getsockname()[1], "GET", f"/{name}", f"GET /{name}")
    await asyncio.to_thread(drive)
    server.close()
    other.close()
    save()

asyncio.run(main())
"""


@pytest.mark.every_python
def test_what_a_handler_on_streams_writes_to_another_service_is_not_its_response(workshop: Workshop) -> None:
    """Nor is a wait for that service the end of a response whose beginning was written before."""
    with strobe.open(recorded(workshop, PROXY)) as trace:
        rows = [slowest(trace, f"GET /{name}") for name in ("late", "early")]
    for row in rows:
        assert row["status"] == 200
        (measured,) = (seconds for _, seconds in log_of(workshop)[row["route"]])
        assert 0.1 <= row["latency_ns"] / 1e9 <= measured
        assert (row["kind"], row["function"].partition(" ")[0]) == ("socket", "ask_upstream")


CAUSES = """
import asyncio, gc, socket, threading
import uvicorn
from fastapi import FastAPI
from client import ask, save, together

gc.disable()
app = FastAPI()
LOCKS = {"lock": asyncio.Lock(), "slots": asyncio.Semaphore(1), "own": asyncio.Lock()}
objects = []

@app.get("/hold/{name}")
async def hold(name: str):
    async with LOCKS[name]:
        await asyncio.sleep(0.3)
    return {}

@app.get("/take/{name}")
async def take(name: str):
    async with LOCKS[name]:
        return {}

async def flush():
    async with LOCKS["own"]:
        await asyncio.sleep(0.3)

@app.get("/begin")
async def begin():
    loop.call_soon(lambda: tasks.append(loop.create_task(flush())), context=empty)
    return {}

@app.get("/collect")
async def collect():
    gc.collect()
    return {}

import contextvars
empty = contextvars.Context()
tasks = []
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, loop="asyncio"))

def drive():
    port = listening.getsockname()[1]
    for _ in range(40):
        ask(port, "GET", "/take/lock", "GET /take/{name}")
    for name in ("lock", "slots"):
        together(port, [("GET", f"/{verb}/{name}", f"GET /{verb}/{name}") for verb in ("hold", "take", "take")])
    together(port, [("GET", "/begin", ""), ("GET", "/take/own", "")])
    objects.extend([] for _ in range(3_000_000))
    ask(port, "GET", "/collect", "GET /collect")
    objects.clear()
    save()
    server.should_exit = True

async def main():
    global loop
    loop = asyncio.get_running_loop()
    driver = threading.Thread(target=drive)
    driver.start()
    await server.serve(sockets=[listening])
    driver.join()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def causes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A service whose requests wait for locks, and collect garbage."""
    pytest.importorskip("fastapi")
    return recorded(Workshop(tmp_path_factory.mktemp("causes")), CAUSES)


def waits_of(trace: strobe.Trace, kind: str) -> set[str]:
    """Who is the cause of the long waits of a kind."""
    query = f"select cause from request_parts where kind = '{kind}' and duration_ns > 100e6"
    return {cause.partition(" (")[0] for (cause,) in trace.sql(query).rows()}


@pytest.mark.every_python
def test_who_releases_a_lock_or_semaphore_is_named(causes: Path) -> None:
    """Of another request its route; of a task without one, the function that is in the lock."""
    with strobe.open(causes) as trace:
        assert waits_of(trace, "lock") == {"GET /hold/{name}", "flush"}
        assert waits_of(trace, "semaphore") == {"GET /hold/{name}"}
        row = slowest(trace, "GET /take/{name}")
        note = trace.requests(route="GET /take/{name}").note
    assert (row["kind"] in ("lock", "semaphore"), row["function"].partition(" ")[0]) == (True, "take")
    assert "until GET /hold/{name} releases it" in note


@pytest.mark.every_python
def test_a_request_in_which_garbage_is_collected_does_not_compute(causes: Path) -> None:
    with strobe.open(causes) as trace:
        row = slowest(trace, "GET /collect")
    assert (row["kind"], row["cause"]) == ("running", "garbage collector")
    assert row["collecting_ns"] > 0.5 * row["latency_ns"]
