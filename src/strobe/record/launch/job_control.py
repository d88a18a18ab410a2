"""Requests to the processes of a running job: who takes them, from which step they record.

A process that leads a recording has a page of memory in the trace's folder, `window-HOST-PID`, which its own children
read. An armed one (`strobe run --armed`) takes requests there, and counts its steps in it.
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strobe.errors import RecordError
from strobe.native import core
from strobe.record import flight_requests

_LOOK_S = 0.2  # how long the steps are watched, to know how many pass until a request has come
_LEAST_AHEAD = 3  # steps
_PAUSE_S = 0.01


@dataclass(frozen=True)
class Leader:
    """A process that leads a recording on this host. steps: how many have begun, if it is armed."""

    file: str
    pid: int
    rank: int | None
    armed: bool
    steps: int
    answered: bool
    open: bool

    @property
    def name(self) -> str:
        """How people call it."""
        return f"process {self.pid}" if self.rank is None else f"rank {self.rank}"


def newest_job(folder: str = ".") -> str:
    """Return the trace of the job in `folder` that began last and is still running. Raises RecordError without one."""
    pages = glob.glob(os.path.join(glob.escape(folder), "*.strobe", "window-*"))
    newest = max(pages, key=os.path.getmtime, default="")
    if not newest:
        raise RecordError("no job is being recorded in this folder", do="strobe run --armed SCRIPT", exit_code=2)
    return os.path.dirname(newest)


def leaders(trace: str) -> tuple[list[Leader], list[str]]:
    """Return the processes of a job that run on this host, by rank, and the names of its other hosts."""
    host = os.uname().nodename
    found, hosts = [], set()
    for file in glob.glob(os.path.join(glob.escape(trace), "window-*")):
        of_host, _, pid = os.path.basename(file).removeprefix("window-").rpartition("-")
        if of_host != host:
            hosts.add(of_host)
        elif pid.isdigit() and os.path.exists(f"/proc/{pid}"):
            armed, rank, steps, answered, is_open = core.window_state(file)
            ranked = rank if armed and rank >= 0 else None
            found.append(Leader(file, int(pid), ranked, armed, steps, answered, is_open))
    return sorted(found, key=lambda each: (each.rank is None, each.rank or 0, each.pid)), sorted(hosts)


def is_flight(trace: str) -> bool:
    """Return whether a flight recorder records the job."""
    try:
        with open(os.path.join(trace, "job.json"), encoding="utf-8") as file:
            return bool(json.load(file)["settings"]["options"]["flight"]["value"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def request_flight(trace: str, wait_s: float) -> list[str]:
    """Ask the flight recorder of a job for a trace, and wait for it; return the paths of what was written meanwhile.

    Raises RecordError if it is not answered in time, or wrote none.
    """
    before = set(glob.glob(_flights(trace)))
    path = flight_requests.request(trace, "request", "strobe job record")
    end = time.monotonic() + wait_s
    while os.path.exists(path):
        if time.monotonic() > end:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise RecordError(f"the flight recorder of '{trace}' has not answered for {wait_s:g} s", exit_code=5)
        time.sleep(_PAUSE_S)
    written = sorted(set(glob.glob(_flights(trace))) - before)
    if not written:
        raise RecordError(f"the flight recorder of '{trace}' has written as many traces as it may", exit_code=5)
    return written


def _flights(trace: str) -> str:
    return f"{glob.escape(os.path.abspath(trace).removesuffix('.strobe'))}-request*.strobe"


@dataclass(frozen=True)
class Request:
    """What was asked: the step before which the windows open (None: at once), and who did not answer in time."""

    ranks: tuple[Leader, ...]
    begin_step: int | None
    silent: tuple[Leader, ...]


def request(trace: str, step_count: int, for_ns: int, wait_s: float) -> Request:
    """Ask all armed processes of a job on this host to record `step_count` steps (0: any number) for at most `for_ns`.

    They begin at one common step, ahead of the one that is furthest, where they count steps. Raises RecordError where
    nobody takes requests, or where steps are wanted and nobody counts any.
    """
    armed = [each for each in leaders(trace)[0] if each.armed]
    if not armed:
        raise RecordError(f"no process of '{trace}' takes requests", do="strobe run --armed SCRIPT", exit_code=2)
    counting = any(each.steps for each in armed)
    if step_count and not counting:
        what = (
            f"no process of '{trace}' has counted a step so far: steps are calls of strobe.step(), or of an optimizer"
        )
        raise RecordError(f"{what} of PyTorch", do="strobe job record --for 10s", exit_code=2)
    if counting:  # a launcher of ranks counts none, and never will
        armed = [each for each in armed if each.steps or each.rank is not None]
    begin = _common_step(trace, armed) if counting else -1
    for each in armed:
        core.window_request(each.file, begin, step_count, for_ns)
    silent = until(trace, armed, lambda now: now.answered, wait_s)
    return Request(tuple(armed), begin if begin >= 0 else None, silent)


def _common_step(trace: str, armed: Sequence[Leader]) -> int:
    """Return a step that no process will have begun when its request has come."""
    time.sleep(_LOOK_S)
    before = {each.file: each.steps for each in armed}
    now = {each.file: each.steps for each in leaders(trace)[0]}
    passed = max(now.get(file, steps) - steps for file, steps in before.items())
    return max(now.values()) + max(_LEAST_AHEAD, math.ceil(passed))


def until(trace: str, of: Sequence[Leader], reached: Callable[[Leader], bool], wait_s: float) -> tuple[Leader, ...]:
    """Wait until processes have reached a state, or have ended; return those that have not after `wait_s`."""
    end = time.monotonic() + wait_s
    while True:
        now = {each.file: each for each in leaders(trace)[0]}
        missing = tuple(now[each.file] for each in of if each.file in now and not reached(now[each.file]))
        if not missing or time.monotonic() > end:
            return missing
        time.sleep(_PAUSE_S)
