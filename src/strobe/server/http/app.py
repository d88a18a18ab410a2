"""The application: addresses, caching, timing, refusals. Other modules make the answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

import strobe
from strobe.api.imports import imported
from strobe.api.trace import open_trace
from strobe.errors import FormatError, InconclusiveError, StrobeError, UsageError
from strobe.model.cache_folder import cache_folder, make_cache_folder
from strobe.model.units import format_bytes
from strobe.present.html_parts import escape
from strobe.present.live import openmetrics, status
from strobe.present.summary import write_summary
from strobe.server.http.access_control import NOTES, SECURITY, UPLOAD, AccessControl, refused
from strobe.server.http.kept_answers import LONG_S, KeptAnswers
from strobe.server.http.trace_library import Library, Source
from strobe.server.http.work_queue import BusyError, LateError, Limits, WithdrawnError, WorkQueue
from strobe.server.recent import Recent
from strobe.server.routing import routes
from strobe.server.routing.bodies import CELLS_TYPE, JSON_TYPE, Body
from strobe.server.routing.endpoints import Endpoint
from strobe.server.routing.openapi import openapi
from strobe.server.run.notes import MOST_CHANGE, changed_notes
from strobe.server.trace_context import TraceContext
from strobe.trace.archive import SUFFIX
from strobe.trace.definition_rows import process_rows

_WORTH_COMPRESSING = 8192
_GZIP = 16 + zlib.MAX_WBITS  # zlib in the wrapping of gzip, without a time
# A file that is sent to be opened is at most so large; so are the last characters of its name that are kept.
MOST_UPLOAD, _LONGEST_NAME = 1 << 30, 100
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_GONE = 499  # nobody reads it
_SHOWN = 60
_BROKEN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><title>strobe</title></head>
<body><h1>This run cannot be opened</h1><pre>{}</pre><p><a href="../../">All runs</a></p></body></html>
"""
_log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")


class _NoTraceError(Exception):
    """An address names a trace that is not shown."""


@dataclass(frozen=True)
class _Packed:
    """A body as it is sent."""

    data: bytes
    media_type: str
    encoding: str


def page_folder() -> Path:
    """Return the folder of the built page: in an editable installation another than that of the sources."""
    folders = [Path(folder) / "static" for folder in strobe.__path__]
    return next((folder for folder in folders if (folder / "index.html").is_file()), folders[0])


