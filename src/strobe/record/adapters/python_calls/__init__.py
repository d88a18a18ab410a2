"""Python calls: every call of the user's own functions, by a C hook."""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter(
    "python_calls", short="python", order=10, presets=("auto",), hooks="strobe.record.adapters.python_calls.hooks"
)
