"""Rule `outlier`: a few steps are much slower than the rest; when, by how much, and which part of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns

if TYPE_CHECKING:
    from strobe.store.trace import Trace
    from strobe.structure.stream import Ints

# Fewer slow steps are listed, but are no pattern that a fix is promised for.
LEAST_TIMES = 3

_PARTS = {
    "data_wait": ("waiting for data", "find what makes the fetch of these batches slow: storage, one sample, a refill"),
    "forward": ("the forward pass", "look for new shapes, lazy initialisation, or another program on the same cores"),
    "backward": ("the backward pass", "look for new shapes, or another program on the same cores"),
    "optimizer": ("the optimizer", "look for work that is done every k steps only"),
    "rest": ("work outside of operators", "look for logging, checkpoints, garbage collection, or printing"),
}


def period(rows: Ints) -> int:
    """Return the exact spacing of step numbers, 0 if there is none. Some may be missing."""
    import numpy as np

    if len(rows) < LEAST_TIMES:
        return 0
    spacing = np.diff(rows)
    smallest = int(spacing.min())
    # At least half of the expected ones must be there: three arbitrary numbers often share a small divisor.
    expected = int(spacing.sum()) // max(1, smallest) + 1
    return smallest if smallest > 1 and not (spacing % smallest).any() and 2 * len(rows) >= expected else 0


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, ..."""
    special = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 <= number % 100 <= 20 else special.get(number % 10, 'th')}"


def run(trace: Trace) -> Iterator[Finding]:
    """Yield one finding per cause of slow steps (the part of the step with the largest excess over its class).

    gain per step = sum of (duration - median of the class) / number of steady steps, as the upper bound; the lower
    bound counts only what the named part exceeds its own median by.
    """
    import numpy as np

    from strobe.structure.activities import PARTS
    from strobe.structure.usual import evidence, usual_steps

    usual = usual_steps(trace)
    if usual is None:
        return
    steps = usual.steps
    names = np.array(steps.classes, dtype=object)
    slow = steps.outlier & steps.steady
    for part, name in enumerate(PARTS):
        rows = np.flatnonzero(slow & np.array([cause == name for cause in steps.cause], dtype=bool))
        if not len(rows):
            continue
        excess, own = 0.0, 0.0
        for class_name in dict.fromkeys(names[rows].tolist()):
            usual_of_class = (names == class_name) & steps.steady & ~steps.outlier
            mine = rows[names[rows] == class_name]
            excess += float((steps.duration_ns[mine] - np.median(steps.duration_ns[usual_of_class])).sum())
            own += float((steps.parts_ns[mine, part] - np.median(steps.parts_ns[usual_of_class, part])).sum())
        every = period(rows)
        words, do = _PARTS[name]
        when = f"every {ordinal(every)} step takes" if every else f"{len(rows)} of {usual.count} steps take"
        enough = len(rows) >= LEAST_TIMES
        yield Finding(
            rule="outlier",
            what=f"{when} {format_ns(excess / len(rows))} longer, in {words}"
            + (f" ({len(rows)} times: step {_listed(rows)})" if every else f": step {_listed(rows)}"),
            do=do,
            gain_low_ns=round(max(0.0, min(own, excess)) / usual.count) if enough else 0,
            gain_high_ns=round(excess / usual.count) if enough else 0,
            confidence="high" if every else "medium",
            informative=not enough,
            evidence=evidence(trace, steps, rows[np.argsort(-steps.duration_ns[rows])[:5]]),
        )


def _listed(rows: Ints) -> str:
    shown = ", ".join(str(row) for row in rows[:4].tolist())
    return f"{shown}, ..." if len(rows) > 4 else shown


RULE = Rule("outlier", "Some steps are much slower than the rest", run)
