"""Long work shows how far it is, and ends early where its result is no longer wanted: between its pieces.

It calls `checkpoint()` there, or goes through them with `pieces()`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")


class CancelledWorkError(Exception):
    """The work was cancelled; it has no result."""


class Cancellation:
    """Ends one piece of work from any thread, or `limit_s` seconds after it began; `share`: how much of it is done."""

    def __init__(self, limit_s: float = float("inf")) -> None:
        self._limit_s, self._until = limit_s, float("inf")
        self._cancelled = threading.Event()
        self.share, self._piece = 0.0, (0.0, 1.0)

    def cancel(self) -> None:
        """End the work at its next checkpoint."""
        self._cancelled.set()

    @contextmanager
    def work(self) -> Iterator[None]:
        """In this context and thread, do the work that can be cancelled."""
        self._until = time.monotonic() + self._limit_s
        token = _CURRENT.set(self)
        try:
            checkpoint()
            yield
        finally:
            _CURRENT.reset(token)

    @contextmanager
    def piece(self, begin: float, end: float) -> Iterator[None]:
        """Do what is this much of the piece that is being done, as shares of it from 0 to 1."""
        low, high = self._piece
        self._piece = low + begin * (high - low), low + end * (high - low)
        self.share = max(self.share, self._piece[0])
        try:
            yield
            self.share = max(self.share, self._piece[1])
        finally:
            self._piece = low, high

    @property
    def ends(self) -> bool:
        """Whether the work is to end."""
        return self._cancelled.is_set() or time.monotonic() > self._until

    def check(self) -> None:
        """Raise CancelledWorkError if the work is to end."""
        if self.ends:
            raise CancelledWorkError


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current() -> Cancellation | None:
    """Return what can end the work of this thread, None if nothing can: for work that does not call `checkpoint`."""
    return _CURRENT.get()


def checkpoint() -> None:
    """Raise CancelledWorkError if the work of this thread is to end. Costs well below a microsecond."""
    current = _CURRENT.get()
    if current is not None:
        current.check()


def piece(begin: float, end: float) -> AbstractContextManager[None]:
    """Do what is this much of the work of this thread, as shares from 0 to 1 of the piece that is being done."""
    current = _CURRENT.get()
    return current.piece(begin, end) if current is not None else nullcontext()


def pieces(items: Sequence[Item], sizes: Sequence[float] | None = None) -> Iterator[Item]:
    """Yield items, each of which is a piece of the work of this thread; `sizes`: how much each is, else all alike.

    Raises CancelledWorkError between two of them if the work is to end.
    """
    current = _CURRENT.get()
    if current is None:
        yield from items
        return
    sizes = sizes or [1.0] * len(items)
    whole, done = sum(sizes) or 1.0, 0.0
    for item, size in zip(items, sizes, strict=True):
        current.check()
        with current.piece(done / whole, (done + size) / whole):
            yield item
        done += size
