"""Requests of services: servers are watched from their import on, event loops once they have a server.

What watches them is imported only then: most programs are not services.
"""

from __future__ import annotations

from functools import partial

from strobe.record.adapter import Hooks, Replacements
from strobe.record.options.session_settings import Session
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# Modules that hold a server, and which function of `servers` watches it.
_SERVERS = {
    "uvicorn.protocols.http.h11_impl": "watch_uvicorn",
    "uvicorn.protocols.http.httptools_impl": "watch_uvicorn",
    "aiohttp.web_protocol": "watch_aiohttp",
    "http.server": "watch_http_server",
}


class _ServiceRequests(Hooks):
    def __init__(self) -> None:
        self._replaced = Replacements()
        self._on = False
        self._loops = False

    def start(self, settings: Session) -> None:
        """Watch each server as soon as it is imported. A program of asyncio without a server pays nothing."""
        self._on = True
        for module, watch in _SERVERS.items():
            after_import(module, partial(self._server_imported, watch))
        after_import("asyncio.base_events", partial(self._loops_imported, "BaseEventLoop"))
        after_import("uvloop", partial(self._loops_imported, "Loop"))

    def stop(self) -> None:
        self._replaced.undo()
        if self._loops:
            from strobe.record.adapters.service_requests import event_loops, locks

            locks.stop()
            event_loops.stop()
        self._on = self._loops = False

    def _server_imported(self, watch: str, module: ModuleType) -> None:
        if self._on:
            from strobe.record.adapters.service_requests import servers

            servers.watch_loops = self._watch_loops
            getattr(servers, watch)(module, self._replaced)

    def _loops_imported(self, name: str, module: ModuleType) -> None:
        if not self._on:
            return
        loop: Any = getattr(module, name)
        original = loop.create_server

        def create_server(*args: Any, **kwargs: Any) -> Any:
            self._watch_loops()
            return original(*args, **kwargs)

        self._replaced.put(loop, "create_server", create_server)

    def _watch_loops(self) -> None:
        if self._on and not self._loops:
            from strobe.record.adapters.service_requests import event_loops, locks, thread_pools

            self._loops = True
            event_loops.start(self._replaced)
            locks.start(self._replaced)
            thread_pools.start(self._replaced)
            after_import("asyncio.streams", partial(self._server_imported, "watch_streams"))


HOOKS = _ServiceRequests()
