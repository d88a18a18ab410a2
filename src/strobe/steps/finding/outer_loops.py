"""Loops around the steps of a recorded run: told by what only some of its steps do, whether they were kept or folded.

An epoch ends with a validation, a block of time steps with its output. The records of iterations hold what is needed:
the class of each, and how many events it has. So the iterations of such a loop, their times and their parts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import PARTS
from strobe.steps.cells import Cells
from strobe.steps.finding.loop_steps import LoopSteps, joined_steps
from strobe.steps.finding.step_classes import Extras
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Bools, Ints, Stream
from strobe.trace.folded import ALL, PART

# Numbers of steps from mark to mark vary by this part of their mean at most; a loop has at least this many of them in
# each iteration, and is around another one if that has as many times its iterations.
_MOST_VARIATION = 0.5
_FEWEST_STEPS = 1.5
# What most steps have in common is no mark.
_USUAL = 0.5
_REST = PARTS.index("rest")


@dataclass(frozen=True)
class OuterLoop:
    """A loop around the steps of a process.

    loop: number of the loop that these are the iterations of. marker: what only some of them do. firsts: the step with
    which each of its iterations begins; of the first and the last one the run may hold a part only. ends: the step
    behind the last one. variation: of the number of steps, standard deviation by mean.
    """

    loop: int
    marker: str
    firsts: Ints
    ends: int
    variation: float

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def lasts(self) -> Ints:
        """The step with which each of its iterations ends."""
        return np.append(self.firsts[1:], self.ends) - 1


def outer_loops(stream: Stream, steps: ProcessSteps) -> list[OuterLoop]:
    """Return the loops around the steps of a process, innermost first; of several main loops, one behind the other."""
    found = []
    for number, (loop, rows) in enumerate(zip(steps.loops, steps.rows_of_loops, strict=True)):
        marks = _marks(stream, steps, rows)
        around = [outer for marker, marked in marks if (outer := _outer(number, marker, marked, rows.start))]
        most = loop.step_count
        for outer in sorted(around, key=lambda each: -len(each)):
            if len(outer) * _FEWEST_STEPS <= most:
                found.append(outer)
                most = len(outer)
    return found


def steps_of_outer(steps: ProcessSteps, chosen: OuterLoop, reason: str) -> ProcessSteps:
    """Return the iterations of a loop around the steps of a process as its steps; all times are sums of theirs."""
    begins_ns, ends_ns = steps.start_ns[chosen.firsts], steps.end_ns[chosen.lasts]
    base = steps.classes[chosen.firsts[0]].partition("+")[0]
    whole = np.minimum.reduceat(steps.kept[: chosen.ends], chosen.firsts)
    none = Recorded.of_none(len(chosen))
    piece = LoopSteps(
        loop=Loop("asked", chosen.marker, "high", reason, len(chosen), holder=steps.loops[chosen.loop].holder),
        start_ns=begins_ns,
        duration_ns=ends_ns - begins_ns,
        cells=_summed(steps.cells, chosen, ends_ns - begins_ns),
        complete=np.ones(len(chosen), dtype=bool),
        extras=Extras.of_none(base, len(chosen)),
        recorded=Recorded(none.class_id, np.where(whole, ALL, PART), none.events, none.path_hash),
    )
    return joined_steps(steps.process, [piece], (base,) * len(chosen))


def _summed(cells: Cells, outer: OuterLoop, duration_ns: Ints) -> Cells:
    parts = np.add.reduceat(cells.parts_ns[: outer.ends], outer.firsts, axis=0)
    parts[:, _REST] += duration_ns - parts.sum(axis=1)  # between two runs of records
    columns = cells.columns and {
        number: np.add.reduceat(values[: outer.ends], outer.firsts) for number, values in cells.columns.items()
    }
    return Cells(parts, columns)


def _marks(stream: Stream, steps: ProcessSteps, rows: slice) -> list[tuple[str, Bools]]:
    """What only some steps do, and which: the extras of their classes by name, and more events than usual."""
    classes = steps.classes[rows]
    extras = {name: set(name.split("+")[1:]) for name in dict.fromkeys(classes)}
    having = {
        extra: {name for name in extras if extra in extras[name]} for extra in sorted(set().union(*extras.values()))
    }
    marks = [(extra, np.array([name in names for name in classes])) for extra, names in having.items()]
    if steps.recorded is not None and len(classes):
        events = steps.recorded.events[rows].copy()
        unknown = np.flatnonzero(events < 0)  # all in detail
        begins, ends = steps.start_ns[rows][unknown], steps.end_ns[rows][unknown]
        events[unknown] = np.searchsorted(stream.start_ns, ends) - np.searchsorted(stream.start_ns, begins)
        values, counts = np.unique(events, return_counts=True)
        if counts.max() >= _USUAL * len(events):
            more = events > values[counts.argmax()]
            marks.append((_beyond(stream, steps, rows, more, events == values[counts.argmax()]), more))
    return marks


def _beyond(stream: Stream, steps: ProcessSteps, rows: slice, more: Bools, usual: Bools) -> str:
    """The first thing that steps with more events do more often than usual ones, of those that are in detail."""
    regions = []
    for which in (more, usual):
        some = rows.start + np.flatnonzero(which & steps.kept[rows])[-1:]
        edges = np.concatenate([steps.start_ns[some], steps.end_ns[some]])
        regions.append(
            stream.region[slice(*np.searchsorted(stream.start_ns, edges).tolist()) if len(some) else slice(0)]
        )
    often, seldom = (np.bincount(each, minlength=len(stream.names)) for each in regions)
    first = np.flatnonzero((often > seldom)[regions[0]])
    return stream.names[regions[0][first[0]]] if len(first) else "more events"


def _outer(loop: int, marker: str, marked: Bools, first: int) -> OuterLoop | None:
    marks = np.flatnonzero(marked)
    if len(marks) < 2 or len(marks) > _USUAL * len(marked):
        return None
    steps = np.diff(marks)
    usual, variation = float(np.median(steps)), float(steps.std() / steps.mean())
    if steps.mean() < _FEWEST_STEPS or variation > _MOST_VARIATION:
        return None
    # A mark ends an iteration, or begins one: what leaves less over at the beginning and the end of the run.
    before, after = int(marks[0]), len(marked) - 1 - int(marks[-1])
    if abs(before + 1 - usual) + after <= before + abs(after + 1 - usual):
        firsts = np.append(0, marks + 1 if after else marks[:-1] + 1)
    else:
        firsts = np.append(0, marks) if before else marks
    return OuterLoop(loop, marker, first + firsts, first + len(marked), variation)
