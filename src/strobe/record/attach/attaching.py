"""Attaching to a program: the request, the wait for its recording to begin, and for the window to end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from strobe.errors import RecordError
from strobe.model.private_files import opener
from strobe.native import RemoteScript, core
from strobe.record.attach import target
from strobe.record.launch import trace_folder
from strobe.record.options.all_options import job_settings, levels
from strobe.record.options.filters import anchored_options
from strobe.record.options.recorder_options import Setting
from strobe.record.options.session_settings import Session
from strobe.record.sample import processes
from strobe.record.sample.stop_signals import stop_asked

_SCRIPT, _ANSWER = "attach.py", "attach.txt"  # in the trace folder, until the recording has begun
_LOOK_S = 0.005
_OPENS_S = 3  # from the request that is taken to the script that has begun, at most
_BEGINS_S = 30  # to load the recorder, on a machine that does much else
_CLOSES_S = 10  # to write what is in the buffers


@dataclass(frozen=True)
class Attached:
    """A recording that is over: its trace, what happened in words, and how many steps were counted."""

    folder: str
    endings: tuple[str, ...]
    steps: int


def attach(
    pid: int,
    output: str,
    *,
    adapters: tuple[str, ...],
    options: Mapping[str, Setting],
    steps: int,
    for_ns: int,
    wait_s: float,
    begun: Callable[[str], object] = lambda folder: None,
) -> Attached:
    """Let a program record itself for `for_ns`, or until `steps` whole steps are over (0: any number).

    It has `wait_s` to come to a point where Python code can run. `begun` is called with the trace folder once it
    records. SIGINT, SIGTERM and SIGHUP end the window before. Raises RecordError if nothing is recorded.
    """
    try:
        remote = target.found(pid)
    except RecordError as error:
        raise target.older(pid, error) from None
    command = processes.words(pid, "cmdline")
    here = processes.folder(pid)
    made_with = {"adapters": list(adapters), "options": job_settings(options), "attached": True}
    folder = trace_folder.create(output, command, made_with, options["access"].text, working_directory=here)
    try:
        texts = {name: setting.text for name, setting in options.items()} | {"armed": "yes", "for": ""}
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
        path, answer = (os.path.join(folder, name) for name in (_SCRIPT, _ANSWER))
        with open(path, "w", encoding="utf-8", opener=opener) as script:
            script.write(target.script(path, answer, remote.minor, session.to_text(), steps, for_ns))
        page = os.path.join(folder, f"window-{os.uname().nodename}-{pid}")
        with processes.refusals(pid, "attach", "attached to"):
            _request(remote, pid, path, wait_s)
        _wait_for_begin(remote, pid, answer)
    except BaseException:
        trace_folder.remove(folder)
        raise
    os.unlink(answer)
    begun(folder)
    with stop_asked() as asked:
        counted, endings = _wait_for_end(remote, pid, page, for_ns, asked)
    trace_folder.finish(folder, {})
    return Attached(folder, tuple(endings), counted)


def _request(remote: RemoteScript, pid: int, path: str, wait_s: float) -> None:
    """Ask for the script, and wait until it has begun: it removes itself. Raises RecordError where it does not in time.

    CPython imports a module to open a script, which fails where the running code has no builtins (the constructor of a
    named tuple). Then it is asked again.
    """
    end = time.monotonic() + wait_s
    remote.request(path)
    again = time.monotonic() + _OPENS_S
    while os.path.exists(path):
        now = time.monotonic()
        if now > end:
            remote.withdraw()
            time.sleep(_LOOK_S * 4)  # it may have been taken just before
            with suppress(FileNotFoundError):
                os.unlink(path)
                raise RecordError(
                    f"process {pid} has not come to a point where Python code can run for {wait_s:g} s: {_where(pid)}; "
                    "the request is withdrawn, and nothing was changed",
                    do="Try again, with a longer --wait.",
                )
        elif not remote.taken():
            again = now + _OPENS_S
        elif now > again:
            remote.request(path)
            again = now + _OPENS_S
        time.sleep(_LOOK_S)


def _where(pid: int) -> str:
    """What the main thread of a process does, as far as the kernel knows."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        state = file.read().rpartition(")")[2].split()[0]
        if state in "Tt":
            return "it is stopped"
        if state in "SD":
            return "its main thread waits in C code"
    return "its main thread is in C code"


def _wait_for_begin(remote: RemoteScript, pid: int, answer: str) -> None:
    """Wait until the program records. Raises RecordError with its reason if it does not."""
    end = time.monotonic() + _BEGINS_S
    while not os.path.exists(answer):
        if not remote.runs():
            raise RecordError(f"process {pid} ended before it was recorded")
        if time.monotonic() > end:
            raise RecordError(
                f"process {pid} has begun to load the recorder, and has not come to an end with it in {_BEGINS_S} s"
            )
        time.sleep(_LOOK_S)
    with open(answer, encoding="utf-8") as file:
        why = file.read()
    if why:
        raise _refused(pid, why)


def _refused(pid: int, why: str) -> RecordError:
    missing = why.startswith("strobe is missing")
    do = "Install strobe with the Python that runs the program: pip install strobe" if missing else ""
    return RecordError(f"process {pid} cannot be attached to: {why}", do=do)


def _wait_for_end(
    remote: RemoteScript, pid: int, page: str, for_ns: int, asked: Callable[[], bool]
) -> tuple[int, list[str]]:
    """Wait until the window is over and its files are complete. Returns how many steps were counted, and in words what
    happened.
    """
    steps, endings = 0, []
    due = time.monotonic() + for_ns / 1e9
    closing = False
    while True:
        try:
            _, _, steps, answered, *_ = core.window_state(page)
        except OSError:
            break
        if not remote.runs():
            endings.append(f"process {pid} ended, or became another program")
            with suppress(OSError):
                os.unlink(page)
            break
        if asked() and not closing:
            closing = True
            due = time.monotonic()
            with suppress(OSError):
                core.window_request(page, answered + 1, -1, 0, 0)
        if time.monotonic() > due + _CLOSES_S:
            endings.append(f"process {pid} records until its main thread returns from C code")
            break
        time.sleep(_LOOK_S)
    rings = os.path.join(os.path.dirname(page), f"process-{pid}.rings")
    end = time.monotonic() + _CLOSES_S
    while os.path.exists(rings) and remote.runs() and time.monotonic() < end:
        time.sleep(_LOOK_S)
    return steps, endings
