"""Runs the application under uvicorn until it is stopped."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from strobe.server.http.app import Application
from strobe.server.http.connections import Connections
from strobe.server.http.last_address import LastAddress
from strobe.server.http.trace_library import Source

# A thread that computes gives the interpreter to one that draws after this many seconds (Python's own: 0.005).
_SWITCH_S = 0.001
# Ctrl-C does not wait longer for answers that are under way.
_GRACE_S = 2


# glibc's numbers of what can be chosen (malloc.h): up to when the end of its memory is kept, and from which size on
# arrays have memory of their own, which is given back when they are freed.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _LARGE_BYTES = -1, -3, 1 << 20


def _give_back_large_arrays() -> None:
    """Let arrays of a MB go back to the system when they are freed. By itself glibc keeps up to 32 MB each, in pieces.

    A run that is being recorded is read anew again and again.
    """
    choose = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if choose is not None:
        choose(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        choose(_M_TRIM_THRESHOLD, _LARGE_BYTES)


class _Once(logging.Filter):
    """Lets a warning through once: a line for each request that is refused would fill the terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written."""
        new = record.levelno != logging.WARNING or record.msg not in self._seen
        self._seen.add(str(record.msg))
        return new


class _Server(uvicorn.Server):
    """Calls `started` once it listens and can be interrupted, and not a moment earlier; then runs `beside` requests."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], beside: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        super().__init__(config)
        self._started, self._beside = started, beside

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then call `started`."""
        await super().startup(sockets)
        self._started()
        self._work = asyncio.create_task(self._beside())  # without a reference it would be dropped


def serve(
    sources: Sequence[Source],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    prefix: str = "",
    hosts: Sequence[str] = (),
    frames: Sequence[str] = (),
    started: Callable[[str, str, int], None],
    static: Path | None = None,
    lasting: bool = True,
) -> None:
    """Serve traces until Ctrl-C; `started` gets the address once it can be opened, another one to start the browser
    with (see LaunchToken), and the port.

    The address is that under which the same traces were shown last, if it is free; or, if it is not to be `lasting`, a
    new one. Raises StrobeError where the only trace cannot be opened, OSError when the port is taken. `prefix`: path,
    or whole address, under which a proxy shows the server, `{port}` in it being the port. `hosts`: names by which it
    may be called, beside those of this machine that it listens on. `frames`: origins whose pages may show it in a
    frame, beside its own. `static` is another build of the page than the installed.
    """
    _give_back_large_arrays()
    last = LastAddress(each.path for each in sources if lasting)
    known = {name.lower() for name in (host, *hosts, urlsplit(prefix).hostname) if name}
    if host in ("0.0.0.0", "::"):
        known |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    app = Application(sources, token=last.token, static=static, hosts=frozenset(known), frames=tuple(frames))
    # Bound here and not by uvicorn: port 0 becomes a number that we can print, and the error of a taken port is ours.
    try:
        listener = socket.create_server((host, port or last.port))
    except OSError:
        if port or not last.port:
            raise
        listener = socket.create_server((host, 0))  # somebody else has it now
    listener.set_inheritable(False)
    # Connections inherit it. Without it, the body of an answer waits 40 ms for the browser to confirm the head: asyncio
    # sets it only where a socket has the number of its protocol, which create_server() leaves out.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bound = listener.getsockname()[1]
    last.keep(bound)
    address, launch = (f"{address_of(host, bound, prefix)}/{token}/" for token in (last.token, app.launch.text))
    sys.setswitchinterval(_SWITCH_S)
    try:
        _Server(configured(app), lambda: started(address, launch, bound), app.warm).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # The way to end it.
    finally:
        app.queue.close()
        listener.close()


def configured(app: Application, connections: Connections | None = None) -> uvicorn.Config:
    """Return how uvicorn is to serve an application."""
    logging.getLogger("uvicorn.error").addFilter(_Once())
    return uvicorn.Config(
        app,
        loop="asyncio",  # whatever else is installed
        # h11 refuses heads of requests beyond 64 kB, whatever else is installed.
        http=(connections or Connections()).protocol(),
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )


def address_of(host: str, port: int, prefix: str) -> str:
    """Return the address at which a browser finds the server, without the last slash."""
    path = prefix.replace("{port}", str(port)).strip("/")
    if urlsplit(path).scheme:
        return path
    shown = f"[{host}]" if ":" in host else host
    return "/".join(filter(None, (f"http://{shown}:{port}", path)))
