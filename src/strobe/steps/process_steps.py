"""The steps of a process as data: when each ran, of which loop and class it is, and what is known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.steps.cells import Cells
from strobe.steps.finding.outliers import Drift
from strobe.steps.thread_spans import Bools, Ints
from strobe.tables.column_arrays import Columns
from strobe.trace.folded import ALL


@dataclass(frozen=True)
class Loop:
    """A main loop of a process; its steps follow each other. The loops of a process are in order of time.

    kind: what marks its steps, see MainLoop; name: the region that does. accepted_step: number (in the process) of the
    first step after the loop was found while the program ran, None where it was found afterwards only. holder: the
    function whose call holds all of its marks, "" where none was recorded.
    """

    kind: str
    name: str
    confidence: str
    reason: str
    step_count: int
    accepted_step: int | None = None
    holder: str = ""


@dataclass(frozen=True)
class Recorded(Columns):
    """What the records of iterations hold about the steps of a process, one array entry per step.

    class_id: class by which the statistics of folded steps are kept apart, -1 (as `events`) for steps without a record.
    detail: NONE, PART or ALL of trace/folded.py. path_hash: 0 without a record.
    """

    class_id: Ints
    detail: Ints
    events: Ints
    path_hash: npt.NDArray[np.uint64]

    @staticmethod
    def of_none(count: int) -> Recorded:
        """Return the entries of steps without records: they are all in detail."""
        unknown = np.full(count, -1, dtype=np.int64)
        return Recorded(unknown, np.full(count, ALL), unknown, np.zeros(count, dtype=np.uint64))


@dataclass(frozen=True)
class ProcessSteps:
    """The steps of one process, one array entry per step. Nanoseconds since the trace's zero.

    classes: the path each step takes (`train`, `train+validation`, ..., `partial`). cells: the time of each
    by part and kind. warm_up: slow steps at the very beginning. outlier: much slower than its
    class. cause: for slow steps the part with the largest excess over the median of the class, else "". anchored:
    whether a framework or the program itself marks the steps. confidence: `high`, `medium`, `low`, or `none` where
    no loop was found; reason: how it was found (of the loop that takes most time, if there are several). loops:
    those that run one after the other; they are the phases of the run. first_number: what the first step is called, so
    that ranks give steps that they run together the same number. recorded: None where all steps were found
    afterwards, and are in the trace in detail.
    """

    process: int
    start_ns: Ints
    duration_ns: Ints
    classes: tuple[str, ...]
    cells: Cells
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

    @cached_property
    def class_names(self) -> npt.NDArray[np.object_]:
        """The class of every step, as an array."""
        return np.array(self.classes, dtype=object)

    @property
    def parts_ns(self) -> Ints:
        """The parts of every step: an array (steps, PARTS) whose rows add up to the durations."""
        return self.cells.parts_ns

    @property
    def end_ns(self) -> Ints:
        """End of every step."""
        return self.start_ns + self.duration_ns

    @cached_property
    def loop(self) -> Ints:
        """Number of the loop (index into `loops`) that each step is an iteration of."""
        return np.repeat(np.arange(len(self.loops)), np.array([loop.step_count for loop in self.loops], dtype=np.int64))

    @property
    def rows_of_loops(self) -> list[slice]:
        """The steps that are the iterations of each loop."""
        ends = np.cumsum([loop.step_count for loop in self.loops], dtype=np.int64).tolist()
        return [slice(end - loop.step_count, end) for loop, end in zip(self.loops, ends, strict=True)]

    @property
    def drift(self) -> npt.NDArray[np.float64]:
        """By how much the class of each step has changed for good by then, as a part of what it was at first."""
        change, names, loop = np.zeros(len(self)), self.class_names, self.loop
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

    @property
    def why_none(self) -> str:
        """Why there are no steps, as a sentence."""
        why = self.reason.partition(": ")[2]
        return why if why.startswith("no step") else f"no steps found: {why}"


def unknown_class(name: str, processes: Iterable[ProcessSteps]) -> UsageError:
    """Return the error for a class that no step of these processes has, with those that they have."""
    counted = Counter(each for steps in processes for each in steps.classes)
    known = ", ".join(f"{each} ({count})" for each, count in counted.most_common())
    return UsageError(f"no class of steps '{name}'", do=f"Classes: {known}")