class Application:
    """Answers for one trace or several.

    Every address begins with `/TOKEN/`; those in the page are relative. Each trace is below `t/NAME/`, and `runs/` is
    the list of all. `/TOKEN/` is the only trace, opened at once, or that list. `hosts`, `frames`: see AccessControl.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        token: str,
        static: Path | None = None,
        hosts: frozenset[str] = frozenset(),
        frames: tuple[str, ...] = (),
        limits: Limits | None = None,
    ) -> None:
        self.library, self.queue = Library(sources), WorkQueue(limits)
        self._kept = Recent[_Packed](self.queue.limits.kept_bytes)
        self._lasting = KeptAnswers(Path(cache_folder()) / "answers")
        static = static or page_folder()
        self._index = static / "index.html"
        assets = static / "assets"
        # Only files of this list are served, whatever a path contains.
        self._assets = {path.name: path for path in (assets.iterdir() if assets.is_dir() else ()) if path.is_file()}
        of_a_trace: dict[str, Handler] = {
            "/api/openapi.json": self._description,
            "/api/progress": self._progress,
            "/api/{name:path}": self._answer,
            "/assets/{name}": self._asset,
            "/metrics": self._metrics,
            "/": self._page,
        }
        handlers = {f"/t/{{trace}}{path}": handler for path, handler in of_a_trace.items()}
        handlers |= {
            "/t/{trace}": self._with_slash,
            "/runs/": partial(self._runs_page, "../"),
            "/runs/names": self._names,
            "/runs/list": self._runs,
            "/runs/list/{trace}": self._summarised,
            "/runs/assets/{name}": self._asset,
        }
        if len(self.library.names) == 1:
            self.library.open(self.library.names[0])
            handlers |= of_a_trace
        else:
            handlers |= {"/": partial(self._runs_page, "./"), "/assets/{name}": self._asset}
        handlers |= {"/{rest:path}": self._nothing}
        sent = {UPLOAD: self._upload, NOTES: self._note, f"/t/{{trace}}{NOTES}": self._note}
        write = (Route(path, _with_refusals(handler), methods=["POST"]) for path, handler in sent.items())
        read = (Route(path, _with_refusals(handler)) for path, handler in handlers.items())
        inside = Starlette(routes=[*write, *read])
        inside.router.redirect_slashes = False  # a redirect would contain an absolute address
        self._access = AccessControl(inside, token, hosts, frames)
        self.launch = self._access.launch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._access(scope, receive, send)

    async def warm(self) -> None:
        """Answer what the page of the only trace asks first. A request that comes meanwhile waits for that answer."""
        if len(self.library.names) > 1:
            return
        for name in ("processes", "locations"):
            await _with_refusals(self._answer)(_asked(name))
        await _with_refusals(self._sums_of_ranks)(_asked("window/bars"))

    async def _sums_of_ranks(self, request: Request) -> Response:
        """Answer what the page of ranks asks first, if there are some, unless that takes as long as reading the run."""
        context = await self._facts(request)
        ranks = {each.rank for each in process_rows(context.trace)} - {None}
        has_sums = (context.name, "sums"), lambda: context.trace.pyramid.has_sums()
        if len(ranks) < 2 or not await self._queued(request, *has_sums, slow=False):
            return await self._nothing(request)
        start_ns, end_ns = context.bounds
        return await self._answer(_asked("window/bars", f"start_ns={start_ns}&end_ns={end_ns}&of=ranks&limit=0"))

    async def _answer(self, request: Request) -> Response:
        """Answer a question to a trace."""
        name = request.path_params["name"]
        endpoint = routes.endpoint(name)
        if endpoint is None:
            return refused(404, f"unknown route '{name[:_SHOWN]}'", "All routes: api/openapi.json")
        context = await self._facts(request)
        values = endpoint.values(context, request.query_params.multi_items())
        noted = context.noted() if endpoint.noted else ""
        etag = _etag(context, request, noted)
        changes = endpoint.noted or context.trace.info.running
        lasts = "no-cache" if changes else "private, max-age=3600"
        headers = {"ETag": etag, "Cache-Control": lasts, "Vary": "Accept-Encoding", **SECURITY}
        if request.query_params.get("other"):  # the other run's changes are not in the tag
            headers |= {"Cache-Control": "no-store"}
        elif request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        key = (context.name, context.version, endpoint.name, noted, tuple(sorted(values.items())), zipped)
        # What another trace had under the same name is not known.
        keeps = endpoint.slow and context.recorded and not values.get("other")
        lasting = f"{context.recorded}|{key[2:]}" if keeps else ""
        asked, begun = time.perf_counter(), float("inf")

        def work() -> _Packed:
            nonlocal begun
            if known := self._kept.get(key):  # made since this was asked
                return known
            begun = time.perf_counter()
            if lasting and (kept := self._lasting.get(lasting)):
                media_type, encoding, data = kept.split(b"\n", 2)
                return _Packed(data, media_type.decode(), encoding.decode())
            made = _packed(endpoint.body(context, values), zipped)
            if lasting and time.perf_counter() - begun > LONG_S:
                self._lasting.put(lasting, f"{made.media_type}\n{made.encoding}\n".encode() + made.data)
            if not endpoint.slow:
                self._kept.put(key, made, len(made.data))
            return made

        packed = self._kept.get(key)
        if packed is None:
            builds = CELLS_TYPE in endpoint.media and not await self._has_tiles(request, context, endpoint)
            rows = endpoint.rows(values)
            slow = endpoint.slow and lasting not in self._lasting
            packed = await self._queued(request, key, work, slow=slow or builds, rows=rows)
        done = time.perf_counter()
        begun = min(begun, done)  # somebody else had asked before
        headers["Server-Timing"] = f"wait;dur={1e3 * (begun - asked):.1f}, answer;dur={1e3 * (done - begun):.1f}"
        if packed.encoding:
            headers["Content-Encoding"] = packed.encoding
        return Response(packed.data, headers=headers, media_type=packed.media_type)

    async def _has_tiles(self, request: Request, context: TraceContext, endpoint: Endpoint) -> bool:
        """Return whether a picture finds the tiles that it needs."""
        of_rows = any(parameter.of == "place" for parameter in endpoint.parameters)
        if of_rows in context.tiles_found:
            return True
        # This looks at a file of each process: elsewhere than here, where everybody else would wait.
        key = (context.name, "tiles", of_rows)
        return await self._queued(request, key, lambda: context.has_tiles(of_rows=of_rows), slow=False)

    async def _description(self, request: Request) -> Response:
        """Answer with the description of all questions to a trace."""
        context = await self._facts(request)
        key = (context.name, "openapi.json")
        text = await self._queued(request, key, lambda: json.dumps(openapi(routes.endpoints(), context)), slow=True)
        return Response(text, headers=SECURITY, media_type=JSON_TYPE)

    async def _page(self, request: Request) -> Response:
        """Answer with the page of a trace; where that cannot be opened, with a page that gives the reason."""
        if not self._index.is_file():
            return refused(500, "the web page was not built into this installation", "Run ./dev sync")
        try:
            await self._facts(request)
        except StrobeError as error:
            return HTMLResponse(_BROKEN.format(escape(str(error))), 422, SECURITY)
        return FileResponse(self._index, headers={**SECURITY, "Cache-Control": "no-cache"})

    async def _asset(self, request: Request) -> Response:
        """Answer with a file of the page."""
        path = self._assets.get(request.path_params["name"])
        if path is None:
            return await self._nothing(request)
        # The name holds a hash of the content: it never changes.
        return FileResponse(path, headers={**SECURITY, "Cache-Control": "private, max-age=31536000, immutable"})

    async def _runs_page(self, root: str, _: Request) -> Response:
        """Answer with the page of all runs; `root`: the way to the address behind the token."""
        if not self._index.is_file():
            return refused(500, "the web page was not built into this installation", "Run ./dev sync")
        page = self._index.read_text(encoding="utf-8").replace('id="app"', f'id="app" data-root="{root}"')
        return HTMLResponse(page, headers={**SECURITY, "Cache-Control": "no-cache"})

    async def _names(self, _: Request) -> Response:
        """Answer with the names of all runs."""
        return _json(self.library.names)

    async def _runs(self, request: Request) -> Response:
        """Answer with what is known of all runs."""
        return _json(await self._queued(request, "runs", self.library.runs, slow=False))

    async def _summarised(self, request: Request) -> Response:
        """Answer with what is known of a run once it was summed up."""
        name = request.path_params["trace"]
        if name not in self.library:
            raise _NoTraceError
        return _json(await self._queued(request, ("run", name), lambda: self.library.summarised(name), slow=True))

    async def _progress(self, request: Request) -> Response:
        """Answer with how much of what somebody asked a trace is done: by question a share from 0 to 1."""
        trace = request.path_params.get("trace", self.library.names[0])
        shares = self.queue.shares().items()
        # A question to a trace is a tuple of its name, its version, the question, ...; see _answer.
        asked = {key[2]: share for key, share in shares if isinstance(key, tuple) and key[0] == trace and len(key) > 3}
        others = {key[0]: share for key, share in shares if key in (("open", trace), ("run", trace))}
        return _json(asked | {str(what): share for what, share in others.items()})

    async def _upload(self, request: Request) -> Response:
        """Import the file that is sent, into the user's cache, and answer with the name of its run."""
        name = re.sub(r"[^\w.+-]+", "_", Path(request.query_params.get("name", "")).name)[-_LONGEST_NAME:] or "file"
        uploads = Path(make_cache_folder("uploads"))
        with tempfile.TemporaryDirectory(dir=uploads) as work:
            path, size, digest = Path(work) / name, 0, hashlib.sha256()
            with path.open("wb") as file:
                async for part in request.stream():
                    size += len(part)
                    if size > MOST_UPLOAD:
                        what = f"a file that is sent has at most {format_bytes(MOST_UPLOAD)}"
                        return refused(413, what, "strobe view FILE opens one of any size.")
                    digest.update(part)
                    await asyncio.to_thread(file.write, part)
            folder = Path(cache_folder()) / f"{name}-{digest.hexdigest()[:8]}{SUFFIX}"
            try:
                await self._queued(request, ("upload", folder), lambda: opened_upload(path, folder), slow=True)
            except FormatError as error:
                raise UsageError(error.what, do=error.do) from error
        return _json({"name": self.library.add(Source(folder, partial(open_trace, folder, jobs=1)), name)})

    async def _note(self, request: Request) -> Response:
        """Change what is noted on a run, and answer with all of it. The trace need not be open."""
        name = request.path_params.get("trace", self.library.names[0])
        if name not in self.library or ("trace" not in request.path_params and len(self.library.names) > 1):
            raise _NoTraceError
        # A page of another site cannot send this type without asking first, and is refused then.
        if request.headers.get("content-type", "").partition(";")[0].strip() != JSON_TYPE:
            raise UsageError(f"a change of the notes has the type {JSON_TYPE}")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_CHANGE:
                return refused(413, f"a change of the notes has at most {format_bytes(MOST_CHANGE)}")
        return _json(await asyncio.to_thread(changed_notes, self.library.path(name), body))

    async def _metrics(self, request: Request) -> Response:
        """Answer with the state of a run, as a Prometheus server reads it."""
        context = await self._facts(request)
        text = await self._queued(
            request, (context.name, "metrics"), lambda: openmetrics(status(context.trace)), slow=True
        )
        return Response(text, headers={**SECURITY, "Cache-Control": "no-store"}, media_type=OPENMETRICS_TYPE)

    async def _with_slash(self, request: Request) -> Response:
        """Send on to the address that the relative ones in the page are made for."""
        name = quote(request.path_params["trace"], safe="")
        return Response(status_code=308, headers={**SECURITY, "Location": f"{name}/"})

    async def _nothing(self, _: Request) -> Response:
        return refused(404, "there is nothing at this address")

    async def _facts(self, request: Request) -> TraceContext:
        """Return the trace that an address names; it is opened where it is not yet."""
        name = request.path_params.get("trace", self.library.names[0])
        if name not in self.library:
            raise _NoTraceError
        context = self.library.opened(name)
        if context is None or context.outdated:
            context = await self._queued(request, ("open", name), lambda: self.library.open(name), slow=True)
            # Of a run that is being recorded, nobody asks for earlier answers again.
            version = context.version
            self._kept.drop(lambda key: key[0] == name and key[1] != version)
        return context

    async def _queued(
        self, request: Request, key: Hashable, work: Callable[[], Result], *, slow: bool, rows: int = 1
    ) -> Result:
        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        # A request that was withdrawn while it waited to be read is not worth its work.
        if await request.is_disconnected():
            raise WithdrawnError
        return await self.queue.answer(key, work, slow=slow, gone=gone, rows=rows)


