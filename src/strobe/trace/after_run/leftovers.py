"""What a killed `strobe run` leaves in a trace folder, beside the trace."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from strobe.trace.processes.process_reader import runs


def remove_windows(folder: Path) -> None:
    """Remove the pages in which processes of this machine that are gone shared recording windows with children."""
    mine = f"window-{os.uname().nodename}-"  # record/program/windows.py; of other nodes nothing is known here
    with suppress(OSError):
        for name in os.listdir(folder):
            pid = name.removeprefix(mine)
            if pid != name and pid.isdecimal() and not runs(int(pid)):
                os.unlink(folder / name)
