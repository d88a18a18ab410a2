"""The usual step of a run: steady, of the most frequent class, no outliers; and what one of them is made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from strobe.model.plugins import Evidence
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints
from strobe.steps.training_activities import PARTS
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# The recorder keeps every iteration that takes so many times the running median of its class.
KEPT_AS_SLOW = 3


@dataclass(frozen=True)
class Usual:
    """The steps of the main process, and which of them are usual. Nanoseconds.

    `loop` is the loop that takes most time, all usual steps are of it.

    `mean_ns` and `parts_ns`, which add up to it, are means over all steady steps of the loop; `waiting_ns` is the part
    of `parts_ns["data_wait"]` in which the next batch is waited for.
    """

    steps: ProcessSteps
    loop: int
    class_name: str
    members: Bools  # of the class and steady, outliers included
    usual: Bools  # members that are not outliers
    median_ns: float
    mean_ns: float
    parts_ns: dict[str, float]
    waiting_ns: float

    @property
    def usual_ns(self) -> float:
        """Mean duration of the usual steps."""
        return float(self.steps.duration_ns[self.usual].mean())

    @property
    def count(self) -> int:
        """Number of steady steps of the loop, of all classes."""
        return int((self.steps.steady & (self.steps.loop == self.loop)).sum())


@cached_on_trace
def usual_steps(trace: Trace) -> Usual | None:
    """Return the usual steps of the first process that has steps, or None where there are none."""
    processes = find_steps(trace).processes
    if not processes or not processes[0].steady.any():
        return None
    steps = processes[0]
    steady = steps.steady
    names = steps.class_names
    time_ns = np.bincount(steps.loop, weights=steps.duration_ns * steady)
    loop = int(time_ns.argmax())
    of_loop = steady & (steps.loop == loop)
    class_name = str(Counter(names[of_loop]).most_common(1)[0][0])
    members = of_loop & (names == class_name)
    usual = members & ~steps.outlier
    usual = usual if usual.any() else members
    return Usual(
        steps,
        loop,
        class_name,
        members,
        usual,
        median_ns=float(np.median(steps.duration_ns[usual])),
        mean_ns=float(steps.duration_ns[of_loop].mean()),
        parts_ns=dict(zip(PARTS, (steps.parts_ns.T @ of_loop / of_loop.sum()).tolist(), strict=True)),
        waiting_ns=float(steps.cells.waiting_ns[of_loop].mean()),
    )


def representativeness(usual: Usual) -> float | None:
    """Return the mean duration of the kept steps, as a part of the mean of all: 1 where they stand for all.

    Of the steps of the usual class, without those that are kept because they are slow. None where none was kept.
    """
    steps = usual.steps
    usual_ones = usual.members & (steps.duration_ns <= KEPT_AS_SLOW * usual.median_ns)
    kept = usual_ones & steps.kept
    if not kept.any():
        return None
    return float(steps.duration_ns[kept].mean() / steps.duration_ns[usual_ones].mean())


def evidence(trace: Trace, steps: ProcessSteps, rows: Ints) -> tuple[Evidence, ...]:
    """Return steps as places to look at: location (the first thread of their process), start, duration, and a text."""
    location = next(row.location for row in location_rows(trace) if row.process == steps.process)
    return tuple(
        {
            "location": location,
            "start_ns": int(steps.start_ns[row]),
            "duration_ns": int(steps.duration_ns[row]),
            "text": f"step {row}",
        }
        for row in rows.tolist()
    )
