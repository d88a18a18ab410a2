"""Requests to the processes of a running job: who takes them, from which step they record.

A process that leads a recording has a page of memory in the trace's folder, `window-HOST-PID`, which its own children
read. An armed one (`strobe run --armed`) takes requests there, and counts its steps in it. Processes of this node are
asked in their pages. Those of other nodes are asked through a file, which one of them on each node looks at once a
second (native/python/recording/node_requests.h); it hands requests on, and writes the pages to where we read them.
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from strobe.errors import RecordError
from strobe.native import core
from strobe.record import flight_requests
from strobe.record.launch.flight import MOST_WRITTEN

_LOOK_S = 0.2  # how long the steps are watched, to know how many pass until a request has come
_LOOK_AT_NODES_S = 2.5  # the same where a node sees the request up to a second later, and its steps are that old
_LEAST_AHEAD = 3  # steps
_LOOK_AGAIN_S = 5.0  # nodes answer for 10 s after a look
_PAUSE_S = 0.01
_PAUSE_NODES_S = 0.1  # where files are read that other nodes write


@dataclass(frozen=True)
class Leader:
    """A process that leads a recording, and its page. steps: how many have begun, if it is armed. answered: number of
    the newest request that it has taken; opened: of the newest by the time its window was opened last, at opened_step.
    look: number of the newest look at the job that this is the answer to, of a process on another node.
    """

    file: str
    host: str
    pid: int
    rank: int | None
    armed: bool
    steps: int
    answered: int
    opened: int
    opened_step: int
    open: bool
    look: int

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


@dataclass
class Job:
    """The processes of the job that is recorded into `trace`, as they are seen from this node."""

    trace: str
    host: str = field(default_factory=lambda: os.uname().nodename)
    _looks: tuple[int, int] = (0, 0)  # numbers of the newest two: a process that answered neither has ended
    _looked_s: float = -math.inf

    def pages(self) -> list[Leader]:
        """Return the processes that run on this node, and all of other nodes, by rank.

        Other nodes have written theirs within the last second, once they have answered a look: see `silent`.
        """
        found = [each for file in glob.glob(os.path.join(glob.escape(self.trace), "window-*")) for each in _page(file)]
        found = [each for each in found if each.host != self.host or os.path.exists(f"/proc/{each.pid}")]
        if time.monotonic() > self._looked_s + _LOOK_AGAIN_S and any(each.host != self.host for each in found):
            self._looked_s = time.monotonic()
            number = core.nodes_look(self.trace)
            self._looks = (self._looks[1] or number, number)
        return sorted(found, key=lambda each: (each.rank is None, each.rank or 0, each.host, each.pid))

    def leaders(self) -> list[Leader]:
        """Return the processes that run: on this node, and on others as far as these have answered."""
        return [each for each in self.pages() if self._is_heard(each)]

    def _is_heard(self, of: Leader) -> bool:
        return of.host == self.host or of.look >= self._looks[0] > 0

    def silent(self) -> dict[str, list[Leader]]:
        """Return the processes of the nodes that have not answered so far, by node."""
        pages = self.pages()
        others = sorted({each.host for each in pages} - {self.host})
        silent = [host for host in others if core.node_answer(self.trace, host) < max(1, self._looks[0])]
        return {host: [each for each in pages if each.host == host] for host in silent}

    def hear(self, wait_s: float) -> dict[str, list[Leader]]:
        """Wait until all nodes have answered; return the processes of those that have not after `wait_s`, by node."""
        end = time.monotonic() + wait_s
        while (silent := self.silent()) and time.monotonic() < end:
            time.sleep(_PAUSE_NODES_S)
        return silent

    def until(self, of: Sequence[Leader], reached: Callable[[Leader], bool], wait_s: float) -> tuple[Leader, ...]:
        """Wait until processes have reached a state, or have ended; return those that have not after `wait_s`."""
        end = time.monotonic() + wait_s
        pause_s = _PAUSE_NODES_S if any(each.host != self.host for each in of) else _PAUSE_S
        while True:
            now = {each.file: each for each in self.leaders()}
            missing = tuple(now[each.file] for each in of if each.file in now and not reached(now[each.file]))
            if not missing or time.monotonic() > end:
                return missing
            time.sleep(pause_s)


def _page(file: str) -> Iterable[Leader]:
    host, _, pid = os.path.basename(file).removeprefix("window-").rpartition("-")
    if not host or not pid.isdigit():
        return  # what nodes share
    try:
        armed, rank, steps, answered, opened, opened_step, is_open, look = core.window_state(file)
    except OSError:
        return  # it has just ended, or has just begun
    ranked = rank if armed and rank >= 0 else None
    yield Leader(file, host, int(pid), ranked, armed, steps, answered, opened, opened_step, is_open, look)


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
        why = f"it has written {MOST_WRITTEN} already, or could not: `strobe run` names the reason"
        raise RecordError(f"the flight recorder of '{trace}' wrote no trace: {why}", exit_code=5)
    return written


def _flights(trace: str) -> str:
    return f"{glob.escape(os.path.abspath(trace).removesuffix('.strobe'))}-request*.strobe"


@dataclass(frozen=True)
class Request:
    """What was asked: its number, the step before which the windows open (None: at once), and who did not answer in
    time: processes, and nodes with their processes.
    """

    number: int
    ranks: tuple[Leader, ...]
    begin_step: int | None
    silent: tuple[Leader, ...]
    silent_nodes: dict[str, list[Leader]]


def request(job: Job, step_count: int, for_ns: int, wait_s: float) -> Request:
    """Ask all armed processes of a job to record `step_count` steps (0: any number) for at most `for_ns`.

    They begin at one common step, ahead of the one that is furthest, where they count steps. Raises RecordError where
    nobody takes requests, or where steps are wanted and nobody counts any.
    """
    silent_nodes = job.hear(wait_s)
    armed = [each for each in job.leaders() if each.armed]
    if not armed and not silent_nodes:
        raise RecordError(f"no process of '{job.trace}' takes requests", do="strobe run --armed SCRIPT", exit_code=2)
    counting = any(each.steps for each in armed)
    if armed and step_count and not counting:
        what = (
            f"no process of '{job.trace}' has counted a step so far: "
            "steps are calls of strobe.step(), or of an optimizer of PyTorch"
        )
        raise RecordError(what, do="strobe job record --for 10s", exit_code=2)
    if counting:  # a launcher of ranks counts none, and never will
        armed = [each for each in armed if each.steps or each.rank is not None]
    begin = _common_step(job, armed) if counting else -1
    number = core.nodes_request(job.trace, job.host, begin, step_count, for_ns)
    for each in armed:
        if each.host == job.host:
            core.window_request(each.file, number, begin, step_count, for_ns)
    silent = job.until(armed, lambda now: now.answered >= number, wait_s)
    return Request(number, tuple(armed), begin if begin >= 0 else None, silent, silent_nodes)


def _common_step(job: Job, armed: Sequence[Leader]) -> int:
    """Return a step that no process will have begun when its request has come."""
    of_nodes = any(each.host != job.host for each in armed)
    time.sleep(_LOOK_AT_NODES_S if of_nodes else _LOOK_S)
    before = {each.file: each.steps for each in armed}
    now = {each.file: each.steps for each in job.leaders()}
    passed = max(now.get(file, steps) - steps for file, steps in before.items())
    return max(now.values(), default=0) + max(_LEAST_AHEAD, math.ceil(passed * (2 if of_nodes else 1)))
