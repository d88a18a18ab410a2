"""Code that runs at the beginning and the end of every Python thread: names it in the trace, and what adapters need.

`threading.Thread._bootstrap_inner` is wrapped once; the wrapper is gone from the class when the recording ends.
"""

from __future__ import annotations

import sys

from strobe.native import core
from strobe.record.imports import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_begin: list[Callable[[], None]] = []
_end: list[Callable[[], None]] = []
_original: Any = None


def start() -> None:
    """Wrap threads as soon as `threading` is there."""
    after_import("threading", _patch)


def stop() -> None:
    """Take the wrapper off; threads that run inside it end as they would."""
    global _original
    _begin.clear()
    _end.clear()
    if _original is not None:
        sys.modules["threading"].Thread._bootstrap_inner = _original
        _original = None


def around(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Call `begin` first and `end` last in every thread that starts from now on."""
    _begin.append(begin)
    _end.append(end)


def _patch(threading: ModuleType) -> None:
    global _original
    _original = original = threading.Thread._bootstrap_inner

    def _bootstrap_inner(thread: Any) -> None:
        core.name_thread(thread.name)
        for call in _begin:
            call()
        try:
            original(thread)
        finally:
            for call in _end:
                call()

    threading.Thread._bootstrap_inner = _bootstrap_inner
