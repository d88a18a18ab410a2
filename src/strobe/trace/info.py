"""Info: facts about a run that are known before any of its spans is read."""

from __future__ import annotations

import os
from dataclasses import dataclass

LEFT = "ran on when sampling ended"  # how `ended` is of a process that was sampled from outside
STILL_RUNNING = "still running"  # how `ended` begins while a run is being recorded


@dataclass(frozen=True)
class Info:
    """Facts about a run. Times in nanoseconds since the trace's zero, `started_unix_ns` since 1970.

    `span_count` executions are in the trace as spans, `folded_count` more in its statistics.
    """

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
    folded_count: int
    size_bytes: int
    format_version: int
    source: str = ""  # the files that it was imported from, in words

    @property
    def running(self) -> bool:
        """Whether it is still being recorded."""
        return self.ended.startswith(STILL_RUNNING)

    @property
    def program(self) -> str:
        """Name of the program: the script or module, `-c`, or the command if it is not a Python."""
        words = [os.path.basename(word) for word in self.command]
        if not words or not words[0].startswith("python"):
            return words[0] if words else ""
        return next((word for word in words[1:] if word == "-c" or not word.startswith("-")), words[0])
