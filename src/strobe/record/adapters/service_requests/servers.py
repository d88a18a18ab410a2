"""Where each server begins a request, learns its route, and has answered it.

What replaces a coroutine function of a server is a plain one that returns the server's own coroutine: no frame of ours
is in a traceback of the program.
"""

from __future__ import annotations

import re
import struct
import threading
from functools import partial
from time import monotonic_ns, thread_time_ns
from weakref import ref

from strobe.native import core
from strobe.record.adapter import Replacements
from strobe.record.adapters.service_requests.awaits import qualified_name
from strobe.record.adapters.service_requests.event_loops import (
    LONG_NS,
    TICK_NS,
    age_of_data,
    current,
    not_read,
    watched_state,
)
from strobe.record.adapters.service_requests.request import Request, rows_of

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from strobe.record.adapters.service_requests.request import Row

_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) (\S+) HTTP/1")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})")
_WORD = re.compile(r"[A-Za-z_.-]{1,32}")


def watch_loops() -> None:
    """Watch event loops, if they are not yet: the adapter sets it."""


def route_of_path(method: str, path: str) -> str:
    """Return a route for a server that has none: what may be a value in the path is left out, and so is the query."""
    words = path.partition("?")[0].split("/")
    return f"{method} {'/'.join(word if not word or _WORD.fullmatch(word) else '{}' for word in words)}"


def _arrives(server: int, transport: Any, looks: int) -> Request:
    """Return a request whose data the event loop found so many looks for events ago; 1 is the present one."""
    from asyncio import get_running_loop

    watch_loops()
    loop = get_running_loop()
    return Request(server, watched_state(loop), core.requests_arrival(loop, transport, looks))


# --- ASGI


def _route_of_scope(scope: Any) -> str:
    route = scope.get("route")
    path = getattr(route, "path_format", None) or getattr(route, "path", None)
    if path is None:
        return route_of_path(scope["method"], scope["path"])
    return f"{scope['method']} {path}"


def _asgi(request: Request, scope: Any, send: Any) -> Any:
    """Begin a request in the task that calls its application; return what the application shall send with."""
    from asyncio import current_task

    current.set(request)
    request.begin(current_task())
    request.route = partial(_route_of_scope, scope)

    def sending(message: Any) -> Any:
        if message["type"] == "http.response.start":
            request.status = message["status"]
        return send(message)

    return sending


def watch_uvicorn(module: ModuleType, replaced: Replacements) -> None:
    """Watch requests of uvicorn, whatever the application."""
    cycle, server = module.RequestResponseCycle, core.text("uvicorn")
    original = cycle.run_asgi

    def run_asgi(self: Any, app: Any) -> Any:
        try:
            request = _arrives(server, self.transport, 1)
            request.route = partial(_route_of_scope, self.scope)
        except Exception as error:  # never into the program
            not_read(error)
            return original(self, app)
        respond = self.on_response

        def on_response() -> None:
            request.responded()
            respond()

        self.on_response = on_response

        def application(scope: Any, receive: Any, send: Any) -> Any:
            return app(scope, receive, _asgi(request, scope, send))

        return original(self, application)

    replaced.put(cycle, "run_asgi", run_asgi)


# --- aiohttp


def _route_of_resource(request: Any) -> str:
    resource = getattr(getattr(getattr(request, "match_info", None), "route", None), "resource", None)
    if resource is None:
        return route_of_path(request.method, request.path)
    return f"{request.method} {resource.canonical}"


def watch_aiohttp(module: ModuleType, replaced: Replacements) -> None:
    """Watch requests of aiohttp.web."""
    from asyncio import current_task

    handler, server = module.RequestHandler, core.text("aiohttp")
    handle, finish = handler._handle_request, handler.finish_response

    def _handle_request(self: Any, request: Any, start_time: Any, request_handler: Any) -> Any:
        try:
            ours = _arrives(server, self.transport, 2)  # what reads the data wakes the task that is here
            ours.route = partial(_route_of_resource, request)
        except Exception as error:  # never into the program
            not_read(error)
            return handle(self, request, start_time, request_handler)
        current.set(ours)  # the task of the request copies what this one has

        def handling(request: Any) -> Any:
            ours.begin(current_task())
            return request_handler(request)

        return handle(self, request, start_time, handling)

    def finish_response(self: Any, request: Any, resp: Any, start_time: Any) -> Any:
        ours = current.get()
        if isinstance(ours, Request):
            ours.status = getattr(resp, "status", ours.status)
        return finish(self, request, resp, start_time)

    replaced.put(handler, "_handle_request", _handle_request)
    replaced.put(handler, "finish_response", finish_response)


