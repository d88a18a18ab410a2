"""Rule `memory.growth`: memory that is in use grows from step to step, as long as the steps last."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.gpu.memory import Curve, curves
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_bytes, format_count, format_share
from strobe.steps.usual_steps import evidence, usual_steps
from strobe.tables.column_arrays import Floats
from strobe.trace.trace import Trace

LEAST_SHARE, LEAST_BYTES = 0.05, 32 << 20  # of what was in use at first, and in all
_FEWEST = 12  # readings
_PARTS = 4
# Even growth has a third of it between two of four parts. Caches that fill up have less and less.
_EACH = 1 / 6


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for the memory of the main process that grows most, if it does so throughout its steady steps.

    Of each quarter of the steps, the median and the least of what is in use at their ends count (of the operating
    system's readings, those within). Each is above the one before, by a sixth of the whole growth at least. A gain in
    time is not promised.
    """
    usual = usual_steps(trace)
    if usual is None or not usual.steps.steady.any():
        return
    steps = usual.steps
    first, last = np.flatnonzero(steps.steady)[[0, -1]].tolist()
    found: list[tuple[float, Curve, Floats]] = []
    for curve in curves(trace):
        if curve.process != steps.process:
            continue
        at_ns = curve.time_ns if curve.memory == "resident" else steps.end_ns[first : last + 1]
        at_ns = at_ns[(at_ns >= max(steps.start_ns[first], curve.time_ns[0])) & (at_ns <= steps.end_ns[last])]
        if len(at_ns) < _FEWEST:
            continue
        in_use = curve.allocated[np.searchsorted(curve.time_ns, at_ns, side="right") - 1]
        parts = np.array_split(in_use, _PARTS)
        least, levels = (np.array([of(part) for part in parts]) for of in (np.min, np.median))
        growth = float(levels[-1] - levels[0])
        steadily = all((np.diff(each) >= _EACH * growth).all() for each in (least, levels))
        if steadily and growth >= max(LEAST_BYTES, LEAST_SHARE * levels[0]):
            found.append((growth, curve, levels))
    if not found:
        return
    growth, curve, levels = max(found, key=lambda each: each[0])
    count = (last - first + 1) * (1 - 1 / _PARTS)  # steps between the middles of the first and the last part
    kind = {"resident": "resident memory"}.get(curve.memory, f"memory of the {curve.memory}")
    yield Finding(
        rule="memory.growth",
        what=f"{kind} grows by {format_bytes(growth / count)} a step, from {format_bytes(levels[0])} to "
        f"{format_bytes(levels[-1])} ({format_share(growth / max(1.0, levels[0]))} more) within "
        f"{format_count(round(count))} steps",
        do="find what keeps it: losses that are summed with their graph (add loss.item()), outputs in a list, a cache "
        "without a limit; strobe memory --by step",
        informative=True,
        confidence="medium",
        evidence=evidence(trace, steps, np.array([first, last])),
    )


RULE = Rule("memory.growth", "Memory grows from step to step", run)
