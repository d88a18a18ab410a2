"""Source lines: hits and time of each line of chosen functions (`--lines PATTERN`, `@profile`)."""

from __future__ import annotations

import builtins
import sys

from strobe.native import core
from strobe.record.adapter import Hooks
from strobe.record.options.session_settings import Session
from strobe.record.program import greenlets, import_hooks

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


def profile(function: Function) -> Function:
    """Choose a function: its lines are counted from now on. What kernprof calls `@profile`.

    Takes functions, methods, class and static methods, properties, generators and coroutines, and whatever wraps one
    and has `__wrapped__` or `func`; returns what it was given.
    """
    for code in _codes(function):
        core.lines_add(code)
    return function


def _codes(function: object) -> list[object]:
    if isinstance(function, property):
        return [code for each in (function.fget, function.fset, function.fdel) if each for code in _codes(each)]
    if isinstance(function, type):
        return [code for each in vars(function).values() if not isinstance(each, type) for code in _codes(each)]
    for name in ("__func__", "__wrapped__", "func"):
        inner = getattr(function, name, None)
        if inner is not None:
            return _codes(inner)
    code = getattr(function, "__code__", None)
    return [code] if code is not None else []


class _SourceLines(Hooks):
    needs_gil = "source lines are not counted"
    _own_hook = False
    _followed: Any = None  # line_profiler's class and its own method

    def start(self, settings: Session) -> None:
        core.lines_start([each.strip() for each in settings.options["lines"].split(",") if each.strip()])
        self._own_hook = "python_calls" not in settings.adapters
        if self._own_hook:
            # The hook alone: no call is recorded.
            core.python_calls_start(["/"], [], strings=False, imports=False, c_functions=False)
        elif sys.version_info >= (3, 12):
            sys.monitoring.restart_events()  # for functions that have run before, and are chosen now
        greenlets.start()
        self._await_line_profiler()  # between windows all callbacks are forgotten

    def stop(self) -> None:
        greenlets.stop()
        core.lines_stop()
        if self._own_hook:
            core.python_calls_stop()
            self._own_hook = False

    def session_begins(self) -> None:
        """Put `profile` where line_profiler's users expect it: whole modules may be imported outside of windows."""
        core.lines_forget()
        if not hasattr(builtins, "profile"):
            builtins.profile = profile  # type: ignore[attr-defined]
        self._await_line_profiler()

    def session_ends(self) -> None:
        if getattr(builtins, "profile", None) is profile:
            del builtins.profile  # type: ignore[attr-defined]
        if self._followed is not None:
            kind, decorate = self._followed
            kind.__call__ = decorate
            self._followed = None

    def _await_line_profiler(self) -> None:
        if self._followed is None:
            import_hooks.after_import("line_profiler.explicit_profiler", self._follow)

    def _follow(self, module: ModuleType) -> None:
        """Let `from line_profiler import profile` choose functions, too, beside what it does itself."""
        if self._followed is not None:
            return
        kind = module.GlobalProfiler
        decorate = kind.__call__

        def followed(of: object, func: Function) -> Function:
            profile(func)
            decorated: Function = decorate(of, func)
            return decorated

        kind.__call__ = followed
        self._followed = (kind, decorate)


HOOKS = _SourceLines()
