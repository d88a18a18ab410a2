"""Steps: the iterations of the main loop, cut where a person would; class, split, and what made the slow ones slow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from strobe.store.folded import ALL, PART
from strobe.store.map_combine import Known, MapCombine, PerProcess, over_processes
from strobe.structure.activities import PARTS, activities
from strobe.structure.agreement import first_numbers, usual_count
from strobe.structure.asked import Asked, asked_loops, levels_to_ask_for, not_there
from strobe.structure.classes import classify
from strobe.structure.cuts import cut
from strobe.structure.folded_time import FoldedTime, folded_time
from strobe.structure.main_loop import MainLoop, find_loop_of, find_loops
from strobe.structure.outliers import Drift, find_outliers
from strobe.structure.split import split
from strobe.structure.stream import Bools, Ints, Stream, read_streams

if TYPE_CHECKING:
    from strobe.store.trace import Trace


@dataclass(frozen=True)
class Loop:
    """A main loop of a process; its steps follow each other. The loops of a process are in order of time.

    kind: what marks its steps, see MainLoop; name: the region that does. accepted_step: number (in the process) of the
    first step after the loop was found while the program ran, None where it was found afterwards only.
    """

    kind: str
    name: str
    confidence: str
    reason: str
    step_count: int
    accepted_step: int | None = None


@dataclass(frozen=True)
class Recorded:
    """What the records of iterations say about the steps of a process, one array entry per step.

    class_id: class that the statistics of folded steps are told apart by, -1 (as `events`) for steps without a record.
    detail: NONE, PART or ALL of store/folded.py. path_hash: 0 without a record.
    """

    class_id: Ints
    detail: Ints
    events: Ints
    path_hash: npt.NDArray[np.uint64]

    @staticmethod
    def of_none(count: int) -> Recorded:
        """Return what there is to say about steps without records: they are all in detail."""
        unknown = np.full(count, -1, dtype=np.int64)
        return Recorded(unknown, np.full(count, ALL), unknown, np.zeros(count, dtype=np.uint64))


@dataclass(frozen=True)
class ProcessSteps:
    """The steps of one process, one array entry per step. Nanoseconds since the trace's zero.

    classes: the path each step takes (`train`, `train+validation`, ..., `partial`). parts_ns: an array (steps, PARTS)
    whose rows sum to the durations exactly. warm_up: slow steps at the very beginning. outlier: much slower than its
    class. cause: for slow steps the part with the largest excess over the median of the class, else "". anchored:
    whether a framework or the program itself says what a step is. confidence: `high`, `medium`, `low`, or `none` where
    no loop was found; reason says how it was found (of the loop that takes most time, if there are several). loops:
    those that run one after the other; they are the phases of the run. first_number: what the first step is called, so
    that ranks give steps that they run together the same number. recorded: None where all steps were found
    afterwards, and are in the trace in detail.
    """

    process: int
    start_ns: Ints
    duration_ns: Ints
    classes: tuple[str, ...]
    parts_ns: Ints
    complete: Bools
    warm_up: Bools
    outlier: Bools
    cause: tuple[str, ...]
    anchored: bool
    confidence: str
    reason: str
    loops: tuple[Loop, ...] = ()
    recorded: Recorded | None = None
    drifts: tuple[Drift, ...] = ()
    first_number: int = 0

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def loop(self) -> Ints:
        """Number of the loop (index into `loops`) that each step is an iteration of."""
        return np.repeat(np.arange(len(self.loops)), np.array([loop.step_count for loop in self.loops], dtype=np.int64))

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The classes that there are, in order of first occurrence."""
        return tuple(dict.fromkeys(self.classes))

    @property
    def drift(self) -> npt.NDArray[np.float64]:
        """By how much the class of each step has changed for good by then, as a part of what it was at first."""
        change, names, loop = np.zeros(len(self)), np.array(self.classes, dtype=object), self.loop
        for each in self.drifts:
            since = (loop == each.loop) & (names == each.class_name) & (np.arange(len(self)) >= each.since)
            change[since] = each.after_ns / each.before_ns - 1
        return change

    @property
    def kept(self) -> Bools:
        """Steps whose spans are in the trace, all of them."""
        return np.ones(len(self), dtype=bool) if self.recorded is None else self.recorded.detail == ALL

    @property
    def steady(self) -> Bools:
        """Steps that count: complete, and not part of the warm-up."""
        return self.complete & ~self.warm_up


@dataclass(frozen=True)
class Steps:
    """The steps of a trace: one entry per process that has any."""

    processes: tuple[ProcessSteps, ...]
    reason: str  # how they were found, or why there are none

    def __len__(self) -> int:
        return sum(map(len, self.processes))


