"""Samples: what every Python thread is doing, so and so often a second, instead of each of its calls.

A thread of the core looks, without the GIL and without stopping anybody (`native/adapters/sampling/sampler.cpp`).
It rests while the process forks. A child has one of its own (`native/python/recording/sampler_switch.c`).
"""

from __future__ import annotations

import os
import sys

from strobe.native import core
from strobe.record.adapter import Hooks
from strobe.record.options.session_settings import Session


class PythonSamples(Hooks):
    """Start and stop."""

    _told_of_forks = False

    def available(self) -> str:
        """Free-threaded builds are refused: they keep frames elsewhere."""
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            return "Python threads are not sampled in a free-threaded Python"
        return ""

    def start(self, settings: Session) -> None:
        """Start the thread that looks. Raises OSError where it cannot be made."""
        core.sampler_start(float(settings.options.get("sample") or 0) or 1000.0)
        if not self._told_of_forks:
            self._told_of_forks = True
            os.register_at_fork(
                before=core.sampler_before_fork,
                after_in_parent=core.sampler_after_fork,
                after_in_child=core.sampler_forked,
            )

    def stop(self) -> None:
        """End it."""
        core.sampler_stop()


HOOKS = PythonSamples()
