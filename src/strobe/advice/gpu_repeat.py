"""Rule `gpu.repeat`: the forward pass of a model runs twice for one backward pass, once without gradients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from strobe.breakdown.gpu_problems import Problems, gpu_problems
from strobe.breakdown.gpu_step import Advice, GpuStep
from strobe.model.plugins import Finding, Rule
from strobe.operators.labels import MODULE
from strobe.sums.attributes import Attributes, integers
from strobe.tables.column_arrays import Ints, alike
from strobe.trace.definition_rows import path_tree
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
_LEAST = 20  # kernels of a forward pass
_MOSTLY = 0.8  # of what runs between two backward passes
_BEHIND = re.compile(r"^autograd::engine::|^Optimizer\.")


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if two passes of the same kernels, operators and shapes follow each other in most of the steps.

    One of them has no gradients, and takes 5 % of a step or more: at most that is saved. The inputs may differ, so that
    nothing is sure; and where the modules are not known to be the same, it is information.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step = found.step
    passes = _passes(found)
    own = np.isin(np.arange(len(step.work)), [each for pair in passes for each in pair[0].tolist()])
    cost = step.exposed_ns(own)
    if 2 * len(passes) < step.steps or step.share(cost) < LEAST_SHARE:
        return
    modules = {(_module(step, int(step.path[without[0]])), _module(step, int(step.path[with_[0]])))
               for without, with_ in passes}  # fmt: skip
    same = all(each == other != "" for each, other in modules)
    what = f"the forward pass{f' of {modules.pop()[0]}' if same else ''} runs twice"
    what += f", once without gradients, with the same operators and shapes: {step.text(cost)}"
    do = "if its inputs and weights are the same, use the results of the other pass (detached), as for metrics"
    finding = step.finding(Advice("gpu.repeat", what, do, "medium"), own, 0.0, cost)
    yield finding if same else replace(finding, informative=True)


def _passes(found: Problems) -> list[tuple[Ints, Ints]]:
    """Return the activities of pairs of equal passes: of the one without gradients, and of the other."""
    step, out = found.step, list[tuple[Ints, Ints]]()
    at = np.flatnonzero(step.wanted & ~found.of("copy") & (step.operator.row >= 0))
    at = at[np.argsort(step.call.start_ns[at], kind="stable")]
    _, alike_as = alike((step.work.region.astype(np.int64), found.kind))
    forward, sequence = ~step.under(_BEHIND), _sequence_numbers(step)
    for part in np.split(at, np.flatnonzero(np.diff(forward[at])) + 1) if len(at) else ():
        first, apart, count = _twice(alike_as[part])
        if forward[part[0]] and count >= _LEAST and 2 * count >= _MOSTLY * len(part):
            pair = part[first : first + count], part[first + apart : first + apart + count]
            # Operators count up where gradients are recorded, and only there.
            numbers = [len(np.unique(sequence[each])) for each in pair]
            if 2 * min(numbers) < max(numbers):
                out.append(pair if numbers[0] < numbers[1] else pair[::-1])
    return out


def _twice(values: Ints) -> tuple[int, int, int]:
    """Return begin, distance and length of the longest part that follows again; by what is there exactly twice.

    What is there more often, as the layers of a model are, repeats within a pass.
    """
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    at = np.flatnonzero(count[number] == 2)
    pairs = at[np.argsort(number[at], kind="stable")].reshape(-1, 2)
    if not len(pairs):
        return 0, 0, 0
    apart = int(np.bincount(pairs[:, 1] - pairs[:, 0]).argmax())
    equal = np.concatenate(([False], values[:-apart] == values[apart:], [False]))
    runs = np.flatnonzero(np.diff(equal)).reshape(-1, 2)
    first, end = runs[np.diff(runs)[:, 0].argmax()].tolist()
    return first, apart, min(end - first, apart)


def _sequence_numbers(step: GpuStep) -> Ints:
    """Return the sequence number of the operator of each activity, -1 for none."""
    out = np.full(len(step.work), -1, dtype=np.int64)
    for location in np.unique(step.operator.location[step.operator.row >= 0]).tolist():
        at = np.flatnonzero((step.operator.row >= 0) & (step.operator.location == location))
        rows, which = np.unique(step.operator.row[at], return_inverse=True)
        table = Attributes(step.trace, "operator_spans", location, ("sequence_number",)).of(rows)
        out[at] = integers(table.column("sequence_number"))[which]
    return out


def _module(step: GpuStep, path: int) -> str:
    """Return the outermost module on a call path, as PyTorch names it; "" if there is none."""
    parent, region = path_tree(step.trace)
    found = ""
    while path >= 0:
        name = step.names[region[path]]
        found = name.removeprefix(MODULE) if name.startswith(MODULE) else found
        path = int(parent[path])
    return found


RULE = Rule("gpu.repeat", "The forward pass runs twice", run)