def choose_steps(trace: Trace, asked: Asked) -> None:
    """Let all questions to this trace use the steps that the user asks for. To be called before the first question."""
    trace.once("asked", lambda: asked)


def find_steps(trace: Trace, asked: Asked | None = None) -> Steps:
    """Find the steps of every process of a trace; computed once per open trace.

    `asked`: what a step is; by default what was chosen for the trace, or what is found.

    Where some process has steps that a framework vouches for, loops found by structure alone in other processes (those
    of the loader's workers, for instance) are not steps of the program and left out.
    """
    asked = asked or trace.once("asked", Asked)
    return trace.once(("steps", asked), lambda: _find(trace, asked))


def known_steps(trace: Trace) -> Known:
    """Return what makes a process alone have the steps that it has among the others.

    A process without steps of its own has no step there, but knows the times of those that it lives in.
    """
    found, asked = find_steps(trace), trace.once("asked", Asked)
    own = {each.process: each for each in found.processes}

    def of_process(process: int) -> Mapping[object, object]:
        here = (replace(own[process], process=0),) if process in own else ()
        times = {0: trace.steps_of(process)} if own else {}
        return {"asked": asked, ("steps", asked): Steps(here, found.reason), "steps by process": times}

    return Known(of_process)


def _steps_alone(part: Trace) -> list[ProcessSteps]:
    from strobe.structure.records import with_records

    return [with_records(part, stream, process) for process, stream in read_streams(part)]


def _steps_of_count(part: Trace, count: int, wanted: bool) -> list[ProcessSteps]:
    streams = read_streams(part) if wanted else ()
    found = ((stream, process, find_loop_of(stream, count)) for process, stream in streams)
    return [_steps_of_loop(stream, loop, process, ()) for stream, process, loop in found if loop is not None]


@dataclass(frozen=True)
class _Those:
    """Some processes."""

    processes: frozenset[int]

    def of_process(self, process: int) -> bool:
        """Whether it is one of them."""
        return process in self.processes


_ALONE = MapCombine(_steps_alone, PerProcess())
_OF_COUNT = MapCombine(_steps_of_count, PerProcess())


def _find(trace: Trace, asked: Asked) -> Steps:
    if asked:
        return _find_asked(trace, asked)
    found = over_processes(trace, _ALONE)
    having = [each for each in found if len(each)]
    if any(each.anchored for each in having):
        having = [each for each in having if each.anchored]
    if having:
        having, note = _agreed(trace, having)
        return Steps(tuple(having), f"{having[0].confidence}: {having[0].reason}{note}")
    return Steps((), f"none: {found[0].reason if found else _without_threads(trace)}")


def _agreed(trace: Trace, ranks: Sequence[ProcessSteps]) -> tuple[list[ProcessSteps], str]:
    """Let the ranks of a job agree on what a step is, and number their steps alike; also say which ones do not agree.

    The median of their numbers of steps is taken. A rank that is off by more than one is searched for a loop of as many
    iterations; anchors are never overruled.
    """
    agreed = list(ranks)
    count = usual_count([len(each) for each in ranks])
    if count is None or len(ranks) < 2:
        return agreed, ""
    off = [number for number, each in enumerate(ranks) if abs(len(each) - count) > 1]
    searched = [number for number in off if not ranks[number].anchored and ranks[number].recorded is None]
    unanchored = {ranks[number].process: number for number in searched}
    those = _Those(frozenset(unanchored))
    for each in over_processes(trace, _OF_COUNT, count=count, wanted=those) if unanchored else ():
        agreed[unanchored[each.process]] = each
        off.remove(unanchored[each.process])
    numbers = first_numbers([each.start_ns for each in agreed])
    agreed = [replace(each, first_number=number) for each, number in zip(agreed, numbers, strict=True)]
    odd = ", ".join(f"{len(agreed[number])} in process {agreed[number].process}" for number in off)
    return agreed, f"; most processes have {count} steps, but {odd}" if odd else ""


def _find_asked(trace: Trace, asked: Asked) -> Steps:
    streams = list(read_streams(trace))
    found = [steps_of(stream, process, asked=asked, folded=folded_time(trace, process)) for process, stream in streams]
    having = tuple(each for each in found if len(each))
    if not having:
        levels = dict.fromkeys(name for _, stream in streams for name in levels_to_ask_for(stream, find_loops(stream)))
        raise not_there(asked, [str(name) for name in trace.regions.column("name")], list(levels))
    return Steps(having, f"{having[0].confidence}: {having[0].reason}")


