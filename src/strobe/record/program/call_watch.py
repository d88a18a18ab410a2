"""Waits for calls of one Python function, at (nearly) no cost: a window of the recording begins or ends there.

CPython 3.11: a frame evaluation function in the core. 3.12 and later: sys.monitoring, which forgets every other
function after its first call.
"""

from __future__ import annotations

import sys

from strobe.native import core

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

_tool: int | None = None


def start(name: str, at_begin: Callable[[], None] | None, at_end: Callable[[], None] | None) -> None:
    """Call `at_begin` before and `at_end` after each call of MODULE.QUALNAME, until stop.

    Raises RuntimeError if other tools have taken all places.
    """
    stop()
    if sys.version_info < (3, 12):
        core.call_watch_start(name, at_begin, at_end)
    else:
        _monitor(name, at_begin, at_end)


def stop() -> None:
    """Wait no longer."""
    global _tool
    if sys.version_info < (3, 12):
        core.call_watch_stop()
    elif _tool is not None:
        sys.monitoring.set_events(_tool, 0)
        sys.monitoring.free_tool_id(_tool)
        _tool = None


if sys.version_info >= (3, 12):

    def _monitor(name: str, at_begin: Callable[[], None] | None, at_end: Callable[[], None] | None) -> None:
        global _tool
        monitoring = sys.monitoring
        events = monitoring.events
        # 0 to 2 and 5 have owners by convention: debugger, coverage, profiler, optimizer.
        free = [tool for tool in (4, 3, 5, 2, 1, 0) if monitoring.get_tool(tool) is None]
        if not free:
            raise RuntimeError(
                "other tools watch this program: all places for tools are taken, so calls cannot be waited for"
            )
        _tool = free[0]
        monitoring.use_tool_id(_tool, "strobe windows")

        def wanted(code: CodeType) -> bool:
            if not name.endswith("." + code.co_qualname):
                return False
            return bool(sys._getframe(2).f_globals.get("__name__") == name[: -len(code.co_qualname) - 1])

        def begins(code: CodeType, offset: int) -> object:
            if not wanted(code):
                return monitoring.DISABLE
            if at_begin is not None:
                at_begin()
            return None

        def ends(code: CodeType, offset: int, value: object) -> object:
            if not wanted(code):
                return monitoring.DISABLE
            if at_end is not None:
                at_end()
            return None

        def unwinds(code: CodeType, offset: int, error: object) -> None:
            if wanted(code) and at_end is not None:
                at_end()

        monitoring.register_callback(_tool, events.PY_START, begins)
        monitoring.register_callback(_tool, events.PY_RETURN, ends)
        monitoring.register_callback(_tool, events.PY_UNWIND, unwinds)
        chosen = (events.PY_START if at_begin else 0) | ((events.PY_RETURN | events.PY_UNWIND) if at_end else 0)
        monitoring.restart_events()
        monitoring.set_events(_tool, chosen)
