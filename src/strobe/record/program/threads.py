"""Code that runs at the beginning of every Python thread: names it in the trace, and switches on what adapters need.

`threading.Thread._set_native_id` is wrapped: `threading` calls it first thing in each new thread, and it returns
before the thread's own work begins, so that no frame of ours stands on the program's stack.
"""

from __future__ import annotations

import sys

from strobe.native import core
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_begin: list[Callable[[], None]] = []
_original: Any = None


def start() -> None:
    """Wrap threads as soon as `threading` is imported."""
    after_import("threading", _patch)


def stop() -> None:
    """Take the wrapper off again."""
    global _original
    _begin.clear()
    if _original is not None:
        sys.modules["threading"].Thread._set_native_id = _original
        _original = None


def at_begin(begin: Callable[[], None]) -> None:
    """Call `begin` in every thread that starts from now on."""
    _begin.append(begin)


def name_of(thread: Any) -> str:
    """Return the name of a thread, "" where the program has a property of its own for it, which raises."""
    try:
        return str(thread.name)
    except Exception:
        return ""


def _patch(threading: ModuleType) -> None:
    global _original
    thread_class = getattr(threading, "Thread", None)
    if thread_class is None or not hasattr(thread_class, "_set_native_id"):
        return  # a module of the program that happens to have this name
    _original = original = thread_class._set_native_id

    def _set_native_id(thread: Any) -> None:
        original(thread)
        if name := name_of(thread):
            core.name_thread(name)
        for call in _begin:
            call()

    thread_class._set_native_id = _set_native_id
