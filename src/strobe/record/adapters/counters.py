"""Process metrics: CPU per thread group, resident memory, I/O, context switches, sampled by the core every 200 ms."""

from __future__ import annotations

from strobe.record.config import Session


class Counters:
    """The adapter. The core samples from its own thread; `session.start` tells it whether to."""

    name = "counters"

    def available(self) -> str:
        """Linux only, as the rest."""
        return ""

    def start(self, settings: Session) -> None:
        """Nothing to do: the sampling began with the session."""

    def stop(self) -> None:
        """Nothing to do: the sampling ends with the session."""


ADAPTER = Counters()
