"""Signals that ask for the end of a recording of another process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_asked() -> Iterator[Callable[[], bool]]:
    """Give a function that returns whether a signal asked for the end; a second one ends strobe as usual."""
    arrived: list[int] = []

    def note(number: int, _frame: object) -> None:
        arrived.append(number)
        restore()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, note) for number in numbers]

    def restore() -> None:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

    try:
        yield lambda: bool(arrived)
    finally:
        restore()
