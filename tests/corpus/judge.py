"""Judging: do the boundaries that were found mark the true steps?

Right is what marks at least 90 % of the interior true steps with exactly one boundary. Where in the step it lies
does not matter: a person who reads the table sees the same steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import strobe
from strobe.errors import TraceError
from strobe.steps.loop_choice.events import events_of
from strobe.steps.loops.structure import structure_of
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Stream, read_streams
from tests.corpus.programs import Recording

SHARE = 0.9
FIRST = 5  # levels in which the true one must be
# A boundary may be the event at which the program reads its clock for the truth: which of the two times is earlier is
# then a matter of less than a microsecond, or of the next time slice on a busy machine.
SLACK_NS = 50_000


@dataclass(frozen=True)
class ProcessVerdict:
    """What was found in one process. first: the kind of truth that the chosen steps match, None if wrong.

    strict: whether it is the kind that the program names first. any_of_five: the kind that some list of levels has
    among its first five; lists: the same for each (the tree that is shown, and every sequence's levels by score).
    steps, true_steps: how many were found, and how many there are of the first kind of truth.
    """

    pid: int
    first: str | None
    strict: bool
    any_of_five: str | None
    lists: Mapping[str, str | None]
    steps: int
    true_steps: int
    confidence: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """A program's verdict: right where it is so in every process that wrote down a truth."""

    name: str
    group: str
    processes: Sequence[ProcessVerdict] = field(default_factory=tuple)

    @property
    def first(self) -> bool:
        """Whether the chosen steps are right everywhere."""
        return all(each.first is not None for each in self.processes)

    @property
    def strict(self) -> bool:
        """Whether they are the steps that the program names first, not what else is accepted."""
        return all(each.strict for each in self.processes)

    @property
    def any_of_five(self) -> bool:
        """Whether the true level is among the first five, or chosen, everywhere."""
        return all(each.first is not None or each.any_of_five is not None for each in self.processes)

    @property
    def misleading(self) -> bool:
        """Whether something wrong is told with high confidence anywhere."""
        return any(each.first is None and each.confidence == "high" for each in self.processes)


def is_right(boundaries: np.ndarray, true_begins: np.ndarray) -> bool:
    """Whether at least 90 % of the interior true steps contain exactly one boundary.

    Both ascending, in the same clock. Interior: all but the first and the last true step.
    """
    if len(true_begins) < 5 and abs(len(boundaries) - len(true_begins)) > 1:
        return False  # two interior steps say little
    if len(true_begins) < 3:
        return True
    slack = min(SLACK_NS, int(np.median(np.diff(true_begins)) // 10))
    shares = []
    for moved in (0, slack, -slack):
        edges = true_begins[1:] + moved
        shares.append(np.mean(np.diff(np.searchsorted(boundaries, edges)) == 1))
    return bool(max(shares) >= SHARE)


def match(boundaries: np.ndarray, truth: Mapping[str, np.ndarray], zero_ns: int) -> str | None:
    """Return the first kind of truth that the boundaries (since the trace's zero) match."""
    ordered = np.sort(boundaries) + zero_ns
    return next((what for what, begins in truth.items() if is_right(ordered, begins)), None)


def judge(recording: Recording) -> Verdict:
    """Judge what is found in a recording."""
    program = recording.program
    try:
        trace = strobe.open(recording.trace)
    except TraceError as error:
        nothing = [
            _verdict(pid, truth, None, {}, 0, str(error).splitlines()[0])
            for pid, truth in sorted(recording.truth.items())
        ]
        return Verdict(program.name, program.group, nothing)
    found = find_steps(trace)
    steps = {each.process: each for each in found.processes}
    levels = {process: _levels(stream) for process, stream in read_streams(trace)}
    number = dict(zip(trace.processes.column("pid"), trace.processes.column("process"), strict=True))
    verdicts = []
    for pid, truth in sorted(recording.truth.items()):
        process = number.get(pid, -1)
        mine = steps.get(process)
        verdicts.append(_verdict(pid, truth, mine, levels.get(process, {}), trace.zero_ns, found.reason))
    return Verdict(program.name, program.group, verdicts)


def _verdict(
    pid: int,
    truth: Mapping[str, np.ndarray],
    found: ProcessSteps | None,
    levels: Mapping[str, Sequence[np.ndarray]],
    zero_ns: int,
    why_none: str,
) -> ProcessVerdict:
    lists = {
        name: next(filter(None, (match(times, truth, zero_ns) for times in each)), None)
        for name, each in levels.items()
    }
    first = match(found.start_ns, truth, zero_ns) if found else None
    return ProcessVerdict(
        pid=pid,
        first=first,
        strict=first == next(iter(truth)),
        any_of_five=next(filter(None, lists.values()), None),
        lists=lists,
        steps=len(found) if found else 0,
        true_steps=len(next(iter(truth.values()))),
        confidence=found.confidence if found else "none",
        reason=found.reason if found else why_none,
    )


def _levels(stream: Stream) -> dict[str, list[np.ndarray]]:
    """The times at which the first five levels of each list are marked."""
    lists = {"tree": [level.rows for level in structure_of(stream).levels]}
    for kind, events in events_of(stream).items():
        lists[kind] = [events.rows[level.positions] for level in events.levels()]
    return {name: [stream.start_ns[rows] for rows in each[:FIRST]] for name, each in lists.items()}
