"""Rule `classes`: what validation, checkpoints, logging, ... cost per step. Good to know; they are there on purpose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.known_work import what_to_do
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.steps.finding.step_classes import label
from strobe.steps.usual_steps import evidence, usual_steps
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

# A class that costs less than this part of all steps is not mentioned.
LEAST_SHARE = 0.01
# What takes this part of all steps, and is not in each of them, is worth doing less often.
_MUCH = 0.25
# Done a third as often, or three times as fast.
_LEAST, _A_THIRD = 2 / 3, "a third as often saves two thirds"
# What more of the steps do is rather the work of the loop.
_SELDOM = 1 / 3


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each class of steps, of the loop with the usual steps, that does more than the usual class.

    cost = sum of (duration - median of the usual class) over the steps of the class / number of steady steps. The usual
    class itself is compared with that of the steps that do one thing less (`train+validation` with `train`). From a
    quarter of the time of all steps on, two thirds of it are gained by doing that a third as often, if a third of the
    steps at most do it, or it is validation. Another run as long may have one such step more: that is the upper bound.
    """
    usual = usual_steps(trace)
    if usual is None:
        return
    steps = usual.steps
    names = steps.class_names
    places, called = dict[str, set[str]](), dict[str, list[str]]()
    for each in region_rows(trace):
        called.setdefault(label(each.name), []).append(each.name)
        if each.file and each.line:
            places.setdefault(label(each.name), set()).add(f"{each.file}:{each.line}")
    mean = float(steps.duration_ns[steps.steady].mean())
    of_loop = steps.steady & (steps.loop == usual.loop)
    for name in dict.fromkeys(names[of_loop].tolist()):
        if "+" not in name:  # nothing beyond the usual; those of an engine (prefill, decode) are different work
            continue
        rows = np.flatnonzero(of_loop & (names == name))
        less = usual.class_name if name != usual.class_name else name.rpartition("+")[0]
        others = steps.duration_ns[of_loop & (names == less)]
        median = usual.median_ns if less == usual.class_name else np.median(others) if len(others) else np.inf
        extra = steps.duration_ns[rows] - median
        cost = float(extra.sum()) / usual.count
        what = name.removeprefix(less + "+").replace("+", " and ")
        seldom = len(rows) <= _SELDOM * usual.count or what == "validation"
        much = seldom and cost >= _MUCH * mean
        if cost < LEAST_SHARE * mean or np.median(extra) <= 0 or (name == usual.class_name and not much):
            continue
        where = places.get(name.removeprefix(less + "+").partition("+")[0], set())
        yield Finding(
            rule="classes",
            what=f"{what}: {len(rows)} of {usual.count} steps take {format_ns(float(np.median(extra)))} longer,"
            f" {format_share(cost / mean)} of the time of all steps",
            where=min(where) if len(where) == 1 else "",
            do=what_to_do(own for part in what.split(" and ") for own in called.get(part, [part]))
            or (f"do it less often ({_A_THIRD}), on less data, or beside the loop" if much else ""),
            gain_low_ns=round(_LEAST * cost) if much else 0,
            gain_high_ns=round(cost * (1 + 1 / len(rows))),
            confidence="high",
            informative=not much,
            evidence=evidence(trace, steps, rows[:5]),
        )


RULE = Rule("classes", "What the unusual kinds of steps cost", run)
