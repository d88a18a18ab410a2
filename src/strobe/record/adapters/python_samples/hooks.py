"""Samples: what every Python thread is doing, some number of times per second, instead of each of its calls.

A thread of the core takes them, without the GIL and without stopping any thread
(`native/adapters/sampling/sampler.cpp`). It pauses while the process forks. A child has one of its own
(`native/python/recording/sampler_switch.c`).
"""

from __future__ import annotations

import os

from strobe.native import core
from strobe.record.adapter import Hooks
from strobe.record.options.session_settings import Session


class _PythonSamples(Hooks):
    needs_gil = "Python threads are not sampled"  # free-threaded builds keep frames elsewhere
    _watches_forks = False

    def start(self, settings: Session) -> None:
        """Start the thread that takes samples. Raises OSError if it cannot be started."""
        core.sampler_start(float(settings.options.get("sample") or 0) or 1000.0)
        if not self._watches_forks:
            self._watches_forks = True
            os.register_at_fork(
                before=core.sampler_before_fork,
                after_in_parent=core.sampler_after_fork,
                after_in_child=core.sampler_forked,
            )

    def stop(self) -> None:
        core.sampler_stop()


HOOKS = _PythonSamples()
