"""The folders that imports fill before they get their name, and those that killed imports left behind."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

_MARK = ".importing-"
_START_FIELD = 19  # of /proc/PID/stat, behind the name of the program: clock ticks since the start of the machine


def work_folder(folder: Path) -> Path:
    """Return the folder beside `folder` in which this process makes it; its name has who makes it."""
    pid = os.getpid()
    # A long name would be too long with what is added.
    name = folder.name if len(os.fsencode(folder.name)) < 100 else hashlib.sha256(os.fsencode(folder.name)).hexdigest()
    return folder.with_name(f".{name}{_MARK}{_host()}-{pid}-{_started(pid)}")


def remove_abandoned(beside: Path) -> None:
    """Remove the folders in `beside` whose process is gone. Those of other hosts stay: nothing is known of these."""
    made_by = re.compile(rf"\..*{re.escape(_MARK)}{re.escape(_host())}-(\d+)-(\d+)")
    with suppress(OSError):
        for name in os.listdir(beside):
            if (found := made_by.fullmatch(name)) and int(found[2]) != _started(int(found[1])):
                shutil.rmtree(beside / name, ignore_errors=True)


def _host() -> str:
    return re.sub(r"[^\w.]", "_", os.uname().nodename)


def _started(pid: int) -> int:
    """Return when a process started, 0 if there is none; numbers of processes come again."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[_START_FIELD])
    except FileNotFoundError:
        return 0
