"""Runs the application under uvicorn until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from strobe.server.app import create_app, new_token

if TYPE_CHECKING:
    from strobe.store.trace import Trace


class _Server(uvicorn.Server):
    """Tells when it listens and can be interrupted: not a moment earlier."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then say so."""
        await super().startup(sockets)
        self._started()


def serve(
    trace: Trace, *, host: str = "127.0.0.1", port: int = 0, started: Callable[[str], None], static: Path | None = None
) -> None:
    """Serve a trace until Ctrl-C; `started` gets the address once it can be opened. OSError when the port is taken.

    `static` is another build of the page than the installed one.
    """
    token = new_token()
    app = create_app(trace, trace.path, token=token, static=static)
    # Bound here and not by uvicorn: port 0 becomes a number that we can print, and a taken port is our error to tell.
    listener = socket.create_server((host, port))
    listener.set_inheritable(False)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", server_header=False)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/{token}/"
    try:
        _Server(config, lambda: started(address)).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # The way to end it.
    finally:
        listener.close()
