"""Lists plug-ins: a file or folder in the folder of its kind is one, by being there. Listing imports no plug-in."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

KINDS = {
    "analyses": "ANALYSIS",
    "advice": "RULE",
    "formats": "FORMAT",
    "cli.verbs": "VERB",
    "record.adapters": "ADAPTER",
}
# Folders that are not plug-ins but hold several: for analyses every one (a subject), for formats these. The names of
# plug-ins are unique all the same.
_GROUPS: dict[str, set[str] | None] = {"analyses": None, "formats": {"nvprof", "profiles", "pytorch", "tables"}}
# Modules in a plug-in folder that are not plug-ins.
_SHARED = {
    "advice": {"rank"},
    "formats": {"known_formats", "reading", "writing"},
}


def names(kind: str) -> list[str]:
    """Names of all plug-ins of a kind (a key of KINDS), sorted: a file, or a folder with an `__init__.py`, is one."""
    return sorted(_modules(kind))


def load(kind: str, name: str) -> object:
    """Import one plug-in and return its description (the value of its `ANALYSIS`, `RULE`, ...)."""
    module = _modules(kind)[name] if kind in _GROUPS else f"strobe.{kind}.{name}"
    plugin: object = getattr(import_module(module), KINDS[kind])
    return plugin


def function(place: str) -> Callable[..., Any]:
    """Import a function by the name of its module and its own: `strobe.answers.gpu.kernels:run`."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def later(place: str) -> Callable[..., Any]:
    """Return a function that imports the one of this name when it is called: what only lists plug-ins does not."""
    return lambda *given, **named: function(place)(*given, **named)


def _modules(kind: str) -> dict[str, str]:
    """Return the module of every plug-in of a kind by its name."""
    root, shared = f"strobe.{kind}", _SHARED.get(kind, set())
    found = {}
    waiting = [(root, folder) for folder in import_module(root).__path__]
    for package, folder in waiting:
        for entry in os.listdir(folder):
            name, dot, suffix = entry.partition(".")
            if name.startswith("_") or name in shared:
                continue
            if dot:
                is_module = suffix == "py"
            else:
                is_module = os.path.exists(os.path.join(folder, name, "__init__.py"))
                groups = _GROUPS.get(kind, set())
                if is_module and package == root and (groups is None or name in groups):
                    waiting.append((f"{root}.{name}", os.path.join(folder, name)))
                    continue
            if is_module:
                found[name] = f"{package}.{name}"
    return found