def steps_of(
    stream: Stream,
    process: int = 0,
    recurring: Collection[str] = (),
    asked: Asked | None = None,
    folded: FoldedTime | None = None,
) -> ProcessSteps:
    """Find the steps of one thread, or those that the user asks for.

    `recurring`: names of extras that are known to make a class, seen once or often. `folded`: of what the stream holds
    no spans, where steps are asked for.
    """
    loops = find_loops(stream)
    if asked:
        loops = asked_loops(stream, loops, asked)
    if not loops:
        return _none(process, "no loop stands out: nothing repeats often and regularly enough")
    if len(loops) == 1:
        return _steps_of_loop(stream, loops[0], process, recurring, folded=folded)
    phases, low = [], 0
    for number, loop in enumerate(loops):
        high = int(loops[number + 1].rows[0]) if number + 1 < len(loops) else len(stream)
        followed = number + 1 < len(loops)
        phase = _steps_of_loop(
            stream.part(low, high), replace(loop, rows=loop.rows - low), process, recurring, followed=followed
        )
        phases.append(phase)
        end_ns = phase.start_ns[-1] + phase.duration_ns[-1]
        low = min(high, int(np.searchsorted(stream.start_ns, end_ns)))  # a span that goes on may reach further
    return _joined(phases)


def _steps_of_loop(
    stream: Stream,
    loop: MainLoop,
    process: int,
    recurring: Collection[str],
    *,
    followed: bool = False,
    folded: FoldedTime | None = None,
) -> ProcessSteps:
    acts = activities(stream)
    cuts = cut(stream, loop, acts)
    if followed and len(cuts) > 1 and not cuts.complete[-1]:
        cuts = cuts.without_last()  # it is the first one of the loop that follows
    if folded is not None and folded.is_inside(cuts.start_ns):
        ends = folded.until_folded(cuts.start_ns, cuts.end_ns)
        cuts = replace(cuts, end_ns=ends, fed_ns=np.minimum(cuts.fed_ns, ends))
    duration = cuts.end_ns - cuts.start_ns
    parts = split(acts, cuts)
    reason, recorded = _reason(loop, len(cuts)), None
    if folded is not None:
        parts = folded.with_parts(parts, cuts.start_ns, cuts.end_ns)
        reason = f"{reason}; {folded.said(cuts.start_ns)}"
        some = folded.touched(cuts.start_ns, cuts.end_ns)
        recorded = replace(Recorded.of_none(len(cuts)), detail=np.where(some, PART, ALL))
    classes = classify(stream, cuts, acts, recurring)
    unusual = find_outliers(duration, parts, classes)
    return ProcessSteps(
        process=process,
        start_ns=cuts.start_ns,
        duration_ns=duration,
        classes=tuple(classes),
        parts_ns=parts,
        complete=cuts.complete,
        warm_up=unusual.warm_up,
        outlier=unusual.outlier,
        cause=unusual.cause,
        anchored=loop.anchored,
        confidence=loop.confidence,
        reason=reason,
        loops=(Loop(loop.kind, loop.name, loop.confidence, reason, len(cuts)),),
        recorded=recorded,
        drifts=unusual.drifts,
    )


def _joined(phases: Sequence[ProcessSteps]) -> ProcessSteps:
    """The steps of a process that runs several loops one after the other; the longest loop speaks for all."""
    main = max(phases, key=lambda each: int(each.duration_ns.sum()))

    def joined(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(each, name) for each in phases])

    classes = tuple(name for each in phases for name in each.classes)
    duration, parts = joined("duration_ns"), joined("parts_ns")
    unusual = find_outliers(duration, parts, classes, [len(each) for each in phases])
    return replace(
        main,
        start_ns=joined("start_ns"),
        duration_ns=duration,
        classes=classes,
        parts_ns=parts,
        complete=joined("complete"),
        warm_up=unusual.warm_up,
        outlier=unusual.outlier,
        cause=unusual.cause,
        reason=f"{main.reason}; {len(phases)} loops one after the other",
        loops=tuple(loop for each in phases for loop in each.loops),
        drifts=unusual.drifts,
    )


def _reason(loop: MainLoop, steps: int) -> str:
    updates = round(len(loop.rows) / max(1, steps))
    return f"{loop.reason}; {updates} updates per batch" if loop.kind == "optimizer" and updates > 1 else loop.reason


def _none(process: int, reason: str) -> ProcessSteps:
    nothing, no = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    parts = np.empty((0, len(PARTS)), dtype=np.int64)
    return ProcessSteps(process, nothing, nothing, (), parts, no, no, no, (), False, "none", reason)


def _without_threads(trace: Trace) -> str:
    if trace.span_count:
        return "no step can be found: only GPUs were recorded, not the program that used them"
    return "no step can be found: this is a profile without times" if trace.folded_count else "nothing was recorded"
