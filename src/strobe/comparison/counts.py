"""Whether something is done more or less often: counts are exact, and need no statistics (decision 0018)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from strobe.model.losses import LOSSES
from strobe.trace.trace import Trace

# Losses with which counts are too low.
_LOSSES = (
    *("records_lost", "stream_spans_lost", "gpu_records_dropped", "unrecorded_ms", "bytes_lost"),
    *("budget_hot_functions", "budget_no_functions"),
)


@dataclass(frozen=True)
class Counts:
    """How often each thing was in `steps` steps of a class, by name.

    `usual`: how often it is in the median step, where steps are not all alike.
    """

    steps: float
    of: dict[str, int]
    usual: dict[str, int]


def differ(sides: Sequence[Sequence[Counts]], thing: str) -> bool:
    """Whether no run has as many of a thing per step as some run of the other side.

    If all steps have the same number, any difference counts. Else some may be cut off at both ends of what was
    recorded (a kernel that runs in the next step): then the rate has to differ by more than a step's worth at each end,
    or the usual step has another number, and the rate confirms it.
    """
    counted = [[(each.of.get(thing, 0), each.steps) for each in side] for side in sides]
    gap = _gap(*([count / steps for count, steps in side] for side in counted))
    if all(count % steps == 0 for side in counted for count, steps in side):
        return gap > 0
    usual = _gap(*([each.usual.get(thing, each.of.get(thing, 0) // each.steps) for each in side] for side in sides))
    return gap > sum(max(count / steps**2 for count, steps in side) for side in counted) or 0 < usual <= 2 * gap


def _gap(before: Sequence[float], now: Sequence[float]) -> float:
    """Return how far apart two ranges are, below 0 if they overlap."""
    return max(min(now) - max(before), min(before) - max(now))


def lost(trace: Trace) -> tuple[str, list[str]]:
    """Return why counts are too low ("" if they are not), and the functions that were recorded for a while only."""
    missing, throttled = Counter[str](), list[str]()
    for _, _, what, value, _ in trace.quality.rows():
        name, _, function = str(what).partition(": ")
        if name == "throttled_after":
            throttled.append(re.sub(r":\d+\)$", ")", function))
        elif name in _LOSSES and isinstance(value, int) and value:
            missing[name] += value
    return "; ".join(f"{count} {LOSSES[name]}" for name, count in missing.items()), throttled
