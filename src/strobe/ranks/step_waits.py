"""Waits of ranks for one another in their steady steps, and what they cost by cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.model.units import format_share
from strobe.ranks.delays.delay_costs import Costs, delays
from strobe.ranks.delays.timelines import Causes
from strobe.ranks.needless_barriers import NeedlessBarrier, needless_barrier
from strobe.ranks.waits.wait_columns import Waits
from strobe.steps.step_times import in_steady_steps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import main_location
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

MOST_ROWS = 500_000  # of messages and collectives: about a second
LEAST_BESIDE = 0.05  # of the steps: from here on, what main threads do is not all that there is to know about waits
_LOG = ("messages", "collective_spans", "folded_collectives")


@dataclass(frozen=True)
class StepWaits:
    """Waits that began in steady steps and are longer than twice the error of the clocks.

    late, waiting: process that was waited for, and that waited, by wait. costs: their wait is the place in `waits`.
    processes: those that have a rank and steps. steps: how many steady ones each has, in the mean. duration_ns: of
    all of these, and of what GPUs still do behind the last ones. barrier: without this one ranks would hardly wait.
    """

    waits: Waits
    late: Ints
    waiting: Ints
    costs: Costs
    causes: Causes
    processes: Ints
    steps: float
    duration_ns: int
    barrier: NeedlessBarrier | None

    @property
    def wait_ns(self) -> int:
        """Of all ranks together."""
        return int(self.waits.wait_ns.sum())

    @property
    def share(self) -> float:
        """Which part of their steady steps ranks wait for one another, 0 to 1, in the mean of all ranks."""
        return self.wait_ns / max(1, self.duration_ns)


@cached_on_trace
def step_waits(trace: Trace) -> StepWaits | None:
    """Return the waits in steady steps; None for less than two ranks with steps, and for a log that takes long."""
    ranks = ranks_of(trace)
    steps = [each for each in find_steps(trace).processes if ranks[each.process] is not None and each.steady.any()]
    rows = sum(reader.tables().get(name, 0) for reader in trace.readers for name in _LOG)
    if len(steps) < 2 or rows > MOST_ROWS:
        return None
    found = delays(trace)
    waits, process = found.waits, np.array(processes_of_locations(trace), dtype=np.int64)
    waiting, late = process[waits.location], process[waits.cause]
    # The host leaves its last steps while the GPU still works on them, and waits in them.
    on_gpu = np.array([each.kind == "stream" for each in location_rows(trace)], dtype=bool)[waits.location]
    last_ns = np.full(len(ranks), np.iinfo(np.int64).max)
    last_ns[[each.process for each in steps]] = [int(each.end_ns[-1]) - 1 for each in steps]
    begin_ns = np.where(on_gpu, np.minimum(waits.call_ns, last_ns[waiting]), waits.call_ns)
    counted = (late != waiting) & in_steady_steps(steps, waiting, begin_ns)
    behind_ns = np.max((waits.call_ns + waits.wait_ns)[counted] - last_ns[waiting[counted]], initial=0)
    duration_ns = sum(int(each.duration_ns[each.steady].sum()) + int(behind_ns) for each in steps)
    costs = found.costs.chosen(counted[found.costs.wait] & ~found.costs.for_gpu)
    costs.wait[:] = (np.cumsum(counted) - 1)[costs.wait]
    waits = waits.chosen(counted)
    return StepWaits(
        waits,
        late[counted],
        waiting[counted],
        costs,
        found.causes,
        np.array([each.process for each in steps], dtype=np.int64),
        sum(int(each.steady.sum()) for each in steps) / len(steps),
        duration_ns,
        needless_barrier(trace, waits, duration_ns, len(steps)),
    )


def share_beside(trace: Trace) -> float:
    """Return which part of their steps ranks wait for one another on other threads than the main ones, 0 to 1.

    Gloo communicates on a thread of its own: in which of that time the main thread waits was not recorded.
    """
    found = step_waits(trace)
    if found is None:
        return 0.0
    beside = np.array([each.kind == "thread" for each in location_rows(trace)], dtype=bool)
    beside[[main_location(trace, process) or 0 for process in found.processes.tolist()]] = False
    return float(found.waits.wait_ns[beside[found.waits.location]].sum()) / max(1, found.duration_ns)


def waits_beside(trace: Trace, left_out: str) -> str:
    """Return a sentence about waits on other threads than the main ones, if they are much of the steps; else "".

    left_out: what does not count them, with a verb: "no factor counts".
    """
    share = share_beside(trace)
    if share < LEAST_BESIDE:
        return ""
    where = "on other threads than the main ones"
    text = f"ranks wait for one another {format_share(share)} of their steps {where}, which {left_out}"
    return f"{text}: strobe waits, strobe delays"
