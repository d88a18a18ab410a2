"""Attaching to programs: the requests, the wait for their recordings to begin, and for the windows to end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from strobe.errors import RecordError
from strobe.native import RemoteScript, core
from strobe.record.attach import target
from strobe.record.attach.request import Request
from strobe.record.launch import trace_folder
from strobe.record.options.all_options import job_settings, levels
from strobe.record.options.filters import anchored_options
from strobe.record.options.recorder_options import Setting
from strobe.record.options.session_settings import Session
from strobe.record.sample import processes
from strobe.record.sample.stop_signals import stop_asked

_LOOK_S = 0.005
_CLOSES_S = 10  # to write what is in the buffers


@dataclass(frozen=True)
class Attached:
    """A recording that is over: its trace, what happened in words, and how many steps each process has counted."""

    folder: str
    endings: tuple[str, ...]
    steps: Mapping[int, int]


def attach(
    pids: Sequence[int],
    output: str,
    *,
    adapters: tuple[str, ...],
    options: Mapping[str, Setting],
    steps: int,
    for_ns: int,
    wait_s: float,
    begun: Callable[[str, list[int]], object] = lambda folder, pids: None,
) -> Attached:
    """Let programs record themselves into one trace, each for `for_ns` or until `steps` whole steps are over (0: any
    number).

    They have `wait_s` to come to a point where Python code can run. `begun` is called with the trace folder and the
    processes that record. SIGINT, SIGTERM and SIGHUP end the windows before. Raises RecordError if one of the
    processes cannot be attached to, or none is recorded.
    """
    remotes = {pid: _found(pid) for pid in pids}
    command = processes.words(pids[0], "cmdline")
    made_with = {"adapters": list(adapters), "options": job_settings(options), "attached": True}
    here = processes.folder(pids[0])
    folder = trace_folder.create(output, command, made_with, options["access"].text, working_directory=here)
    texts = {name: setting.text for name, setting in options.items()} | {"armed": "yes", "for": ""}
    with stop_asked() as asked:
        try:
            session = Session(
                folder,
                adapters,
                anchored_options(texts, os.getcwd()),
                supervisor=os.getpid(),
                strings="-c" in command[1:-1],
                began_ns=time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                levels=levels(options["trace"].text),
                attached=True,
            )
            windows, refusals = _begin(remotes, session, steps, for_ns, wait_s, asked)
        except BaseException:
            trace_folder.remove(folder)
            raise
        begun(folder, [window.pid for window in windows])
        _wait_for_ends(windows, asked)
    trace_folder.finish(folder, {})
    endings = [*refusals, *(ending for window in windows for ending in window.endings)]
    return Attached(folder, tuple(endings), {window.pid: window.steps for window in windows})


def _found(pid: int) -> RemoteScript:
    try:
        return target.found(pid)
    except RecordError as error:
        raise target.older(pid, error) from None


def _begin(
    remotes: Mapping[int, RemoteScript],
    session: Session,
    steps: int,
    for_ns: int,
    wait_s: float,
    asked: Callable[[], bool],
) -> tuple[list[_Window], list[str]]:
    """Ask all processes, and wait for their answers. Returns the windows that have begun, and why others have not.

    Raises RecordError if none has begun, KeyboardInterrupt if a signal came before.
    """
    waiting: list[Request] = []
    windows: list[_Window] = []
    refusals: list[RecordError] = []
    try:
        for pid, remote in remotes.items():
            try:
                waiting.append(Request(pid, remote, session, steps, for_ns, wait_s))
            except RecordError as error:
                refusals.append(error)
        while waiting:
            if asked():
                waiting = [request for request in waiting if not request.withdraw()]
            for request in list(waiting):
                try:
                    if not request.answered():
                        continue
                    windows.append(_Window(request.pid, request.remote, session.folder, for_ns))
                except RecordError as error:
                    refusals.append(error)
                waiting.remove(request)
            time.sleep(_LOOK_S)
    finally:
        for request in waiting:
            request.withdraw()
    if not windows:
        if asked():
            raise KeyboardInterrupt
        if len(refusals) == 1:
            raise refusals[0]
        raise RecordError("; ".join(error.what for error in refusals))
    return windows, [error.what for error in refusals]


@dataclass
class _Window:
    """A process that records. `pages` is the file that it has while its window may be asked to close."""

    pid: int
    remote: RemoteScript
    folder: str
    for_ns: int
    steps: int = 0
    endings: list[str] = field(default_factory=list)
    _closing: bool = False

    def __post_init__(self) -> None:
        self._page = os.path.join(self.folder, f"window-{os.uname().nodename}-{self.pid}")
        self._due = time.monotonic() + self.for_ns / 1e9

    def over(self) -> bool:
        """Return whether the window has ended, or will end only when the program lets it."""
        try:
            _, _, self.steps, self._answered, *_ = core.window_state(self._page)
        except OSError:
            return True
        if not self.remote.runs():
            self.endings.append(f"process {self.pid} ended, or became another program")
            with suppress(OSError):
                os.unlink(self._page)
            return True
        if time.monotonic() > self._due + _CLOSES_S:
            self.endings.append(f"process {self.pid} records until its main thread returns from C code")
            return True
        return False

    def close(self) -> None:
        """Ask for the end of the window."""
        if not self._closing:
            self._closing = True
            self._due = time.monotonic()
            with suppress(OSError):
                core.window_request(self._page, self._answered + 1, -1, 0, 0)

    def written(self) -> bool:
        """Return whether the files of the process are complete, or will not be."""
        rings = os.path.join(self.folder, f"process-{self.pid}.rings")
        return not os.path.exists(rings) or not self.remote.runs()


def _wait_for_ends(windows: Sequence[_Window], asked: Callable[[], bool]) -> None:
    """Wait until all windows are over and their files are complete."""
    running = list(windows)
    while running := [window for window in running if not window.over()]:
        if asked():
            for window in running:
                window.close()
        time.sleep(_LOOK_S)
    end = time.monotonic() + _CLOSES_S
    while not all(window.written() for window in windows) and time.monotonic() < end:
        time.sleep(_LOOK_S)
