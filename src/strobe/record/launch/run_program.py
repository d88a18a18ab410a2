"""`strobe run`: starts the program exactly as the user would have, waits for it, and ends as it ended.

The program is our child, started with the environment that makes its Pythons record themselves. We stay its parent, so
that its trace is completed and its summary printed however it ends. Signals sent to us reach it, and we end with its
exit code or signal.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strobe.errors import RecordError
from strobe.record.launch import clock_server, first_sync, flight, parallel_jobs
from strobe.record.launch.trace_folder import create, default_name, finish
from strobe.record.options.all_options import ADAPTERS, job_settings, levels
from strobe.record.options.filters import anchored_options
from strobe.record.options.recorder_options import Setting, length, size
from strobe.record.options.session_settings import SESSION_VARIABLE, Session, disabled

# Sent by a person or a scheduler to the one process they know; the terminal's own go to the whole group already.
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_FROM_KERNEL = 0x80  # si_code SI_KERNEL: the terminal sent it, to the child as well
_GRACE_S = 0.1


@dataclass(frozen=True)
class RunResult:
    """How the program ended: `exit_code`, or the number of the `signal` that killed it.

    `folder` is None if nothing is left to do: with the kill switch on, and in a rank whose trace the first rank of
    the job completes. `flights` are the traces that a flight recorder has written.
    """

    folder: str | None
    exit_code: int | None
    signal: int | None
    flights: tuple[str, ...] = ()


def python_command(words: Sequence[str]) -> list[str]:
    """Return the command behind `strobe run WORDS`: a script, `-m` or `-c` for this Python, or what follows `--`.

    A name without a file here that is a command (mpirun, torchrun) is that command.
    """
    if words and words[0] == "--":
        return list(words[1:])
    if words and is_command(words[0]):
        return list(words)
    return [sys.executable, *words]


def is_command(word: str) -> bool:
    """Return whether the first word is a command on the path, and not an option, a path or the name of a file here."""
    return not word.startswith("-") and "/" not in word and not os.path.exists(word) and shutil.which(word) is not None


def run(
    words: Sequence[str],
    *,
    output: str | None = None,
    adapters: tuple[str, ...],
    options: Mapping[str, Setting],
    complete: Callable[[str], None],
) -> RunResult:
    """Run a program under the recorder and wait for its end.

    `words` is what followed `strobe run`, `output` names the trace folder, `options` are all those of recording.
    `complete` recovers what the rings of a trace hold that a flight recorder writes.
    Raises RecordError when the folder cannot be made (125) or the program cannot be started (126, 127).
    """
    command = python_command(words)
    if not command:
        raise RecordError("nothing to run", do="strobe run SCRIPT [arguments]", exit_code=2)
    executable = shutil.which(command[0])
    if executable is None:
        known = os.path.exists(command[0])
        reason = "is not executable" if known else "not found"
        raise RecordError(f"'{command[0]}' {reason}", exit_code=126 if known else 127)
    if disabled():
        return RunResult(None, *wait_for(executable, command, dict(os.environ)))
    from strobe.native import library  # fails where the core does not load: before there is a folder

    rank = parallel_jobs.rank_of(os.environ)
    wanted = output or default_name(command)
    shared = parallel_jobs.join(wanted, rank) if rank is not None and rank.number > 0 else None
    made_with = {"adapters": list(adapters), "job": rank.job if rank else "", "options": job_settings(options)}
    folder = shared or create(wanted, command, made_with, options["access"].text)
    leads = rank is not None and rank.number == 0 and parallel_jobs.sign_in(folder, rank)
    clock = ""
    if rank is not None or any(ADAPTERS[name].has_ranks for name in adapters):
        # Perhaps processes of other nodes, whose clocks are others.
        clock = clock_server.written_address(folder) if shared else clock_server.start(folder)
    settings = Session(
        folder,
        adapters,
        anchored_options({name: setting.text for name, setting in options.items()}, os.getcwd()),
        supervisor=os.getpid(),
        strings=len(command) > 1 and command[1] == "-c",
        began_ns=time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        inject=os.path.join(os.path.dirname(os.path.dirname(__file__)), "inject"),
        library=library(),
        clock=clock,
        levels=levels(options["trace"].text),
    )
    environment = child_environment(os.environ, settings)
    recorder = None
    if options["flight"].text and shared is None:
        keep_ns, keep_bytes = length(options["flight"].text), size(options["flight-size"].text)
        recorder = flight.FlightRecorder(folder, keep_ns, keep_bytes, complete)
    companions = [each for name in ADAPTERS if (each := ADAPTERS[name].companion(settings, environment))]

    syncs = []

    def started() -> None:
        if shared is None:
            syncs.append(first_sync.start(folder))
        for companion in companions:
            companion.started()
        if recorder is not None:
            recorder.started()

    failed = True
    try:
        exit_code, number = wait_for(executable, command, environment, started)
        failed = exit_code != 0
    except RecordError:
        if recorder is not None:
            recorder.stop()
        if shared is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        for sync in syncs:
            sync.set()
        for companion in companions:
            companion.stop()
        if shared is not None and rank is not None:
            parallel_jobs.sign_out(shared, rank, failed=failed)
    if shared is not None:
        return RunResult(None, exit_code, number)
    if leads and rank is not None:
        parallel_jobs.wait_for_others(folder, rank, failed=failed)
    if recorder is not None:
        recorder.stop()
        with contextlib.suppress(OSError):  # what could not be joined is read in parts
            flight.join(folder)
    # A process that was killed leaves behind what record/program/windows.py shares with children.
    for name in glob.glob(os.path.join(glob.escape(folder), "window-*")):
        with contextlib.suppress(OSError):
            os.unlink(name)
    clock_server.stop(folder)
    finish(folder, {"exit_code": exit_code} if number is None else {"signal": number})
    return RunResult(folder, exit_code, number, tuple(recorder.written) if recorder else ())


def child_environment(environment: Mapping[str, str], settings: Session) -> dict[str, str]:
    """The environment in which Pythons record themselves, and in which adapters reach other programs."""
    made = dict(environment)
    made[SESSION_VARIABLE] = settings.to_text()
    made["PYTHONPATH"] = os.pathsep.join(filter(None, [settings.inject, environment.get("PYTHONPATH", "")]))
    for name in settings.adapters:
        made |= ADAPTERS[name].environment(settings, made)
    return made


def library_folder() -> str:
    """Where `libstrobe.so` is, and beside it what other programs are linked with."""
    from strobe.native import library

    return os.path.dirname(library())


def wait_for(
    executable: str,
    command: list[str],
    environment: dict[str, str],
    started: Callable[[], object] = lambda: None,
    *,
    look_every_s: float | None = None,
) -> tuple[int | None, int | None]:
    """Start the command, call `started`, and wait for the end: (exit code, None) or (None, signal).

    This thread waits for signals. Another thread may take one; then `look_every_s` makes this one look regularly.
    """
    watched = {signal.SIGCHLD, *_FORWARDED}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        # posix_spawn, not subprocess: the child gets the signal mask and the open files that it would have had.
        child = os.posix_spawn(
            executable, command, environment, setsigmask=before, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]
        )
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise RecordError(f"cannot run '{command[0]}': {error.strerror}", exit_code=126) from error
    try:
        started()
        while True:
            received = signal.sigtimedwait(watched, look_every_s) if look_every_s else signal.sigwaitinfo(watched)
            if received and received.si_signo != signal.SIGCHLD and received.si_code != _FROM_KERNEL:
                _forward(child, received.si_signo)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
    finally:
        # From here on the trace is completed: an impatient Ctrl-C, already sent to the program, must not stop that.
        for number in _FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def _forward(child: int, number: int) -> None:
    """Hand a signal on, unless the child ends of itself within a moment.

    Then it was sent to the whole group (`timeout`, `kill -- -GROUP`), and the child has had it.
    """
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until:
        # WNOWAIT leaves the exit status for the caller.
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.005)
    os.kill(child, number)


def end_as(result: RunResult) -> int:
    """End this process as the program ended: returns its exit code, or dies by the same signal.

    From here on the trace is complete, and the other ranks of a job may end, too.
    """
    if result.folder is not None:
        parallel_jobs.release_others(result.folder)
    if result.signal is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core file, the program's, is enough
        if result.signal not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(result.signal, signal.SIG_DFL)
        os.kill(os.getpid(), result.signal)
        return 128 + result.signal
    return result.exit_code or 0
