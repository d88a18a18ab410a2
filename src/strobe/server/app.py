"""The application: routes, token, caching, timing. What the answers hold is made in the other modules here."""

from __future__ import annotations

import gzip
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

import strobe
from strobe.errors import StrobeError, UsageError
from strobe.server import answers
from strobe.server.endpoints import JSON_TYPE
from strobe.server.facts import Facts
from strobe.server.openapi import openapi
from strobe.server.tables import Body

if TYPE_CHECKING:
    from strobe.store.trace import Trace

# Nothing is loaded from elsewhere, whatever the bundle or a trace may hold. Styles: Preact sets `style` attributes.
_SECURITY = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_WORTH_COMPRESSING = 8192
# Two answers at a time: more would only make the one that the user waits for slower.
_AT_A_TIME = 2

Handler = Callable[[Request], Awaitable[Response]]


def new_token() -> str:
    """Return a token that nobody guesses: it is the first part of every path, so that any proxy passes it on."""
    return secrets.token_urlsafe(12)


def page_folder() -> Path:
    """Return the folder of the built page: in an editable installation another than that of the sources."""
    folders = [Path(folder) / "static" for folder in strobe.__path__]
    return next((folder for folder in folders if (folder / "index.html").is_file()), folders[0])


def create_app(trace: Trace, path: Path, *, token: str, static: Path | None = None) -> Starlette:
    """Return the application for one trace. Every address begins with `/TOKEN/`; those in the page are relative."""
    facts = Facts(trace, path)
    facts.warm()
    static = static or page_folder()
    turns = anyio.Semaphore(_AT_A_TIME)
    routes = [
        Route("/api/openapi.json", _description(facts)),
        Route("/api/{name:path}", _answering(facts, turns)),
        Route("/", _file(static, "index.html")),
        Route("/assets/{name}", _asset(static)),
    ]
    return Starlette(routes=[Mount(f"/{token}", routes=routes), Route("/{rest:path}", _closed)])


def _description(facts: Facts) -> Handler:
    async def described(_: Request) -> Response:
        text = await anyio.to_thread.run_sync(lambda: json.dumps(openapi(answers.endpoints(), facts)))
        return Response(text, headers=_SECURITY, media_type=JSON_TYPE)

    return described


def _answering(facts: Facts, turns: anyio.Semaphore) -> Handler:
    async def answering(request: Request) -> Response:
        name = request.path_params["name"]
        endpoint = answers.endpoint(name)
        if endpoint is None:
            return _refused(404, f"there is no question '{name[:60]}'", "All questions: api/openapi.json")
        etag = _etag(facts.version, request.url.path, request.url.query)
        headers = {"ETag": etag, "Cache-Control": "private, max-age=3600", "Vary": "Accept-Encoding", **_SECURITY}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        asked = time.perf_counter()
        async with turns:
            # A request that was superseded while it waited for its turn is not worth its work.
            if await request.is_disconnected():
                return Response(status_code=499)
            begun = time.perf_counter()
            try:
                values = endpoint.values(facts, request.query_params.multi_items())
                body = await anyio.to_thread.run_sync(endpoint.body, facts, values)
            except StrobeError as error:
                return _refused(400 if isinstance(error, UsageError) else 500, error.what, error.do)
        done = time.perf_counter()
        headers["Server-Timing"] = f"wait;dur={1e3 * (begun - asked):.1f}, answer;dur={1e3 * (done - begun):.1f}"
        return _packed(request, body, headers)

    return answering


def _refused(status: int, what: str, do: str = "") -> Response:
    return Response(json.dumps({"error": what, "do": do}), status, _SECURITY, JSON_TYPE)


def _packed(request: Request, body: Body, headers: Mapping[str, str]) -> Response:
    data, headers = body.data, dict(headers)
    if len(data) >= _WORTH_COMPRESSING and "gzip" in request.headers.get("accept-encoding", ""):
        # Level 1: cells shrink fivefold at about 5 ms for a megabyte; the next levels cost more than they save.
        data = gzip.compress(data, compresslevel=1, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(data, headers=headers, media_type=body.media_type)


def _etag(version: str, path: str, query: str) -> str:
    return f'"{hashlib.sha256(f"{version}|{strobe.__version__}|{path}|{query}".encode()).hexdigest()[:20]}"'


def _file(folder: Path, name: str) -> Handler:
    async def endpoint(_: Request) -> Response:
        if not (folder / name).is_file():
            return PlainTextResponse("strobe: the web page was not built into this installation: run ./dev sync", 500)
        return FileResponse(folder / name, headers={**_SECURITY, "Cache-Control": "no-cache"})

    return endpoint


def _asset(folder: Path) -> Handler:
    async def endpoint(request: Request) -> Response:
        path = folder / "assets" / request.path_params["name"]
        if not path.is_file():
            return PlainTextResponse("strobe: no such file", 404)
        # The name holds a hash of the content: it never changes.
        return FileResponse(path, headers={**_SECURITY, "Cache-Control": "private, max-age=31536000, immutable"})

    return endpoint


async def _closed(_: Request) -> Response:
    return PlainTextResponse("strobe: open the whole address that `strobe view` printed; it holds a token\n", 404)
