"""Rule `outlier`: a few steps are much slower than the rest; when, by how much, and which part of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from strobe.breakdown.gpu_step import gpu_step
from strobe.breakdown.growth import BY_THE_MACHINE, Growth, grown_call, waited_for_core_ns
from strobe.breakdown.known_work import what_to_do
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns
from strobe.ranks.step_waits import step_waits
from strobe.steps.thread_spans import Bools, Ints
from strobe.steps.training_activities import PARTS
from strobe.steps.usual_steps import Usual, evidence, usual_steps
from strobe.tables.column_arrays import Floats, interval_at
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace

# Fewer slow steps are listed, but no fix is promised for them: that is not a pattern.
LEAST_TIMES = 3
# So many of the steps that a rhythm would have must be slow.
LEAST_PRESENT = 0.75
MOST_COMPARED = 40
# A call explains slow steps if it takes so many times its usual time there.
GROWN = 3
# Without a rhythm, and unless they wait for data, slow steps cost this share of the loop's time: any machine has some.
LEAST_SHARE = 0.05
# A rhythm is looked for in so many rows.
MOST_SEARCHED = 4096
# Without a rhythm, the slow ones must span this share of the steps.
_SPREAD = 0.25
# The longest step of a GPU by the usual one.
_EVEN = 1.2
# What slow steps cost in all, below which nobody cares.
LEAST_TOTAL_NS = 10_000_000

_WORDS = {
    "data_wait": "making the batch",
    "forward": "the forward pass",
    "backward": "the backward pass",
    "optimizer": "the optimizer",
    "validation": "a validation",
    "rest": "work outside of operators",
}


def rhythm(rows: Ints, excess: Floats, least_span: float = 0) -> tuple[int, Bools]:
    """Return the exact spacing of step numbers, and which rows keep to it; 0 if most of the excess keeps to none.

    least_span: what comes less than five times must span so many steps, all else half of that.

    A busy machine adds slow steps of its own, so not all rows must keep to it; and a step here and there may be
    missing. Of very many rows it is found in those of the middle, and has to hold for all.
    """
    if len(rows) > MOST_SEARCHED:
        middle = slice(low := (len(rows) - MOST_SEARCHED) // 2, low + MOST_SEARCHED)
        every, regular = rhythm(rows[middle], excess[middle], least_span)
        keeping = rows % every == rows[middle][regular][0] % every if every else np.zeros(len(rows), dtype=bool)
        return (every, keeping) if 2 * excess[keeping].sum() >= excess.sum() else (0, np.zeros(len(rows), dtype=bool))
    best, members, most = 0, np.zeros(len(rows), dtype=bool), 0.0
    heaviest = rows[np.argsort(-excess)[:MOST_COMPARED]]
    for each in np.unique(np.abs(heaviest[:, None] - heaviest)).tolist():
        if each < 2:
            continue
        phases, phase = np.unique(heaviest % each), rows % each
        at = np.minimum(np.searchsorted(phases, phase), len(phases) - 1)
        alike = np.flatnonzero(phases[at] == phase)
        count, total = np.bincount(at[alike]), np.bincount(at[alike], weights=excess[alike])
        first, last = np.full(len(phases), rows.max()), np.zeros(len(phases), dtype=np.int64)
        np.minimum.at(first, at[alike], rows[alike])
        np.maximum.at(last, at[alike], rows[alike])
        # By chance, three of ten numbers often have equal spacing, five of ten hardly ever.
        few = (2 * count > len(rows)) & (last - first >= least_span)
        many = (count >= 5) & (last - first >= least_span / 2)
        rare = (count >= LEAST_TIMES) & (many | few)
        total[~rare | (count < LEAST_PRESENT * ((last - first) // each + 1))] = 0.0
        if total.max() > most:
            best, most = each, float(total.max())
            members = phase == phases[total.argmax()]
    if excess[members].sum() < excess.sum() / 2:
        return 0, np.zeros(len(rows), dtype=bool)
    return best, members


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, ..."""
    special = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 <= number % 100 <= 20 else special.get(number % 10, 'th')}"


