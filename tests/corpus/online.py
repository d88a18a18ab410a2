"""Judging what was found while a program ran: which loop was accepted, after how many true steps, and is it right?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import strobe
from strobe.errors import TraceError
from strobe.steps.steps import find_steps
from strobe.trace.folded import read_loops
from tests.corpus.judge import is_right, match
from tests.corpus.programs import Recording


@dataclass(frozen=True)
class OnlineProcess:
    """One process. loops: how many were accepted, one after the other.

    accepted_at: true steps that had begun when the first of them was, None without any; counted in the kind of truth
    that the records match, else in the first. records: the kind of truth that the recorded iterations match, None if
    they are wrong or there are none. steps: the same for the steps that the trace tells of in the end.
    """

    pid: int
    loops: int
    accepted_at: int | None
    records: str | None
    steps: str | None
    reason: str


@dataclass(frozen=True)
class Online:
    """A program's verdict: right where it is so in every process that accepted a loop."""

    name: str
    group: str
    processes: Sequence[OnlineProcess]

    @property
    def accepted(self) -> bool:
        """Whether any process accepted a loop."""
        return any(each.loops for each in self.processes)

    @property
    def right(self) -> bool:
        """Whether every accepted loop is the true one."""
        return all(each.records is not None for each in self.processes if each.loops)

    @property
    def steps_right(self) -> bool:
        """Whether the steps told in the end are the true ones in every process."""
        return all(each.steps is not None for each in self.processes)

    @property
    def accepted_at(self) -> int | None:
        """True steps until acceptance, in the process in which it took longest."""
        return max((each.accepted_at for each in self.processes if each.accepted_at is not None), default=None)


def judge_online(recording: Recording) -> Online:
    """Judge a recording in which iterations were folded."""
    program = recording.program
    try:
        trace = strobe.open(recording.trace)
    except TraceError as error:
        nothing = [OnlineProcess(pid, 0, None, None, None, str(error)) for pid in recording.truth]
        return Online(program.name, program.group, nothing)
    number = dict(zip(trace.processes.column("pid"), trace.processes.column("process"), strict=True))
    steps = {each.process: each for each in find_steps(trace).processes}
    verdicts = []
    for pid, truth in sorted(recording.truth.items()):
        if pid not in number:
            verdicts.append(OnlineProcess(pid, 0, None, None, None, "not recorded"))
            continue
        loops = read_loops(trace.readers[number[pid]], trace.zero_of(number[pid]))
        begins = trace.iterations(number[pid]).start_ns + trace.zero_ns
        told = steps.get(number[pid])
        kind = _kind_of_records(begins, truth)
        at = np.searchsorted(truth[kind or next(iter(truth))], loops[0].accepted_ns + trace.zero_ns) if loops else None
        verdicts.append(
            OnlineProcess(
                pid=pid,
                loops=len(loops),
                accepted_at=None if at is None else int(at),
                records=kind if loops else None,
                steps=match(told.start_ns, truth, trace.zero_ns) if told else None,
                reason="; ".join(loop.reason for loop in loops) or (told.reason if told else "no loop was accepted"),
            )
        )
    return Online(program.name, program.group, verdicts)


def _kind_of_records(begins: np.ndarray, truth: Mapping[str, np.ndarray]) -> str | None:
    """The kind of truth that recorded iterations match, among the true steps that they cover."""
    if not len(begins):
        return None
    for kind, true in truth.items():
        covered = true[(true >= begins[0]) & (true <= begins[-1])]
        if is_right(begins, covered):
            return kind
    return None
