"""What is known about how processes ended, in words, and the closing of a trace after its program is over."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from strobe.errors import TraceError
from strobe.model.units import format_ns
from strobe.store import raw, symbols
from strobe.store.archive import Job, process_files


def ending(process: Mapping[str, object], job: Job, zero_ns: int, became: str = "") -> str:
    """Say in words how a process ended, and up to when it is recorded. `process` is what its reader says about it;
    `became` is the command that it gave its place to (exec), if it did.
    """
    state = str(process.get("end_state", ""))
    until = format_ns(max(0, _integer(process.get("ended_ns")) - zero_ns))
    code = process.get("exit_code")
    killed = _signal_name(job) if process.get("main") else ""
    failure = str(process.get("failure") or "")
    if code is None and process.get("main"):
        code = job.ended.get("exit_code")
    if failure:
        how = f"ended with exit code {code}" if code is not None else f"killed by {killed}" if killed else "ended"
        until = format_ns(max(0, _integer(process.get("failed_ns")) - zero_ns))
        return f"{how}; recording had stopped: {failure}; complete up to {until}"
    if state == "closed":
        return f"ended with exit code {code}" if code is not None else "ended"
    if state == "exited":
        shown = f" with exit code {code}" if code is not None else ""
        return f"left by os._exit{shown}; complete up to {until}"
    if state == "running":
        return f"still running; complete up to {until}"
    if became:
        return f"became {became}; complete up to {until}"
    if killed:
        return f"killed by {killed}; complete up to {until}"
    return f"ended without a word (killed or crashed); complete up to {until}"


def close_trace(folder: Path) -> None:
    """Do once what every later reader would otherwise do: recover dead processes' rings, build tiles.

    What cannot be done (a full disk, a file that is no block file) is left undone: the trace reads without it, and
    whoever opens it is told what is wrong with it.
    """
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            raw.open_process(files)  # a file that is not sound stays as it is
            if files.rings is not None and not raw.is_alive(files.pid):
                raw.recover(files)
    with suppress(TraceError, OSError):
        symbols.resolve(folder, _regions(folder))
    from strobe.store.trace import open_trace  # which says with `ending` how a process ended

    with suppress(TraceError, OSError):
        open_trace(folder).build_pyramid()


def _regions(folder: Path) -> Iterator[symbols.Region]:
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            yield from raw.open_process(files).core.regions()


def _signal_name(job: Job) -> str:
    number = _integer(job.ended.get("signal"))
    if not number:
        return ""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
