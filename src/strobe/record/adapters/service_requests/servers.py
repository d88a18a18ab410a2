"""Where each server begins a request, learns its route, and has answered it.

What replaces a coroutine function of a server is a plain one that returns the server's own coroutine: no frame of ours
is in a traceback of the program.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from functools import partial
from time import monotonic_ns, thread_time_ns
from weakref import WeakKeyDictionary

from strobe.record.adapter import Replacements
from strobe.record.adapters.service_requests.awaits import qualified_name
from strobe.record.adapters.service_requests.event_loops import current, not_read, state_of
from strobe.record.adapters.service_requests.request import Request, kind_of

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_LAST_RECEIVED = 8 + 11 * 4  # tcpi_last_data_recv of struct tcp_info: milliseconds since data came
_TICK_NS = 4_000_000  # the kernel's clock for it may be as coarse as this
_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) (\S+) HTTP/1")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})")
_WORD = re.compile(r"[A-Za-z_.-]{1,32}")


def watch_loops() -> None:
    """Watch event loops, if they are not yet: the adapter sets it."""


def route_of_path(method: str, path: str) -> str:
    """Return a route for a server that has none: what may be a value in the path is left out, and so is the query."""
    words = path.partition("?")[0].split("/")
    return f"{method} {'/'.join(word if not word or _WORD.fullmatch(word) else '{}' for word in words)}"


def arrived_ns(sock: Any, now_ns: int, since_ns: int) -> int:
    """Return when the last data came that a socket has, not before `since_ns`; `now_ns` where it is not known."""
    try:
        facts = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        (ago_ms,) = struct.unpack_from("I", facts, _LAST_RECEIVED)
    except (OSError, AttributeError, struct.error):  # not TCP
        return now_ns
    ago_ns = ago_ms * 1_000_000
    return now_ns if ago_ns < _TICK_NS else max(now_ns - ago_ns, min(since_ns, now_ns))


def _arrives(server: str, transport: Any) -> Request:
    """Return a request whose data the present callback of the event loop has received."""
    from asyncio import get_running_loop

    watch_loops()
    loop = get_running_loop()
    began = state_of(loop).began_ns or monotonic_ns()
    sock = transport.get_extra_info("socket") if transport is not None else None
    return Request(server, loop, arrived_ns(sock, began, 0) if sock is not None else began)


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

    request.find_route = partial(_route_of_scope, scope)

    def sending(message: Any) -> Any:
        if message["type"] == "http.response.start":
            request.status = message["status"]
        return send(message)

    return sending


def watch_uvicorn(module: ModuleType, replaced: Replacements) -> None:
    """Watch requests of uvicorn, whatever the application."""
    cycle: Any = module.RequestResponseCycle
    original = cycle.run_asgi

    def run_asgi(self: Any, app: Any) -> Any:
        try:
            request = _arrives("uvicorn", self.transport)
            request.route = route_of_path(self.scope["method"], self.scope["path"])
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


def watch_aiohttp(module: ModuleType, replaced: Replacements) -> None:
    """Watch requests of aiohttp.web."""
    from asyncio import current_task

    handler: Any = module.RequestHandler
    handle, finish = handler._handle_request, handler.finish_response

    def _handle_request(self: Any, request: Any, start_time: Any, request_handler: Any) -> Any:
        try:
            ours = _arrives("aiohttp", self.transport)
            ours.route = route_of_path(request.method, request.path)
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
            resource = getattr(getattr(getattr(request, "match_info", None), "route", None), "resource", None)
            if resource is not None:
                ours.route = f"{request.method} {resource.canonical}"
        return finish(self, request, resp, start_time)

    replaced.put(handler, "_handle_request", _handle_request)
    replaced.put(handler, "finish_response", finish_response)


# --- streams of asyncio: HTTP that the program reads and writes itself, or another protocol


class Connection:
    """A connection of a server: its task answers one request after the other."""

    def __init__(self) -> None:
        self.own: Request | None = None
        self.wrote_ns = 0

    @property
    def written(self) -> bool:
        """Whether it has no request at present."""
        return self.own is None or self.own.written

    @property
    def ready(self) -> list[tuple[int, int]]:
        """As of its request."""
        return self.own.ready if self.own is not None else []

    @property
    def jobs(self) -> list[Any]:
        """As of its request."""
        return self.own.jobs if self.own is not None else []

    def wakes(self, handle: Any, now_ns: int, timer: Any) -> None:
        """As of its request."""
        if self.own is not None:
            if self.own.main is None and hasattr(task := getattr(handle._callback, "__self__", None), "get_coro"):
                self.own.begin(task)
            self.own.wakes(handle, now_ns, timer)

    def ran(self, handle: Any, began_ns: int, ended_ns: int, collected_ns: int) -> None:
        """As of its request."""
        if self.own is not None:
            self.own.ran(handle, began_ns, ended_ns, collected_ns)
            if self.own.written:
                self.own = None


def watch_streams(module: ModuleType, replaced: Replacements) -> None:
    """Watch connections of `asyncio.start_server`."""
    protocol: Any = module.StreamReaderProtocol
    connect, receive = protocol.connection_made, protocol.data_received
    write, wait = module.StreamWriter.write, module.StreamReader._wait_for_data
    connections: WeakKeyDictionary[Any, Connection] = WeakKeyDictionary()

    def connection_made(self: Any, transport: Any) -> None:
        if self._client_connected_cb is None:
            connect(self, transport)
            return
        before = current.set(connections.setdefault(self, Connection()))  # the task of the connection copies it
        try:
            connect(self, transport)
        finally:
            current.reset(before)

    def data_received(self: Any, data: Any) -> None:
        connection = connections.get(self)
        if connection is not None and connection.own is None:
            try:
                connection.wrote_ns = 0
                connection.own = _arrives("asyncio streams", self._transport)
                line = _REQUEST_LINE.match(data)
                known = route_of_path(*(each.decode("latin-1") for each in line.groups())) if line else ""
                connection.own.route = known or qualified_name(self._client_connected_cb)
            except Exception as error:  # never into the program
                not_read(error)
        receive(self, data)

    def written(self: Any, data: Any) -> None:
        write(self, data)
        connection = current.get()
        if isinstance(connection, Connection) and connection.own is not None:
            if not connection.wrote_ns and (line := _STATUS_LINE.match(data)):
                connection.own.status = int(line[1])
            connection.wrote_ns = monotonic_ns()

    def _wait_for_data(self: Any, func_name: str) -> Any:
        connection = current.get()
        if isinstance(connection, Connection) and connection.own is not None and connection.wrote_ns:
            connection.own.ended_ns = connection.wrote_ns
        return wait(self, func_name)

    replaced.put(protocol, "connection_made", connection_made)
    replaced.put(protocol, "data_received", data_received)
    replaced.put(module.StreamWriter, "write", written)
    replaced.put(module.StreamReader, "_wait_for_data", _wait_for_data)


# --- threads


class _OfThread(threading.local):
    request: ThreadRequest | None = None


class ThreadRequest(Request):
    """A request that a thread answers by itself: what it does is in the spans of the thread."""

    def __init__(self, server: str, arrived: int) -> None:
        super().__init__(server, None, arrived)
        self._cpu_ns = thread_time_ns()

    def _running_ns(self) -> int:
        return thread_time_ns() - self._cpu_ns

    def _parts(self, began_ns: int, ended_ns: int) -> list[tuple[int, int, int, int, int, int]]:
        region, text = kind_of("thread")
        return [(region, began_ns, ended_ns, text, 0, 0)]


_of_thread = _OfThread()


def watch_http_server(module: ModuleType, replaced: Replacements) -> None:
    """Watch requests of handlers of http.server."""
    handler: Any = module.BaseHTTPRequestHandler
    parse, handle, respond = handler.parse_request, handler.handle_one_request, handler.send_response_only

    def parse_request(self: Any) -> Any:
        now = monotonic_ns()
        request = _of_thread.request = ThreadRequest("http.server", arrived_ns(self.connection, now, 0))
        request.began_ns = now
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
                request.write(monotonic_ns())

    replaced.put(handler, "parse_request", parse_request)
    replaced.put(handler, "send_response_only", send_response_only)
    replaced.put(handler, "handle_one_request", handle_one_request)
