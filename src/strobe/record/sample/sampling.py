"""The loop that samples processes at a rate until they end, a time is over, or a signal asks for the end."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from strobe.errors import RecordError
from strobe.native import SampledProcess
from strobe.record.launch import trace_folder
from strobe.record.launch.parallel_jobs import Rank, rank_of
from strobe.record.options.session_settings import json_text
from strobe.record.sample import processes
from strobe.record.sample.stop_signals import stop_asked

_CHILDREN_S = 0.25  # between two looks for new children
_JOB_S = 1.0  # between two looks at all processes of the machine
_MOST_NAMED = 5  # processes of which something is told at the end
_TRIES = 5  # to sample a process that may become a Python


@dataclass
class _Process:
    """One program that is sampled. A process that becomes another program by an exec is a second one."""

    pid: int
    core: SampledProcess
    blocks: str
    main: bool


@dataclass
class _Refusal:
    """A process that could not be sampled when it ran `program`: how often that was tried, and why."""

    program: str
    tries: int
    why: str
    named: bool  # somebody asked for it, or it is a Python


@dataclass
class Sampling:
    """Processes that are sampled into one trace folder, and what happened to those that no longer are.

    `roots` were asked for by number, `job` by their command line; `children`: their descendants are sampled, too;
    `native`: with functions of C code.
    """

    folder: str
    roots: Sequence[int] = ()
    children: bool = False
    native: bool = False
    job: re.Pattern[str] | None = None
    running: list[_Process] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)
    _ended: list[int] = field(default_factory=list)
    _ranks: dict[int, Rank | None] = field(default_factory=dict)  # of all that are or were sampled
    _refused: dict[int, _Refusal] = field(default_factory=dict)

    def add(self, pid: int, *, main: bool) -> None:
        """Sample one more process. Raises RecordError if that is impossible."""
        blocks, number = os.path.join(self.folder, f"process-{pid}.blocks"), 1
        while os.path.exists(blocks):  # it was another program before
            number += 1
            blocks = os.path.join(self.folder, f"process-{pid}-{number}.blocks")
        sampled = processes.sampled(pid, blocks, native=self.native)
        rank = self._ranks[pid] = rank_of(processes.environment(pid))
        if not main:
            rank = None
        description: dict[str, object] = {
            "argv": processes.words(pid, "cmdline"),
            "host": os.uname().nodename,
            "python": sampled.version,
            "main": main,
        }
        note = json_text({"rank": rank.number, "ranks": rank.size}) if rank else ""
        sampled.describe(json_text(description), note)
        self.running.append(_Process(pid, sampled, blocks, main))

    def look(self) -> None:
        """Take a sample of every thread of every process; those that are over are complete then."""
        for process in list(self.running):
            life = process.core.look()
            if life == SampledProcess.Life.RUNS:
                continue
            self._finish(process, over=True)
            if life == SampledProcess.Life.REPLACED:
                self._go_on(process)
            else:
                self._ended.append(process.pid)

    def look_for_more(self) -> None:
        """Sample the processes of the job that have begun, and the Python programs that processes have started."""
        matches = processes.matching(self.job) if self.job else []
        asked = [*self.roots, *matches]
        for pid in matches:
            self._try(pid, named=True)
        if self.children or self.job:
            for pid in dict.fromkeys(child for root in asked for child in processes.descendants(root)):
                self._try(pid, named="python" in os.path.basename(processes.program(pid)))

    def _try(self, pid: int, *, named: bool) -> None:
        """Sample a process that is not sampled yet, unless that failed several times."""
        program, before = processes.program(pid), self._refused.get(pid)
        tries = before.tries + 1 if before and before.program == program else 1
        # One that has just begun becomes a Python a moment later, perhaps.
        if any(each.pid == pid for each in self.running) or not program or tries > _TRIES:
            return
        try:
            self.add(pid, main=self._is_main(pid))
            self._refused.pop(pid, None)
        except RecordError as error:
            self._refused[pid] = _Refusal(program, tries, error.what, named)

    def _is_main(self, pid: int) -> bool:
        """Whether a process is one of a job, and not a helper of one that is sampled: it has a rank of its own."""
        above = next((each for each in processes.ancestors(pid) if each in self._ranks), None)
        return above is None or rank_of(processes.environment(pid)) not in (None, self._ranks[above])

    def ended(self) -> list[str]:
        """Return which processes ended, in sentences; of many, how many."""
        if len(self._ended) > _MOST_NAMED:
            return [f"{len(self._ended)} processes ended"]
        return [f"process {pid} ended" for pid in self._ended]

    def refusals(self) -> list[str]:
        """Return why processes were not sampled that somebody asked for, in sentences: the first few, and a number."""
        why = [each.why for each in self._refused.values() if each.named]
        more = len(why) - _MOST_NAMED
        return [*why[:_MOST_NAMED], *([f"{more} more processes cannot be sampled"] if more > 0 else [])]

    def finish(self) -> None:
        """Complete the files of all processes."""
        while self.running:
            self._finish(self.running[0], over=False)

    def _finish(self, process: _Process, *, over: bool) -> None:
        self.running.remove(process)
        process.core.finish(over)
        if not process.core.samples and not process.main:  # a child between its fork and its exec
            os.unlink(process.blocks)

    def _go_on(self, process: _Process) -> None:
        """Sample the program that a process has become, if that is a Python, too."""
        name = os.path.basename(processes.program(process.pid)) or "another program"
        what = f"process {process.pid} became {name} by an exec"
        for _ in range(_TRIES):
            time.sleep(_CHILDREN_S / _TRIES)  # until its interpreter has begun
            with suppress(RecordError):
                self.add(process.pid, main=process.main)
                self.endings.append(f"{what}, and was sampled on")
                return
        if process.main:
            self.endings.append(f"{what}, which was not sampled")


def sample(
    pids: Sequence[int],
    output: str,
    *,
    rate_hz: float,
    duration_s: float | None,
    children: bool,
    native: bool = False,
    job: re.Pattern[str] | None = None,
) -> tuple[str, list[str]]:
    """Sample processes until all have ended, `duration_s` is over, or SIGINT, SIGTERM or SIGHUP arrives.

    native: with functions of C code, also of processes without Python. job: processes whose command line matches, also
    those that begin meanwhile, with all that they start. Returns the trace folder, and in words what happened to
    processes meanwhile. Raises RecordError if one of `pids`, or all of the job, cannot be sampled, or the folder cannot
    be made.
    """
    settings = {"sample": f"{rate_hz:g}", "for": f"{duration_s:g}s" if duration_s else ""}
    options = {name: {"value": value, "origin": "command line"} for name, value in settings.items()}
    folder = trace_folder.create(
        output,
        processes.words(pids[0], "cmdline"),
        {"adapters": ["python_samples"], "options": options, "sampled": True},
        working_directory=processes.folder(pids[0]),
    )
    sampling = Sampling(folder, pids, children, native, job)
    try:
        for pid in [] if job else pids:
            sampling.add(pid, main=True)
        sampling.look_for_more()
        if not sampling.running:
            raise RecordError("; ".join(sampling.refusals()))
    except BaseException:
        trace_folder.remove(folder)
        raise
    with stop_asked() as asked:
        _loop(sampling, rate_hz, duration_s, asked)
    sampling.finish()
    trace_folder.finish(folder, {})
    return folder, [*sampling.endings, *sampling.ended(), *sampling.refusals()]


def _loop(sampling: Sampling, rate_hz: float, duration_s: float | None, asked: Callable[[], bool]) -> None:
    period_s, begun_s = 1 / rate_hz, time.monotonic()
    next_s = children_s = begun_s
    cpu_ns = time.process_time_ns()
    while sampling.running and not asked():
        if (sampling.children or sampling.job) and children_s <= next_s:
            sampling.look_for_more()
            children_s = next_s + (_JOB_S if sampling.job else _CHILDREN_S)
        first = sampling.running[0]
        sampling.look()
        used_ns, cpu_ns = time.process_time_ns() - cpu_ns, time.process_time_ns()
        if first in sampling.running:
            first.core.count("own_cpu_ns", used_ns)
        # Not quite regular, so that no rhythm of the program hides from it. What was missed is not made up for: each
        # sample stands for the time since the one before.
        next_s += period_s * (0.5 + random.random())
        now_s = time.monotonic()
        if next_s < now_s:
            next_s = now_s + period_s / 2
        if duration_s is not None and next_s >= begun_s + duration_s:
            time.sleep(max(0.0, begun_s + duration_s - now_s))
            sampling.look()
            break
        time.sleep(next_s - now_s)
