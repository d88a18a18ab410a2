"""C and C++ functions of programs and extension modules that `strobe cc` has built (-finstrument-functions).

They carry their own hooks, which look for a session when the first of them runs (native/stubs/functions.c), and cost
nothing where there is none.
"""

from __future__ import annotations

from strobe.record.config import Session


class Functions:
    """The adapter."""

    name = "functions"

    def available(self) -> str:
        """Always: what was not built with `strobe cc` has no hooks."""
        return ""

    def start(self, settings: Session) -> None:
        """Nothing to do: the hooks look for the session."""

    def stop(self) -> None:
        """Nothing to undo: without a session the core takes no records."""


ADAPTER = Functions()
