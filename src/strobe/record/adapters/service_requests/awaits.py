"""What a suspended task waits for: from the functions that it is in."""

from __future__ import annotations

import gc
import os
import re
import sysconfig

from strobe.native import core

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any


class Wait:
    """What is waited for (one of the kinds of `strobe requests`), in which code of the program, and for whom."""

    __slots__ = ("cause", "code", "kind")

    def __init__(self, kind: str, code: str, cause: str = "") -> None:
        self.kind, self.code, self.cause = kind, code, cause


# The first rule that any of a task's functions fits names its wait: file (as it ends, or a folder in it), function.
_RULES = (
    ("connection pool", r"httpcore/.*pool", r".*wait_for_connection"),
    ("connection pool", r"aiohttp/connector", r".*_wait_for_available_connection|.*_get_connection_slot"),
    ("connection pool", r"asyncpg/pool|psycopg_pool/|aiomysql/pool", r".*"),
    ("connection pool", r"redis/asyncio/connection", r"BlockingConnectionPool\."),
    (
        "outgoing call",
        r"/(httpx|httpcore|asyncpg|psycopg|aiomysql|redis|pymongo|motor|aiokafka|grpc|aiobotocore)/",
        r".*",
    ),
    ("outgoing call", r"aiohttp/(client\w*|connector|resolver)\.py", r".*"),
    ("thread pool", r"anyio/", r"CapacityLimiter\.acquire"),
    ("thread", r"anyio/", r".*run_sync_in_worker_thread"),
    ("thread", r"asyncio/threads", r"to_thread"),
    ("client", r"uvicorn/", r".*\.receive|FlowControl\.drain"),
    ("client", r"aiohttp/(streams|http_writer|base_protocol)", r".*"),
    ("queue", r"asyncio/queues", r".*"),
    ("queue", r"anyio/streams/memory", r".*"),
    ("condition", r"asyncio/locks|anyio/", r"Condition\.wait"),
    ("semaphore", r"asyncio/locks|anyio/", r"(Bounded)?Semaphore\.acquire"),
    ("lock", r"asyncio/locks|anyio/", r"Lock\.(acquire|__aenter__)"),
    ("process", r"asyncio/(base_)?subprocess|anyio/.*subprocess", r".*"),
    ("socket", r"asyncio/(streams|selector_events|sslproto)", r".*"),
    ("socket", r"anyio/", r"SocketStream|UNIXSocketStream|StreamProtocol"),
    ("sleep", r"asyncio/tasks", r"sleep"),
    ("task", r"asyncio/taskgroups|anyio/", r"TaskGroup\."),
    ("task", r"asyncio/tasks", r"wait|_wait|wait_for|_wait_for_one|gather"),
    ("event", r"asyncio/locks|anyio/", r"(Event|Barrier)\."),
)
_PATTERNS = tuple(
    (kind, re.compile(rf"(.*/)?({file})" if not file.startswith("/") else f".*{file}"), re.compile(function))
    for kind, file, function in _RULES
)
_STEPS_OF_GENERATORS = ("async_generator_asend", "async_generator_athrow", "anext_awaitable")
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))) + os.sep
_STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
# By the identity of code (its hash takes as long as all the rest): the rule that it fits, whether it is the program's,
# and the code itself, which has to live as long.
_known: dict[int, tuple[int, bool, CodeType]] = {}
_places: dict[tuple[int, int], str] = {}  # by the identity of code, and line


def wait_of(task: Any) -> Wait:
    """Return what a suspended task waits for."""
    rule, code, line = core.requests_awaited(task.get_coro(), _known, _look, _generator_of)
    kind = _RULES[rule][0] if rule < len(_RULES) else _kind_of_future(getattr(task, "_fut_waiter", None))
    if code is None:
        return Wait(kind, "")
    key = id(code), line
    place = _places.get(key)
    if place is None:
        place = _places[key] = place_of_code(code, line)
    return Wait(kind, place)


def place_of_code(code: CodeType, line: int | None = None) -> str:
    """Return a function, with its file and a line."""
    return f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{line or code.co_firstlineno})"


def qualified_name(function: object) -> str:
    """Return the name of any callable; of one that calls another (functools.partial), of that."""
    for _ in range(4):
        inner = getattr(function, "func", None)
        if inner is None:
            break
        arguments = getattr(function, "args", ())
        function = arguments[0] if getattr(inner, "__name__", "") == "run" and arguments else inner
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _generator_of(step: Any) -> object:
    """Return the asynchronous generator that a step is of, which has no attribute for it; None for all else."""
    if type(step).__name__ in _STEPS_OF_GENERATORS:
        return next((each for each in gc.get_referents(step) if hasattr(each, "ag_frame")), None)
    return None


def frames_of(coroutine: Any) -> list[FrameType]:
    """Return the frames of a suspended coroutine and of those that it awaits, outermost first."""
    frames: list[FrameType] = []
    while coroutine is not None and len(frames) < 200:
        coroutine = _generator_of(coroutine) or coroutine
        frame = next(
            (found for name in ("cr_frame", "gi_frame", "ag_frame") if (found := getattr(coroutine, name, None))), None
        )
        if frame is not None:
            frames.append(frame)
        coroutine = next(
            (found for name in ("cr_await", "gi_yieldfrom", "ag_await") if (found := getattr(coroutine, name, None))),
            None,
        )
    return frames


def _look(code: CodeType) -> tuple[int, bool, CodeType]:
    file, function = code.co_filename, code.co_qualname
    rule = next(
        (at for at, (_, of, named) in enumerate(_PATTERNS) if of.match(file) and named.match(function)), len(_RULES)
    )
    library = "site-packages" in file or "dist-packages" in file or file.startswith((*_STANDARD, _OWN, "<"))
    known = _known[id(code)] = rule, not library, code
    return known


def _kind_of_future(future: object) -> str:
    name = type(future).__name__
    return "task" if hasattr(future, "get_coro") or name == "_GatheringFuture" else "other"