def run(trace: Trace) -> Iterator[Finding]:
    """Yield one finding per cause of slow steps (the part of the step with the largest excess over its class).

    gain per step = sum of (duration - median of the class) / number of steady steps, as the upper bound; the lower
    bound counts only what the named part exceeds its own median by. Silent where the steps of a GPU are even: the host
    is ahead of it, and slow where it waits for a place in the queue.
    """
    usual, gpu = usual_steps(trace), gpu_step(trace)
    if usual is None:
        return
    step_ns = gpu.step_ns if gpu is not None else np.zeros(0, dtype=np.int64)
    if len(step_ns) >= max(2, usual.count - 2) and step_ns.max() < _EVEN * np.median(step_ns):
        return
    steps = usual.steps
    names = steps.class_names
    of_loop = steps.steady & (steps.loop == usual.loop)
    slow, usual_ones = np.flatnonzero(of_loop & steps.outlier), of_loop & ~steps.outlier
    over, own = steps.duration_ns.astype(np.float64), steps.parts_ns.astype(np.float64)
    waiting = steps.cells.waiting_ns.astype(np.float64)
    alike_as: dict[str, Ints] = {}
    for class_name in dict.fromkeys(names[slow].tolist()):
        of_class = names == class_name
        alike_as[class_name] = np.flatnonzero(of_class & usual_ones)
        if len(alike := alike_as[class_name]):
            over[of_class] -= np.median(steps.duration_ns[alike])
            own[of_class] -= np.median(steps.parts_ns[alike], axis=0)
            waiting[of_class] -= np.median(steps.cells.waiting_ns[alike])
    cause = np.array([steps.cause[row] for row in slow.tolist()], dtype=object)
    for part, name in enumerate(PARTS):
        rows = slow[cause == name]
        every, regular = rhythm(rows, over[rows], usual.count / 2)
        for group, spacing in ((rows[regular], every), (rows[~regular], 0)):
            if over[group].sum() >= LEAST_TOTAL_NS:
                gain = (float(np.minimum(over[group], own[group, part]).sum()), float(over[group].sum()))
                order = group[np.argsort(-over[group])]
                alike = np.sort(np.concatenate([alike_as[each] for each in dict.fromkeys(names[group].tolist())]))
                waited = waited_for_core_ns(trace, steps.process, steps.start_ns[group], steps.end_ns[group])
                by_the_machine = not spacing and waited >= BY_THE_MACHINE * gain[1]  # it keeps to no rhythm
                waits = name == "data_wait" and 2 * waiting[group].sum() >= own[group, part].sum()
                growth = None if by_the_machine or waits else grown_call(trace, steps, order, alike)
                where = "waiting for data" if waits else _WORDS[name]
                found = _finding(group, usual, where, waits, spacing, gain, growth)
                if by_the_machine:
                    do = f"other programs had its cores: the main thread waited {format_ns(waited)} for one meanwhile"
                    found = replace(found, do=do, gain_low_ns=0, gain_high_ns=0, informative=True)
                rank, awaited_ns = _awaited(trace, steps.process, steps.start_ns[group], steps.end_ns[group])
                if awaited_ns >= BY_THE_MACHINE * gain[1]:
                    do = f"it waits {format_ns(awaited_ns / len(group))} for others in each, most for rank {rank}:"
                    do += " what does that one do meanwhile? strobe delays"
                    found = replace(found, do=do, where="", gain_low_ns=0, gain_high_ns=0, informative=True)
                yield replace(found, evidence=evidence(trace, steps, order[:5]))


def _awaited(trace: Trace, process: int, start_ns: Ints, end_ns: Ints) -> tuple[int | None, int]:
    """Return the rank for which a process waits most in some of its steps, and how long it waits for all in them."""
    found = step_waits(trace)
    if found is None:
        return None, 0
    own = (found.waiting == process) & (interval_at(start_ns, end_ns, found.waits.call_ns) >= 0)
    if not own.any():
        return None, 0
    late = int(np.bincount(found.late[own], found.waits.wait_ns[own]).argmax())
    return ranks_of(trace)[late], int(found.waits.wait_ns[own].sum())


def _finding(
    rows: Ints,
    usual: Usual,
    where: str,
    waits: bool,
    every: int,
    gain_ns: tuple[float, float],
    growth: Growth | None,
) -> Finding:
    count = usual.count
    longer = f"{format_ns(gain_ns[1] / len(rows))} longer, in {growth.name if growth else where}"
    if every:
        what = f"every {ordinal(every)} step takes {longer} ({len(rows)} times: step {_listed(rows)})"
    else:
        what = f"{len(rows)} of {count} steps take{'s' if len(rows) == 1 else ''} {longer}: step {_listed(rows)}"
    # Any machine makes some steps slower, and with them whatever runs there.
    costs = gain_ns[1] >= LEAST_SHARE * usual.count * usual.mean_ns
    # A step that is longer as a whole may have more to do.
    explained = costs and growth is not None and not growth.is_step and growth.slow_ns >= GROWN * growth.usual_ns
    # What a loop does in every n-th iteration, it does on purpose: nothing can go unless it is known what it is. Who
    # waits for another rank is held up there.
    unknown = growth is None or growth.is_iteration or growth.communicates
    # Slow steps close together are rather one visit of something else on the machine.
    spread = rows.max() - rows.min() >= _SPREAD * count
    enough = len(rows) >= LEAST_TIMES and (waits or ((every > 0 or (explained and spread)) and not unknown))
    if waits:
        do = "find what makes the fetch of these batches slow: storage, one sample, a refill"
    elif growth is None:
        do = "no recorded call grew by half of that: --sample 100 shows what else ran"
    elif growth.communicates:
        do = f"it takes {format_ns(growth.slow_ns)} there: what do the other ranks do meanwhile? strobe stragglers"
    elif known := what_to_do([growth.name]):
        do = known
    elif growth.usual_ns:
        do = f"it takes {format_ns(growth.slow_ns)} there, {format_ns(growth.usual_ns)} in a usual step"
    else:
        do = f"it runs in these steps only, for {format_ns(growth.slow_ns)}: run it less often, or beside the loop"
    return Finding(
        rule="outlier",
        what=what,
        do=do,
        where=growth.where if growth else "",
        gain_low_ns=round(max(0.0, gain_ns[0]) / count) if enough else 0,
        gain_high_ns=round(gain_ns[1] / count) if enough else 0,
        confidence="high" if every else "medium",
        informative=not enough,
    )


def _listed(rows: Ints) -> str:
    shown = ", ".join(str(row) for row in rows[:4].tolist())
    return f"{shown}, ..." if len(rows) > 4 else shown


RULE = Rule("outlier", "Some steps are much slower than the rest", run)
