"""Greenlets (greenlet, gevent): the recorder follows a thread from one stack to another.

greenlet has one trace function per thread. Ours is put in when the program imports greenlet, and in every thread that
starts later; `greenlet.settrace` then keeps the program's own behind it.
"""

from __future__ import annotations

from strobe.native import core
from strobe.record.program import threads
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from typing import Any

_patched: list[tuple[Any, Any, Any]] = []
_followers = 0  # adapters that need it


def start() -> None:
    """Follow greenlets as soon as the program imports them."""
    global _followers
    _followers += 1
    if _followers == 1:
        after_import("greenlet", _patch)


def stop() -> None:
    """Give `greenlet.settrace` back, and take our function out of this thread, once no adapter needs it."""
    global _followers
    _followers -= 1
    while _patched and not _followers:
        module, settrace, gettrace = _patched.pop()
        mine = module.gettrace()
        module.settrace, module.gettrace = settrace, gettrace
        settrace(mine)


def _patch(module: Any) -> None:
    settrace, gettrace = getattr(module, "settrace", None), getattr(module, "gettrace", None)
    if settrace is None or gettrace is None:
        return  # a module of the program that happens to have this name
    core.settrace(settrace(core.greenlet_switched))
    _patched.append((module, settrace, gettrace))
    module.settrace, module.gettrace = core.settrace, core.gettrace

    def begin() -> None:
        settrace(core.greenlet_switched)

    threads.at_begin(begin)
