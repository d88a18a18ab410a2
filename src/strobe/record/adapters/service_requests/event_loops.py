"""Event loops: what is done where one of their callbacks lasts 1 ms and more.

Every callback is watched in C (native/python/requests): those of asyncio's own loops, and of uvloop the steps of tasks.
"""

from __future__ import annotations

import gc
import socket
import struct
import time
from collections import deque
from contextvars import ContextVar
from itertools import islice
from time import monotonic_ns

from strobe.native import core
from strobe.record.adapter import Replacements
from strobe.record.adapters.service_requests.awaits import place_of_code, qualified_name
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from strobe.record.adapters.service_requests.request import Request

LONG_NS = 1_000_000  # what is shorter is in sums only
COLLECTOR = "garbage collector"  # the cause of what it takes more than half of
_MOST_LONG = 256
_COARSE = 6  # CLOCK_MONOTONIC_COARSE, which moves with the ticks of the kernel
TICK_NS = int(time.clock_getres(_COARSE) * 1e9)  # by which the kernel counts the age of data
_AGE, _SENT = 8 + 11 * 4, 156  # tcpi_last_data_recv (ms), tcpi_data_segs_out of struct tcp_info

current: ContextVar[Request | core.Connection | None] = ContextVar("strobe_request", default=None)


class LoopState(core.LoopState):
    """What is known of an event loop, with its last long callbacks: begin, end, whose."""

    __slots__ = ("long",)

    def __init__(self, loop: Any, ready: Any) -> None:
        super().__init__(loop, ready)
        self.long: deque[tuple[int, int, object]] = deque(maxlen=_MOST_LONG)

    def ran_long(self, handle: Any, began_ns: int, ended_ns: int, collected_ns: int, waiting: int) -> None:
        """Note a long callback, during all of which the first `waiting` callbacks that are ready waited."""
        whose = COLLECTOR if 2 * collected_ns > ended_ns - began_ns else _whose(handle)
        self.long.append((began_ns, ended_ns, whose))
        for ready in islice(self.ready, waiting):
            request = ready._context.get(current)
            if request is not None and not getattr(ready, "_cancelled", False):
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
_without_looks: list[type] = []  # types of loops of which only steps of tasks are seen


def _state_of(loop: Any) -> LoopState:
    for each in [each for each in _states if each.is_closed()]:
        del _states[each]
    steps: Any = deque() if isinstance(loop, tuple(_without_looks)) else ()
    state = _states[loop] = LoopState(loop, getattr(loop, "_ready", steps))
    return state


def watched_state(loop: Any) -> LoopState | None:
    """Return what is known of a loop whose callbacks are watched."""
    state = _states.get(loop)
    if state is None:
        from asyncio import BaseEventLoop

        if isinstance(loop, (BaseEventLoop, *_without_looks)):
            state = _state_of(loop)
    return state


def start(replaced: Replacements) -> None:
    """Watch every callback of every loop of asyncio, steps of tasks in those of uvloop, and collections of garbage."""
    from asyncio import events, selector_events, tasks

    from strobe.record.adapters.service_requests.locks import wait_for
    from strobe.record.adapters.service_requests.request import Request

    kinds = tuple({tasks.Task, getattr(tasks, "_PyTask", tasks.Task)})
    core.requests_setup(Request, current, wait_for, _states, _state_of, _arrived_ns, events.TimerHandle, kinds, TICK_NS)
    loop = selector_events.BaseSelectorEventLoop
    replaced.put(loop, "_process_events", core.requests_watch_looks(loop))
    replaced.put(events.Handle, "_run", core.requests_watch_handles(events.Handle))
    gc.callbacks.append(core.requests_collecting)

    def uvloop_imported(module: ModuleType) -> None:
        _without_looks.append(module.Loop)
        replaced.put(module.Loop, "call_soon", core.requests_watch_steps(module.Loop))

    after_import("uvloop", uvloop_imported)


def stop() -> None:
    """Watch collections no more, and forget all loops."""
    if core.requests_collecting in gc.callbacks:
        gc.callbacks.remove(core.requests_collecting)
    _states.clear()
    _without_looks.clear()


def age_of_data(sock: Any) -> tuple[int, bool]:
    """Return how long ago the last data came that a socket has, ns, and whether it is the first of the connection.

    The kernel counts in ticks: the age may be one tick less, or more. OSError: not TCP.
    """
    facts = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SENT + 4)
    (age_ms,) = struct.unpack_from("I", facts, _AGE)
    sent = struct.unpack_from("I", facts, _SENT)[0] if len(facts) >= _SENT + 4 else 1
    return age_ms * 1_000_000, not sent


def _arrived_ns(transport: Any, state: LoopState, looks: int) -> int:
    """Return when the data came that a loop read which was busy before; as late as can be where that is not known.

    It was found so many looks for events ago, on a new connection more.
    """
    now = state.looked_ns or monotonic_ns()
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return now
    if not state.looked_ns:
        began, ended, _ = state.long[-1] if state.long else (0, 0, "")
        if ended - began < TICK_NS or now - ended > TICK_NS:
            return now
    try:
        age_ns, new = age_of_data(sock)
    except (OSError, AttributeError, struct.error):  # not TCP
        return now
    since = state.since(0 if new else looks) if state.looked_ns else began
    # A look that waited for the data has it at once: what is younger than a tick may be that.
    arrived = monotonic_ns() - age_ns
    return now if now - max(since, arrived) < TICK_NS else max(since, arrived)


def not_read(error: Exception) -> None:
    """Count something about a request that could not be read."""
    core.count(f"requests_not_read: {type(error).__name__}", 1)


def _whose(handle: Any) -> object:
    """Return whose a callback is: a request, or the name of the coroutine or function."""
    request = handle._context.get(current)
    if request is not None and not request.written:
        return request.own
    callback = handle._callback
    coroutine = getattr(getattr(callback, "__self__", None), "get_coro", lambda: None)()
    code = getattr(coroutine, "cr_code", None) or getattr(callback, "__code__", None)
    return place_of_code(code) if code is not None else qualified_name(callback)
