"""Code that runs at the beginning and the end of every Python thread: names it in the trace, and what adapters need.

Two methods of `threading.Thread` are wrapped that `threading` calls in the thread itself: `_set_native_id` before its
work and `_delete` after it. Both return at once, so that no frame of ours stands on the program's stack.
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
_originals: dict[str, Any] = {}


def start() -> None:
    """Wrap threads as soon as `threading` is there."""
    after_import("threading", _patch)


def stop() -> None:
    """Take the wrapper off again."""
    _begin.clear()
    _end.clear()
    while _originals:
        name, original = _originals.popitem()
        setattr(sys.modules["threading"].Thread, name, original)


def around(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Call `begin` before and `end` after the work of every thread that starts from now on."""
    _begin.append(begin)
    _end.append(end)


def _patch(threading: ModuleType) -> None:
    thread_class = getattr(threading, "Thread", None)
    if not (hasattr(thread_class, "_set_native_id") and hasattr(thread_class, "_delete")):
        return  # a module of the program that happens to have this name
    set_native_id, delete = thread_class._set_native_id, thread_class._delete

    def _set_native_id(thread: Any) -> None:
        set_native_id(thread)
        core.name_thread(thread.name)
        for call in _begin:
            call()

    def _delete(thread: Any) -> None:
        for call in _end:
            call()
        delete(thread)

    _originals.update(_set_native_id=set_native_id, _delete=delete)
    thread_class._set_native_id, thread_class._delete = _set_native_id, _delete