# --- streams of asyncio: HTTP that the program reads and writes itself, or another protocol


def watch_streams(module: ModuleType, replaced: Replacements) -> None:
    """Watch connections of `asyncio.start_server`: what is done for each request is in C (streams.cpp)."""
    connections: dict[int, core.Connection] = {}

    def ends(identity: int, _: object) -> None:
        connections.pop(identity, None)

    def connect(protocol: Any) -> core.Connection:
        reference = ref(protocol, partial(ends, id(protocol)))
        connection = core.Connection(qualified_name(protocol._client_connected_cb), reference)
        connections[id(protocol)] = connection
        return connection

    protocol, reader, writer = module.StreamReaderProtocol, module.StreamReader, module.StreamWriter
    made, received, waits, written = core.requests_watch_streams(
        protocol, reader, writer, connections, connect, _route_of_data, core.text("asyncio streams")
    )
    replaced.put(protocol, "connection_made", made)
    replaced.put(protocol, "data_received", received)
    replaced.put(reader, "_wait_for_data", waits)
    replaced.put(writer, "write", written)


def _route_of_data(data: bytes) -> str:
    line = _REQUEST_LINE.match(data)
    return route_of_path(*(each.decode("latin-1") for each in line.groups())) if line else ""


# --- threads


class _OfThread(threading.local):
    request: ThreadRequest | None = None


class ThreadRequest(Request):
    """A request that a thread answers by itself: what it does is in the spans of the thread."""

    __slots__ = ("_core_wait_ns", "_cpu_ns")

    def __init__(self, server: int, sock: Any) -> None:
        now = monotonic_ns()
        super().__init__(server, None, now - _least_age_ns(sock))
        self.began_ns, self.in_thread = now, True
        self._cpu_ns, self._core_wait_ns = thread_time_ns(), core.requests_core_wait()

    def ends(self) -> None:
        """Its thread has answered it."""
        self.running_ns = thread_time_ns() - self._cpu_ns
        self.write(monotonic_ns())

    def parts(self, began_ns: int, ended_ns: int) -> list[Row]:
        """Return its time in its thread, and the time in which that was ready and had no core: it is put to the end."""
        waited_ns = min(core.requests_core_wait() - self._core_wait_ns, ended_ns - began_ns)
        ran_until = ended_ns - waited_ns if waited_ns >= LONG_NS else ended_ns
        return rows_of([(began_ns, ran_until, "thread", "", ""), (ran_until, ended_ns, "core", "", "")])


def _least_age_ns(sock: Any) -> int:
    try:
        return max(0, age_of_data(sock)[0] - TICK_NS)
    except (OSError, AttributeError, struct.error):  # not TCP
        return 0


_of_thread = _OfThread()


def watch_http_server(module: ModuleType, replaced: Replacements) -> None:
    """Watch requests of handlers of http.server."""
    handler, server = module.BaseHTTPRequestHandler, core.text("http.server")
    parse, handle, respond = handler.parse_request, handler.handle_one_request, handler.send_response_only

    def parse_request(self: Any) -> Any:
        request = _of_thread.request = ThreadRequest(server, self.connection)
        parsed = parse(self)
        request.route = route_of_path(self.command or "", getattr(self, "path", ""))
        return parsed

    def send_response_only(self: Any, code: Any, message: Any = None) -> None:
        if _of_thread.request is not None:
            _of_thread.request.status = int(code)
        respond(self, code, message)

    def handle_one_request(self: Any) -> None:
        try:
            handle(self)
        finally:
            request, _of_thread.request = _of_thread.request, None
            if request is not None:
                request.ends()

    replaced.put(handler, "parse_request", parse_request)
    replaced.put(handler, "send_response_only", send_response_only)
    replaced.put(handler, "handle_one_request", handle_one_request)
