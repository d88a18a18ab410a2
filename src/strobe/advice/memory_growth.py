"""Rule `memory.growth`: memory that is in use grows from step to step, as long as the steps last."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.answers.ask import ask
from strobe.gpu.memory import Curve, curves
from strobe.gpu.steady_growth import FEWEST, Growth, growth_of, parts_between
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_bytes, format_count, format_share
from strobe.steps.usual_steps import evidence, usual_steps
from strobe.trace.trace import Trace

LEAST_SHARE, LEAST_BYTES = 0.05, 32 << 20  # of what was in use at first, and in all
_SAME = ("process", "memory", "device")
MOST_OF_IT = 0.5  # from here on, one line is named


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
    found: list[tuple[float, Curve, Growth]] = []
    for curve in curves(trace):
        if curve.process != steps.process:
            continue
        at_ns = curve.time_ns if curve.memory == "resident" else steps.end_ns[first : last + 1]
        at_ns = at_ns[(at_ns >= max(steps.start_ns[first], curve.time_ns[0])) & (at_ns <= steps.end_ns[last])]
        if len(at_ns) < FEWEST:
            continue
        in_use = curve.allocated[np.searchsorted(curve.time_ns, at_ns, side="right") - 1]
        growth = growth_of(in_use[None, :])
        more = float(growth.bytes[0])
        if growth.steady[0] and more >= max(LEAST_BYTES, LEAST_SHARE * float(growth.first[0])):
            found.append((more, curve, growth))
    if not found:
        return
    more, curve, growth = max(found, key=lambda each: each[0])
    before, after = float(growth.first[0]), float(growth.last[0])
    count = parts_between(last - first + 1)
    kind = {"resident": "resident memory"}.get(curve.memory, f"memory of the {curve.memory}")
    yield Finding(
        rule="memory.growth",
        what=f"{kind} grows by {format_bytes(more / count)} a step, from {format_bytes(before)} to "
        f"{format_bytes(after)} ({format_share(more / max(1.0, before))} more) within "
        f"{format_count(round(count))} steps{_whose(trace, curve, more / count)}",
        do="find what keeps it: losses that are summed with their graph (add loss.item()), outputs in a list, a cache "
        "without a limit; strobe memory --by step",
        informative=True,
        confidence="medium",
        evidence=evidence(trace, steps, np.array([first, last])),
    )


def _whose(trace: Trace, curve: Curve, step_growth: float) -> str:
    """Return the line that allocates most of what each step adds, in words; "" where none does, or it is not known."""
    rows = ask(trace, "memory_owners", by="line", at="end").to_arrow().to_pylist()
    lines: dict[str, float] = {}
    for row in rows:
        if (
            row["function"]
            and row["steady"]
            and row["step_growth_bytes"]
            and all(row[key] == getattr(curve, key) for key in _SAME)
        ):
            lines[row["owner"]] = lines.get(row["owner"], 0.0) + row["step_growth_bytes"]
    line = max(lines, key=lambda each: lines[each], default="")
    if not line or lines[line] < MOST_OF_IT * step_growth:
        return ""
    return f"; {format_share(min(1.0, lines[line] / step_growth))} of it is allocated at {line}"


RULE = Rule("memory.growth", "Memory grows from step to step", run)
