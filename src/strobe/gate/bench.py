"""Runs two programs in pairs, A B B A ..., and looks at the times now and then, until they are sure or time is up."""

from __future__ import annotations

import math
from collections.abc import Callable

from strobe.gate.runs import Run
from strobe.gate.statistics import least_pairs, spent
from strobe.gate.verdict import ALPHA, INCONCLUSIVE, Comparison, compare

_GROWTH = 1.3  # from one look to the next: each look costs some of ALPHA


def bench(
    measure: Callable[[bool], Run], part_used: Callable[[], float], *, metrics: tuple[str, ...], threshold: float
) -> Comparison:
    """Measure pairs of runs until there is a verdict, or the budget is used.

    `measure` makes one run: of the program (true), or of what it is compared with. `part_used`: how much of the budget
    is used, 1 if all is. A look spends what Pocock's boundary allows until then, less what was spent before, so that
    all looks together raise a false alarm with a probability of at most ALPHA.
    """
    sides: dict[bool, list[Run]] = {False: [], True: []}
    used, next_look = 0.0, 2
    while True:
        first = len(sides[True]) % 2 == 1
        for side in (first, not first):
            sides[side].append(measure(side))
        pairs, part = len(sides[True]), part_used()
        classes = max(1, len(set.intersection(*(set(run.classes) for side in sides.values() for run in side))))
        alpha = max(1e-9, spent(ALPHA, part) - used)
        can_tell = pairs >= max(next_look, least_pairs(alpha / (classes * len(metrics))))
        if pairs < 2 or (part < 1 and not can_tell):
            continue
        found = compare(sides[False], sides[True], metrics=metrics, threshold=threshold, alpha=alpha)
        if part >= 1 or found.verdict != INCONCLUSIVE:
            return found
        used, next_look = used + alpha, math.ceil(pairs * _GROWTH)