def opened_upload(path: Path, folder: Path) -> Path:
    """Import a file into a folder, with its summary, unless it is there. Raises FormatError where it is no trace."""
    if not folder.is_dir():
        imported([path], folder, talk=False)
        write_summary(open_trace(folder, jobs=1))
    return folder


def _json(value: object) -> Response:
    headers = {**SECURITY, "Cache-Control": "no-store"}
    return Response(json.dumps(value, default=asdict), headers=headers, media_type=JSON_TYPE)


def _asked(name: str, query: str = "") -> Request:
    """Return a question as a browser asks it that does not leave."""

    async def never() -> Message:
        await asyncio.Event().wait()
        return {}

    question = {"path": f"/api/{name}", "path_params": {"name": name}, "query_string": query.encode()}
    return Request({"type": "http", "headers": [(b"accept-encoding", b"gzip")], **question}, never)


def _with_refusals(handler: Handler) -> Handler:
    """Answer a handler's errors with one sentence each."""

    async def answering(request: Request) -> Response:
        try:
            return await handler(request)
        except StrobeError as error:
            status = 400 if isinstance(error, UsageError) else 422 if isinstance(error, InconclusiveError) else 500
            return refused(status, error.what, error.do)
        except _NoTraceError:
            return refused(404, "this server shows no trace of that name")
        except WithdrawnError:
            return Response(status_code=_GONE)
        except BusyError:
            return refused(503, "too many requests wait already", "Ask again in a moment.", {"Retry-After": "1"})
        except LateError:
            do = "The command line (strobe --help) has no time limit."
            return refused(504, "the answer took longer than a server may take", do)
        except MemoryError:
            return refused(400, "the answer would need more memory than is available", "Ask for less at once.")
        except Exception as error:
            # A bug: the terminal of the server shows where it happened, the page a sentence.
            _log.exception("a question was not answered")
            return refused(500, f"the server could not answer ({type(error).__name__})", "See its terminal window.")

    return answering


def _packed(body: Body, zipped: bool) -> _Packed:
    if zipped and len(body.data) >= _WORTH_COMPRESSING:
        # Cells shrink fivefold at about 5 ms for a megabyte. They repeat themselves next to where they are: looking no
        # further costs a quarter less than level 1, for as many bytes; JSON repeats itself farther away.
        near = zlib.Z_RLE if body.media_type == CELLS_TYPE else zlib.Z_DEFAULT_STRATEGY
        deflate = zlib.compressobj(level=1, wbits=_GZIP, strategy=near)
        return _Packed(deflate.compress(body.data) + deflate.flush(), body.media_type, "gzip")
    return _Packed(body.data, body.media_type, "")


def _etag(context: TraceContext, request: Request, noted: str) -> str:
    text = f"{context.version}|{noted}|{strobe.__version__}|{request.url.path}|{request.url.query}"
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]}"'
