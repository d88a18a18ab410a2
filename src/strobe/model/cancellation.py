"""Long work whose result is no longer wanted ends early: it calls `checkpoint()` between its pieces."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class CancelledWorkError(Exception):
    """The work was cancelled; it has no result."""


class Cancellation:
    """Ends one piece of work from any thread, or `limit_s` seconds after it began."""

    def __init__(self, limit_s: float = float("inf")) -> None:
        self._limit_s, self._until = limit_s, float("inf")
        self._cancelled = threading.Event()

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
