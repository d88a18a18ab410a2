"""Lists plug-ins: a file in the folder of its kind is one, by being there. Listing imports no plug-in."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

KINDS = {
    "analyses": "ANALYSIS",
    "advice": "RULE",
    "formats": "FORMAT",
    "cli": "VERB",
    "record.adapters": "ADAPTER",
}
# What traces and tables offer beside the analyses: answers that are no tables. Layers above them make them.
ANSWERS = {
    "op_analyse": ("strobe.structure.op_analyse", "op_analyse"),
    "stack": ("strobe.structure.stack", "build_stack"),
    "summary": ("strobe.present.summary_text", "text_of"),
    "card": ("strobe.present.notebook", "trace_card"),
    "table_card": ("strobe.present.notebook", "table_card"),
    "structure": ("strobe.structure.structure", "structure_asked"),
}
# Modules in a plug-in folder that are no plug-ins.
_SHARED = {"cli": {"main", "options", "recording_options"}, "advice": {"rank"}}


def names(kind: str) -> list[str]:
    """Names of all plug-ins of a kind (a key of KINDS), sorted."""
    shared = _SHARED.get(kind, set())
    found = set()
    for folder in import_module(f"strobe.{kind}").__path__:
        for entry in os.listdir(folder):
            name, dot, suffix = entry.partition(".")
            if dot and suffix == "py" and not name.startswith("_") and name not in shared:
                found.add(name)
    return sorted(found)


def load(kind: str, name: str) -> object:
    """Import one plug-in and return its description (the value of its `ANALYSIS`, `RULE`, ...)."""
    module = import_module(f"strobe.{kind}.{name}")
    plugin: object = getattr(module, KINDS[kind])
    return plugin


def answer(name: str) -> Callable[..., Any]:
    """Return the function that makes one of ANSWERS: its first argument is the trace."""
    module, function = ANSWERS[name]
    made: Callable[..., Any] = getattr(import_module(module), function)
    return made
