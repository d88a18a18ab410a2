"""ITT ranges of anybody (oneDNN, MKL, TBB, the program itself): libstrobe is the collector that ITT loads by name."""

from __future__ import annotations

import os

from strobe.native import library
from strobe.record.config import Session

VARIABLE = "INTEL_LIBITTNOTIFY64"


class Itt:
    """The adapter. ITT reads its variable at its first call, so it must stand before the program's libraries load."""

    name = "itt"

    def available(self) -> str:
        """Another collector's setting is the user's own and stays."""
        if os.environ.get(VARIABLE, library()) != library():
            return f"{VARIABLE} names another collector: {os.environ[VARIABLE]}"
        return ""

    def start(self, settings: Session) -> None:
        """Name the collector."""
        os.environ[VARIABLE] = library()

    def stop(self) -> None:
        """Nothing to undo: without a session the collector's functions return at once."""


ADAPTER = Itt()
