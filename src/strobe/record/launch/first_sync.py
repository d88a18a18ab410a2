"""Lets what a trace begins with survive a crash of the machine: its manifest, and the first blocks of its processes.

A thread of `strobe run` waits for the disk, because the recorder in the program must not: its buffers would run full.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

_EVERY_S = 0.2
_MOST_S = 30.0  # a program that has recorded nothing by then may be no Python
_MOST_FILES = 4  # the facts of the job are the same in all


def start(folder: str) -> threading.Event:
    """Begin; the event ends it. For a caller that has blocked the signals that it waits for."""
    ended = threading.Event()
    threading.Thread(target=_sync_first_blocks, args=(folder, ended), daemon=True).start()
    return ended


def _sync_first_blocks(folder: str, ended: threading.Event) -> None:
    _sync(os.path.join(folder, "job.json"))
    _sync(folder)
    done, until = set[str](), time.monotonic() + _MOST_S
    while len(done) < _MOST_FILES and not ended.wait(_EVERY_S) and time.monotonic() < until:
        with suppress(OSError), os.scandir(folder) as entries:
            begun = [each.path for each in entries if each.name.endswith(".blocks") and each.stat().st_size]
            for path in sorted(set(begun) - done)[: _MOST_FILES - len(done)]:
                _sync(path)
                _sync(folder)
                done.add(path)


def _sync(path: str) -> None:
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)
