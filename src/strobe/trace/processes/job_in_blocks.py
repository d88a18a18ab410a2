"""The facts of the job inside of the block files: what job.json held, for the day on which it is damaged or gone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from strobe.model import manifest
from strobe.trace.archive import process_files
from strobe.trace.processes.process_reader import RecordedProcess

# A job has 10 000 processes; the same facts in all of them would make none safer.
_MOST_FILES = 4


def keep(folder: Path) -> None:
    """Write the manifest of a run that is over into its first block files."""
    path = folder / "job.json"
    with suppress(OSError, ValueError):
        text = path.read_text(encoding="utf-8").rstrip()
        if text and manifest.is_sound(text):
            from strobe import native

            for files in process_files(folder)[:_MOST_FILES]:
                with suppress(OSError):
                    native.append_note(str(files.blocks), f'{{"job": {text}}}')


def sync(folder: Path) -> None:
    """Let what a trace holds survive a crash of the machine: wait until its files are on the disk itself."""
    for each in (folder / "job.json", *(files.blocks for files in process_files(folder)), folder):
        with suppress(OSError):
            _sync(each)


def find(folder: Path) -> dict[str, Any]:
    """Return what the block files of a trace hold of its manifest; empty if nothing, as in older traces."""
    found: dict[str, Any] = {}
    for files in process_files(folder):
        with suppress(OSError, ValueError):
            job = RecordedProcess(files).job
            found = job or found
        if "ended" in found:
            break
    return found


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
