"""The order of answers. Pictures and slow questions wait in different queues, so that no picture waits for an analysis.

In a queue, small questions come before large ones, for a while: see `_Lane`. A question that several clients ask at
once is answered once. Work that nobody waits for any more is dropped if it has not begun, and ends at its next
checkpoint if it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from strobe.model.cancellation import Cancellation, CancelledWorkError

Result = TypeVar("Result")
# A question of so many rows more than another comes as if it had been asked one question later.
_ROWS_A_TURN = 8


@dataclass(frozen=True)
class Limits:
    """What a server does at once, and for how long.

    `quick` and `slow`: questions of each kind that are answered at once; more would only slow each other down.
    `waiting`: questions of a kind that may wait. `slow_s`: seconds that a slow one may take. `kept_bytes`: size of the
    finished pictures that are kept for the same question.
    """

    quick: int = 2
    slow: int = 2
    waiting: int = 256
    slow_s: float = 300.0
    kept_bytes: int = 64 << 20


class WithdrawnError(Exception):
    """Whoever asked has gone."""


class BusyError(Exception):
    """Too many requests wait already."""


class LateError(Exception):
    """The answer took longer than it may."""


@dataclass
class _Flight(Generic[Result]):
    """One question that is being answered, or waits for its turn; `askers`: how many wait for it."""

    future: Future[Result]
    cancellation: Cancellation
    askers: int = 0


class _Lane:
    """A queue, and the threads that answer its questions.

    A question for n rows waits for those before it, and is overtaken by at most n / _ROWS_A_TURN later ones: small
    questions need not wait for the large ones of others, and no large one waits for ever.
    """

    def __init__(self, name: str, threads: int, limit_s: float) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"strobe-{name}")
        self._waiting: list[_Turn] = []
        self._arrived = 0
        self._lock = threading.Lock()
        self.limit_s = limit_s
        self.unfinished = 0

    def submit(self, work: Callable[[], Result], rows: int) -> Future[Result]:
        """Let a thread do some work when it is its turn."""
        future: Future[Result] = Future()
        with self._lock:
            self._arrived += 1
            turn = _Turn(self._arrived * _ROWS_A_TURN + rows, self._arrived, partial(_fulfil, future, work))
            heapq.heappush(self._waiting, turn)
        # As many as there are turns: a thread that is free takes the first of those that wait by then.
        self._threads.submit(self._take_turn)
        return future

    def close(self) -> None:
        """Begin no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _take_turn(self) -> None:
        with self._lock:
            turn = heapq.heappop(self._waiting)
        turn.work()
        del turn  # as below


@dataclass(order=True)
class _Turn:
    """Work that waits: the lowest `place` comes first, of equal ones the one that was asked for first."""

    place: int
    number: int
    work: Callable[[], None] = field(compare=False)


class WorkQueue:
    """Takes questions from any event loop, and lets threads answer them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._quick = _Lane("quick", self.limits.quick, float("inf"))
        self._slow = _Lane("slow", self.limits.slow, self.limits.slow_s)
        self._flights: dict[Hashable, _Flight[Any]] = {}
        self._lock = threading.Lock()

    @property
    def unfinished(self) -> int:
        """Questions that wait for their turn or are being worked on."""
        return self._quick.unfinished + self._slow.unfinished

    async def answer(
        self,
        key: Hashable,
        make: Callable[[], Result],
        *,
        slow: bool,
        gone: Callable[[], Awaitable[object]],
        rows: int = 1,
    ) -> Result:
        """Return what `make` returns in a thread. Questions with the same key share it.

        `rows` is the size of the request; `gone` ends when the asker has left. Raises what `make` raises;
        WithdrawnError, BusyError, LateError.
        """
        flight = self._join(key, make, self._slow if slow else self._quick, rows)
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        flight.future.add_done_callback(lambda _: _tell(loop, done))
        waiters = {asyncio.ensure_future(done.wait()), asyncio.ensure_future(gone())}
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
            if not flight.future.done():
                raise WithdrawnError
            return flight.future.result()
        except CancelledWorkError:
            raise LateError from None
        except CancelledError:  # the server ends
            raise WithdrawnError from None
        finally:
            for waiter in waiters:
                waiter.cancel()
            self._leave(key, flight)
            del flight  # an error that is raised here has this frame

    def shares(self) -> dict[Hashable, float]:
        """Return by question how much of its answer is made, from 0 to 1."""
        with self._lock:
            return {key: flight.cancellation.share for key, flight in self._flights.items()}

    def close(self) -> None:
        """End all work at its next checkpoint, and begin no more."""
        for lane in (self._quick, self._slow):
            lane.close()
        with self._lock:
            flights = list(self._flights.values())
        for flight in flights:
            flight.cancellation.cancel()
            flight.future.cancel()

    def _join(self, key: Hashable, make: Callable[[], Result], lane: _Lane, rows: int) -> _Flight[Result]:
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                if lane.unfinished >= self.limits.waiting:
                    raise BusyError
                cancellation = Cancellation(lane.limit_s)
                lane.unfinished += 1
                flight = _Flight(lane.submit(partial(_worked, cancellation, make), rows), cancellation)
                self._flights[key] = flight
                # Outside of this block: a future that is done already calls back at once.
            flight.askers += 1
            fresh = flight.askers == 1
        if fresh:
            # Not of the flight: it would hold itself, and its result, until the garbage collector looks for cycles.
            flight.future.add_done_callback(partial(self._finished, key, lane))
        return flight

    def _leave(self, key: Hashable, flight: _Flight[Result]) -> None:
        with self._lock:
            flight.askers -= 1
            if flight.askers:
                return
            self._forget(key, flight.future)
        flight.cancellation.cancel()
        flight.future.cancel()

    def _finished(self, key: Hashable, lane: _Lane, future: Future[Result]) -> None:
        with self._lock:
            lane.unfinished -= 1
            self._forget(key, future)

    def _forget(self, key: Hashable, future: Future[Result]) -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.future is future:
            del self._flights[key]


def _worked(cancellation: Cancellation, make: Callable[[], Result]) -> Result:
    with cancellation.work():
        return make()


def _fulfil(future: Future[Result], work: Callable[[], Result]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
        del future  # the error has this frame: both would hold each other
    else:
        future.set_result(result)


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
        loop.call_soon_threadsafe(done.set)
