"""Parallel jobs: whether a program will call MPI, our rank, and how the ranks of a job share one trace.

`strobe run -- mpirun -n 4 ./solver` has one `strobe run`, whose session all ranks inherit. In `mpirun -n 4 strobe run
solver.py` there are four: the first rank makes the trace folder, the others find it by the name of the job, and the
first one completes it when all have ended. The same holds for torchrun.
"""

from __future__ import annotations

import glob
import mmap
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from strobe.record.launch.trace_folder import SUFFIX, job_of

LAUNCHERS = (
    *("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "ibrun"),
    *("oshrun", "shmemrun"),  # of OpenSHMEM
)
# What runs the command that it is given, and what may be given it as a text.
_WRAPPERS = (
    *("chrt", "env", "ionice", "nice", "nohup", "numactl", "prlimit", "setarch", "setsid", "stdbuf", "taskset"),
    *("time", "timeout"),
)
# Libraries that a program of MPI is linked with, and what one of OpenSHMEM calls.
_LINKED = (b"\0libmpi", b"\0shmem_init")
_SHELLS = ("ash", "bash", "dash", "ksh", "sh", "zsh")
_FOR_A_SHELL = re.compile(rb"#!\s*(\S*/env\s+)?(\S*/)?(a|ba|da|k|z)?sh\b")
_SCRIPT_BYTES = 1 << 16
# Number of the rank, number of ranks, and what all ranks of the job (and no other job) have in common.
_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"),
    ("PMI_RANK", "PMI_SIZE", "PMI_JOBID"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS", "PMIX_NAMESPACE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
)
# The same of torchrun, whose ranks need not know MPI.
_TORCHRUN = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID")
_FOLDER_S = 30  # to wait for the first rank's folder
_ENDS_S = 60  # to wait for the other ranks' ends: MPI_Finalize ends them together
_FAILED_S = 1  # the same after a failure: the others may wait for us, and the launcher ends them once we have ended
_STRANGERS_S = 5  # and for ranks that never came: `mpirun -n 1 strobe run a.py : -n 3 ./b`
_POLL_S = 0.02


@dataclass(frozen=True)
class Rank:
    """A process that a launcher (of MPI, or torchrun) started: its number, how many there are, the name of the job."""

    number: int
    size: int
    job: str


def rank_of(environment: Mapping[str, str]) -> Rank | None:
    """Return our rank by the variables of launchers; None if no launcher of ranks started us."""
    rank = _rank_of_mpi(environment)
    if rank is not None or _TORCHRUN[2] not in environment:
        return rank
    try:
        number, size = (int(environment[name]) for name in _TORCHRUN[:2])
    except (KeyError, ValueError):
        return None
    # One torchrun for all ranks has a name of its own; those of several nodes have agreed on a place to meet.
    alone = environment.get("LOCAL_WORLD_SIZE") == environment[_TORCHRUN[1]]
    meeting = [environment.get(name, "") for name in (_TORCHRUN[2], "MASTER_ADDR", "MASTER_PORT")]
    job = _launcher(_TORCHRUN[0]) if alone else ".".join(meeting)
    return Rank(number, size, f"torchrun.{job}.{environment.get('TORCHELASTIC_RESTART_COUNT', '')}")


def _rank_of_mpi(environment: Mapping[str, str]) -> Rank | None:
    for number, size, job in _VARIABLES:
        try:
            rank, ranks = int(environment[number]), int(environment[size])
        except (KeyError, ValueError):
            continue
        name = environment.get(job) or _launcher(number)
        return Rank(rank, ranks, f"{environment.get('SLURM_JOB_ID', '')}.{name}")
    return None


def calls_mpi(environment: Mapping[str, str], command: Sequence[str]) -> bool:
    """Return whether the command will call MPI or OpenSHMEM: started by a launcher, one itself, or linked with them.

    What is behind `env` and its like counts, and a launcher that a shell is given, as a text or in a script.
    """
    if _rank_of_mpi(environment) is not None:
        return True
    command = _wrapped(command)
    executable = shutil.which(command[0]) if command else None
    if executable is None:
        return False
    words = (command[0], *_shell_words(executable, command))
    launchers = (word for word in words if os.path.basename(word) in LAUNCHERS)
    return any(map(shutil.which, launchers)) or any(contains(executable, text) for text in _LINKED)


def is_native(command: Sequence[str]) -> bool:
    """Return whether the command is a compiled program, but not a Python, or a script of a shell."""
    command = _wrapped(command)
    executable = shutil.which(command[0]) if command else None
    if executable is None or "python" in os.path.basename(os.path.realpath(executable)):
        return False
    with suppress(OSError), open(executable, "rb") as file:
        begin = file.read(_SCRIPT_BYTES)
        return begin.startswith(b"\x7fELF") or _FOR_A_SHELL.match(begin) is not None
    return False


def _wrapped(command: Sequence[str]) -> Sequence[str]:
    """Return the command behind `env` and its like."""
    while command and os.path.basename(command[0]) in _WRAPPERS:
        # Neither options nor their values are programs.
        command = next((command[at:] for at in range(1, len(command)) if shutil.which(command[at])), ())
    return command


def _shell_words(executable: str, command: Sequence[str]) -> Iterator[str]:
    """Yield the words of what a shell is given: a text, arguments, a script; or those of the script that is run."""
    shell = os.path.basename(command[0]) in _SHELLS
    for each in command[1:] if shell else [executable]:
        yield each
        text = each if shell else ""
        if os.path.isfile(each):  # a pipe can be read only once
            with suppress(OSError), open(each, "rb") as file:
                begin = file.read(_SCRIPT_BYTES)
                text = begin.decode("utf-8", "replace") if shell or _FOR_A_SHELL.match(begin) else ""
        with suppress(ValueError):  # a quotation without an end: the words before it
            yield from shlex.shlex(text, posix=True, punctuation_chars=True)


def join(wanted: str, rank: Rank) -> str | None:
    """Find the folder that the first rank of our job makes beside `wanted`, and sign in there.

    Returns None if it does not appear: then the rank is recorded into a folder of its own.
    """
    parent = os.path.dirname(os.path.abspath(wanted))
    strangers: set[str] = set()
    until = time.monotonic() + _FOLDER_S
    while time.monotonic() < until:
        for name in _folders(parent):
            folder = os.path.join(parent, name)
            if name in strangers or (job := job_of(folder)) is None:
                continue
            if job == rank.job and sign_in(folder, rank):
                return folder
            strangers.add(name)
        time.sleep(_POLL_S)
    return None


def sign_in(folder: str, rank: Rank) -> bool:
    """Note in the folder that this rank runs; False if it is noted already (by an earlier job of the same name)."""
    try:
        with open(_sign(folder, rank.number, "runs"), "x", encoding="ascii") as sign:
            sign.write(f"{os.uname().nodename} {os.getpid()}")
    except OSError:
        return False
    return True


def sign_out(folder: str, rank: Rank, *, failed: bool) -> None:
    """Note that our program has ended, and wait until the first rank has completed the trace.

    Some launchers kill all other ranks as soon as one has ended with an exit code that is not 0. If it `failed`, they
    are to: the first rank may wait for a message from it for ever.
    """
    with suppress(OSError):  # the folder is gone
        os.replace(_sign(folder, rank.number, "runs"), _sign(folder, rank.number, "ended"))
    began = time.monotonic()
    while _state(folder, 0) == "runs":
        hurries = failed and not os.path.exists(_sign(folder, 0, "completes"))
        if time.monotonic() - began >= (_FAILED_S if hurries else _ENDS_S):
            break
        time.sleep(_POLL_S)


def wait_for_others(folder: str, rank: Rank, *, failed: bool) -> None:
    """In the first rank: wait until all others have ended, so that the trace can be completed; see `sign_out`."""
    with suppress(OSError), open(_sign(folder, 0, "completes"), "x", encoding="ascii"):
        pass
    began = time.monotonic()
    while (waited := time.monotonic() - began) < (_FAILED_S if failed else _ENDS_S):
        states = [_state(folder, number) for number in range(1, rank.size)]
        if all(state == "ended" or (state == "absent" and waited > _STRANGERS_S) for state in states):
            return
        time.sleep(_POLL_S)


def release_others(folder: str) -> None:
    """In the first rank: let the others end, now that the trace is complete."""
    for sign in glob.glob(os.path.join(glob.escape(folder), "rank-*.*")):
        with suppress(OSError):
            os.unlink(sign)


def _folders(parent: str) -> list[str]:
    try:
        return [name for name in os.listdir(parent) if name.endswith(SUFFIX)]
    except OSError:
        return []


def _sign(folder: str, number: int, state: str) -> str:
    return os.path.join(folder, f"rank-{number}.{state}")


def _state(folder: str, number: int) -> str:
    """Return whether a rank `runs`, has `ended` (or died), or is `absent`."""
    if os.path.exists(_sign(folder, number, "ended")):
        return "ended"
    try:
        with open(_sign(folder, number, "runs"), encoding="ascii") as sign:
            host, pid = sign.read().split()
    except (OSError, ValueError):
        return "absent"
    return "ended" if host == os.uname().nodename and not os.path.exists(f"/proc/{pid}") else "runs"


def _launcher(variable: str) -> str:
    """Name the process that gave its children their ranks: the nearest ancestor that has none itself."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                has_rank = any(each.startswith(f"{variable}=".encode()) for each in environment.read().split(b"\0"))
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            break
        if not has_rank:
            return f"{os.uname().nodename}-{pid}-{fields[19]}"  # its start time: pids come again
        pid = int(fields[1])
    return f"{os.uname().nodename}-{pid}"


def contains(executable: str, text: bytes) -> bool:
    """Return whether a program or a shared library contains these bytes; False if it is neither."""
    try:
        with open(executable, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(text) >= 0
    except (OSError, ValueError):
        return False
