"""What `/proc` has of other processes: command, folder, environment, relatives, and why one cannot be read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from strobe.errors import RecordError
from strobe.native import SampledProcess


def words(pid: int, name: str) -> list[str]:
    """Return the texts of a file of `/proc/PID` with a zero behind each: `cmdline`, `environ`; none if it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return [os.fsdecode(each) for each in file.read().split(b"\0") if each]
    return []


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process began with, empty if it may not be read."""
    pairs = (each.partition("=") for each in words(pid, "environ"))
    return {name: value for name, equals, value in pairs if equals}


def folder(pid: int) -> str:
    """Return the working directory of a process, "" if it may not be read."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/cwd")
    return ""


def program(pid: int) -> str:
    """Return the program that a process runs, "" if it may not be read. Another one after an exec."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")
    return ""


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    found = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with suppress(OSError), open(f"/proc/{parent}/task/{thread}/children") as file:
                    children = [int(word) for word in file.read().split()]
                found += children
                waiting += children
    return found


def ancestors(pid: int) -> list[int]:
    """Return the parent of a process, its parent, and so on, as far as they may be read."""
    found: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        while pid > 1:
            with open(f"/proc/{pid}/stat", errors="replace") as file:  # the name in brackets may hold anything
                pid = int(file.read().rpartition(")")[2].split()[1])
            found.append(pid)
    return found


def matching(pattern: re.Pattern[str]) -> list[int]:
    """Return the processes whose command line matches, parents before children; not this one, nor what started it."""
    ours = {os.getpid(), *ancestors(os.getpid())}
    there = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [pid for pid in there if pid not in ours and pattern.search(" ".join(words(pid, "cmdline")))]
    return sorted(found, key=lambda pid: (len(ancestors(pid)), pid))


def sampled(pid: int, blocks: str, *, native: bool) -> SampledProcess:
    """Begin to sample a process into a block file. Raises RecordError with the reason, if that is impossible.

    native: with functions of C code; then a process without Python can be sampled, too.
    """
    with refusals(pid, "sample", "sampled"):
        return SampledProcess(pid, blocks, native)


@contextmanager
def refusals(pid: int, verb: str, done: str) -> Iterator[None]:
    """Raise RecordError with the reason where the block finds that something cannot be done to a process.

    `verb` is that of the command line, `done` its participle.
    """
    if not 0 < pid < 1 << 31:
        raise RecordError(f"there is no process {pid}")
    if pid == os.getpid():
        raise RecordError(f"process {pid} is this strobe itself")
    try:
        yield
    except ProcessLookupError as error:
        raise RecordError(f"there is no process {pid}") from error
    except PermissionError as error:
        raise RecordError(f"process {pid} may not be read: {_refusal(pid)}", do=_way_out(pid, verb)) from error
    except ValueError as error:
        name = os.path.basename(program(pid)) or "its program"
        raise RecordError(f"process {pid} cannot be {done}: {name} {error}") from error


def owner(pid: int) -> int:
    """Return the user that a process belongs to, -1 if it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def _scope() -> int:
    """Return the value of Yama's ptrace_scope: 0 where every process of the same user may be read."""
    with suppress(OSError, ValueError), open("/proc/sys/kernel/yama/ptrace_scope") as file:
        return int(file.read())
    return 0


def _refusal(pid: int) -> str:
    if os.geteuid() and owner(pid) != os.geteuid():
        return f"it belongs to user {owner(pid)}, and this strobe runs as user {os.geteuid()}"
    if os.geteuid() and _scope():
        return f"kernel.yama.ptrace_scope is {_scope()}, so that only its parent and root may"
    return "the kernel refuses it; a container may lack the capability SYS_PTRACE"


def _way_out(pid: int, verb: str) -> str:
    if os.geteuid():
        return f"As root: sudo strobe {verb} {pid}"
    return "Of docker: run the container of strobe with --cap-add SYS_PTRACE --pid host"
