"""Samples: what every Python thread is doing, so and so often a second, instead of each of its calls.

A thread of the core looks, without the GIL and without stopping anybody; `native/adapters/sampler.cpp`. It rests while
the process forks, and goes on in a child of its own.
"""

from __future__ import annotations

import os
import sys

from strobe.native import core
from strobe.record.config import Session


class PythonSamples:
    """The adapter."""

    name = "python_samples"

    def __init__(self) -> None:
        self._per_second = 0.0
        self._told_of_forks = False

    def available(self) -> str:
        """Free-threaded builds are refused: they keep frames elsewhere."""
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            return "Python threads are not sampled in a free-threaded Python"
        return ""

    def start(self, settings: Session) -> None:
        """Start the thread that looks. Raises OSError where it cannot be made."""
        self._per_second = float(settings.options.get("sample") or 0) or 1000.0
        core.sampler_start(self._per_second)
        if not self._told_of_forks:
            self._told_of_forks = True
            os.register_at_fork(before=core.sampler_stop, after_in_parent=self._go_on_soon, after_in_child=self._go_on)

    def stop(self) -> None:
        """End it."""
        self._per_second = 0.0
        core.sampler_stop()

    def _go_on_soon(self) -> None:
        if self._per_second:
            core.sampler_start_soon(self._per_second)

    def _go_on(self) -> None:
        if self._per_second:
            core.sampler_start(self._per_second)


ADAPTER = PythonSamples()
