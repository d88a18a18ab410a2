"""Rule `classes`: what validation, checkpoints, logging, ... cost per step. Good to know; they are there on purpose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.steps.finding.step_classes import label
from strobe.steps.usual_steps import evidence, usual_steps
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

# A class that costs less than this part of all steps is not mentioned.
LEAST_SHARE = 0.01


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each class of steps, of the loop with the usual steps, that does more than the usual class.

    cost = sum of (duration - median of the usual class) over the steps of the class / number of steady steps.
    """
    usual = usual_steps(trace)
    if usual is None:
        return
    steps = usual.steps
    names = steps.class_names
    places: dict[str, set[str]] = {}
    for each in region_rows(trace):
        if each.file and each.line:
            places.setdefault(label(each.name), set()).add(f"{each.file}:{each.line}")
    mean = float(steps.duration_ns[steps.steady].mean())
    of_loop = steps.steady & (steps.loop == usual.loop)
    for name in dict.fromkeys(names[of_loop].tolist()):
        rows = np.flatnonzero(of_loop & (names == name))
        extra = steps.duration_ns[rows] - usual.median_ns
        cost = float(extra.sum()) / usual.count
        if name == usual.class_name or cost < LEAST_SHARE * mean:
            continue
        where = places.get(name.removeprefix(usual.class_name + "+").partition("+")[0], set())
        what = name.removeprefix(usual.class_name + "+").replace("+", " and ")
        yield Finding(
            rule="classes",
            what=f"{what}: {len(rows)} of {usual.count} steps take {format_ns(float(np.median(extra)))} longer,"
            f" {format_share(cost / mean)} of the time of all steps",
            where=min(where) if len(where) == 1 else "",
            gain_high_ns=round(cost),
            confidence="high",
            informative=True,
            evidence=evidence(trace, steps, rows[:5]),
        )


RULE = Rule("classes", "What the unusual kinds of steps cost", run)
