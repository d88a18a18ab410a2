"""Runs a callback right after a module has been imported.

A finder in front of `sys.meta_path` that answers only for the awaited names, and removes itself after the last one.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_waiting: dict[str, list[Callable[[ModuleType], None]]] = {}


class _Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        callbacks = _waiting.pop(name)
        if not _waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                break
        else:
            return None
        loader: Any = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # the loader is the program's again
            execute(module)
            for callback in callbacks:
                _run(callback, module)

        loader.exec_module = exec_module
        return spec


_finder = _Finder()


def _run(callback: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        callback(module)
    except Exception as error:  # never into the program
        from strobe.model.terminal import talk

        talk(f"recording of {module.__name__} is incomplete: {error}")


def after_import(name: str, callback: Callable[[ModuleType], None]) -> None:
    """Call `callback(module)` once `name` is imported: now, if it is already."""
    module = sys.modules.get(name)
    if module is not None:
        _run(callback, module)
        return
    _waiting.setdefault(name, []).append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def cancel_all() -> None:
    """Forget every callback that has not run."""
    _waiting.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
