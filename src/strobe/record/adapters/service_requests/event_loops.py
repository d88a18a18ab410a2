"""Event loops of asyncio: which request each callback belongs to, and which callbacks keep the others waiting.

One method of asyncio runs every callback of its loops, `Handle._run`. What it costs: docs/benchmarks.md. A loop that is
not of asyncio's own code (uvloop) runs its callbacks itself: requests then have a latency only.
"""

from __future__ import annotations

import gc
from collections import deque
from contextvars import ContextVar
from itertools import islice
from time import monotonic_ns

from strobe.native import core
from strobe.record.adapter import Replacements

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from strobe.record.adapters.service_requests.request import Request
    from strobe.record.adapters.service_requests.servers import Connection

LONG_NS = 1_000_000  # what is shorter is in sums only
_MOST_LONG = 256

current: ContextVar[Request | Connection | None] = ContextVar("strobe_request", default=None)


class LoopState:
    """What is known of an event loop: when its present callback began, and its last long ones with who they were of."""

    __slots__ = ("began_ns", "long")

    def __init__(self) -> None:
        self.began_ns = 0
        self.long: deque[tuple[int, int, object]] = deque(maxlen=_MOST_LONG)

    def ran_long(self, handle: Any, began_ns: int, ended_ns: int, collected_ns: int, waiting: int) -> None:
        """Note a long callback, during all of which the first `waiting` callbacks that are ready waited."""
        whose = "garbage collector" if 2 * collected_ns > ended_ns - began_ns else _whose(handle)
        self.long.append((began_ns, ended_ns, whose))
        for ready in islice(handle._loop._ready, waiting):
            request = ready._context.get(current)
            if request is not None and not ready._cancelled:
                request.ready.append((began_ns, ended_ns))

    def causes(self, begin_ns: int, end_ns: int) -> object:
        """Return who kept the loop longest in a time: a text, a request, or an empty text where nobody did."""
        longest: dict[object, int] = {}
        for began, ended, whose in self.long:
            both = min(ended, end_ns) - max(began, begin_ns)
            if both > 0:
                longest[whose] = longest.get(whose, 0) + both
        return max(longest, key=lambda whose: longest[whose], default="")


_states: dict[Any, LoopState] = {}
_collected_ns = _collection_began_ns = 0


def state_of(loop: Any) -> LoopState:
    """Return what is known of a loop."""
    state = _states.get(loop)
    if state is None:
        for each in [each for each in _states if each.is_closed()]:
            del _states[each]
        state = _states[loop] = LoopState()
    return state


def watched(loop: Any) -> bool:
    """Return whether the callbacks of a loop are watched."""
    from asyncio import BaseEventLoop

    return isinstance(loop, BaseEventLoop)


def start(replaced: Replacements) -> None:
    """Watch every callback of every loop of asyncio, and collections of garbage."""
    from asyncio import events

    replaced.put(events.Handle, "_run", _watching(events.Handle._run, events.TimerHandle))
    gc.callbacks.append(_collecting)


def stop() -> None:
    """Watch collections no more, and forget all loops."""
    if _collecting in gc.callbacks:
        gc.callbacks.remove(_collecting)
    _states.clear()


def _watching(original: Any, timer: type[asyncio.TimerHandle]) -> Any:
    now, states, var = monotonic_ns, _states, current

    def _run(self: Any) -> None:
        loop = self._loop
        state = states.get(loop) or state_of(loop)
        context = self._context
        request = context.get(var)
        began = state.began_ns = now()
        if request is not None:
            try:
                request.wakes(self, began, timer)
            except Exception as error:  # never into the program
                not_read(error)
        waiting, collected = len(loop._ready), _collected_ns
        original(self)
        ended = now()
        try:
            if ended - began >= LONG_NS:
                state.ran_long(self, began, ended, _collected_ns - collected, waiting)
            request = context.get(var)
            if request is not None:
                request.ran(self, began, ended, _collected_ns - collected)
        except Exception as error:
            not_read(error)

    return _run


def not_read(error: Exception) -> None:
    """Count something about a request that could not be read."""
    core.count(f"requests_not_read: {type(error).__name__}", 1)


def _collecting(phase: str, info: object) -> None:
    global _collected_ns, _collection_began_ns
    if phase == "start":
        _collection_began_ns = monotonic_ns()
    elif _collection_began_ns:
        _collected_ns += monotonic_ns() - _collection_began_ns


def _whose(handle: Any) -> object:
    """Return whose a callback is: a request, or the name of the coroutine or function."""
    from strobe.record.adapters.service_requests.awaits import place_of_code, qualified_name

    request = handle._context.get(current)
    if request is not None and not request.written:
        return request.own
    callback = handle._callback
    coroutine = getattr(getattr(callback, "__self__", None), "get_coro", lambda: None)()
    code = getattr(coroutine, "cr_code", None) or getattr(callback, "__code__", None)
    return place_of_code(code) if code is not None else qualified_name(callback)
