"""Info: what a trace is about, before any of its spans is read."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Info:
    """What a trace is about. Times in nanoseconds since the trace's zero, `started_unix_ns` since 1970."""

    path: str
    command: tuple[str, ...]
    host: str
    working_directory: str
    started_unix_ns: int
    duration_ns: int
    ended: str
    python: str
    process_count: int
    location_count: int
    span_count: int
    size_bytes: int
    format_version: int

    @property
    def program(self) -> str:
        """Name of the program: the first word of the command that is no interpreter and no option."""
        if "-c" in self.command[:2]:
            return "-c"
        words = [word for word in self.command if not word.startswith("-")]
        names = [os.path.basename(word) for word in words]
        return next((name for name in names if not name.startswith("python")), names[0] if names else "")
