"""What the backward passes of a usual step evaluate: more than once, or of what no optimizer has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.usual_calls import usual_calls
from strobe.gpu.devices import devices
from strobe.model.kinds import OPTIMIZED_PARAMETERS
from strobe.steps.thread_spans import innermost
from strobe.sums.path_statistics import PathStatistics, is_own_function
from strobe.tables.column_arrays import Bools
from strobe.trace.definition_rows import Region, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_ROOT = "autograd::engine::run_backward"
_NODE = re.compile(r"autograd::engine::evaluate_function: (.*?)(Backward\d+)?$")
_PIECES, _TAKES_PIECES = ("Select", "Slice"), ("aten::select", "aten::slice")
_IS_NAN = ("aten::isnan", "aten::ne")
_CHECKS = (*_IS_NAN, "aten::_is_any_true", "aten::any")  # of `torch.autograd.set_detect_anomaly`
_OF_A_LEAF = "torch::autograd::AccumulateGrad"
_MOST = 0.6  # of some calls
# Gradients of gradients go through the same nodes on purpose.
_SECOND_ORDER = ("BackwardBackward", "DoubleBackward")


@dataclass(frozen=True)
class Backward:
    """The backward passes of a usual step, on a CPU: how many, and their time, ns.

    caller: the program's own function that makes most of the calls, None if there is none. again_ns: the time in
    nodes that were evaluated before, from low to high: by their number, and if each pass but one goes through all
    nodes of these kinds again. pieces_ns, pieces: the time and number of nodes of pieces of tensors (`x[:, t]`), each
    of which makes a gradient of the whole tensor; taken_in: the function that takes most of the pieces. leaves:
    gradients that a pass accumulates; parameters: those that optimizers have, 0 if not known. checks_ns: the time in
    which nodes look for NaN in what they have made, 0 if not most of them do.
    """

    passes: float
    time_ns: float
    caller: Region | None
    again_ns: tuple[float, float]
    pieces_ns: float
    pieces: float
    taken_in: Region | None
    leaves: float
    parameters: int
    checks_ns: float


@cached_on_trace
def backward_passes(trace: Trace) -> Backward | None:
    """Return the backward passes of the usual step; None on a GPU, or where there are none.

    A forward operator makes one node, and a pass evaluates a node at most once: of a kind with more evaluations than
    operators outside of the backward pass some were evaluated again.
    """
    calls = usual_calls(trace)
    if calls is None or devices(trace):
        return None
    own, regions = calls.main, region_rows(trace)
    names = [regions[at].name for at in own.region.tolist()]
    is_root = np.array([name == _ROOT for name in names], dtype=bool)
    passes = float(own.calls[is_root].sum()) / calls.steps
    if not passes:
        return None
    inside = innermost(own.parent, is_root) >= 0
    evaluated, time_ns, forward = Counter[str](), Counter[str](), Counter[str]()
    for name, count, ns, within in zip(names, own.calls.tolist(), own.total_ns.tolist(), inside.tolist(), strict=True):
        node = found[1] if (found := _NODE.match(name)) is not None else ""
        if node and within:
            evaluated[node] += count
            time_ns[node] += ns
        elif not within and name.startswith("aten::"):
            forward[_plain(name.removeprefix("aten::"))] += count
    low = high = 0.0
    if passes > 1 and not any(word in name for name in names for word in _SECOND_ORDER):
        for node, count in evaluated.items():
            more = count - forward[_plain(node)] if forward[_plain(node)] else 0
            low += time_ns[node] * max(0, more) / max(1, count)  # 0 calls: what only other ranks have
            high += time_ns[node] * (1 - 1 / passes) * (more > 0)
        high += time_ns[_OF_A_LEAF] * (1 - 1 / passes) * (high > 0)
    readings = trace.readings(calls.usual.steps.process)
    known = [int(each.values[-1]) for each in readings if each.metric == OPTIMIZED_PARAMETERS and len(each.values)]
    return Backward(
        passes,
        float(own.total_ns[is_root].sum()) / calls.steps,
        _caller(own, is_root, regions),
        (low / calls.steps, max(low, high) / calls.steps),
        sum(time_ns[each] for each in _PIECES) / calls.steps,
        sum(evaluated[each] for each in _PIECES) / calls.steps,
        _caller(own, np.array([name in _TAKES_PIECES for name in names], dtype=bool) & ~inside, regions),
        evaluated[_OF_A_LEAF] / max(1, float(own.calls[is_root].sum())),
        known[0] if known else 0,
        _checks_ns(own, names, sum(evaluated.values())) / calls.steps,
    )


def _checks_ns(own: PathStatistics, names: Sequence[str], nodes: int) -> float:
    """Return the time of operators that look for NaN right in the nodes, if most nodes have one."""
    is_node = np.array([_NODE.match(name) is not None for name in names] + [False])
    counts = is_node[own.parent] & np.array([name in _CHECKS for name in names])
    looks = counts & np.array([name in _IS_NAN for name in names])
    return float(own.total_ns[counts].sum()) if own.calls[looks].sum() >= nodes / 2 else 0.0


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def place_of(function: Region | None) -> str:
    """Return file and line of a function, "" if it has none or is not known."""
    return f"{function.file}:{function.line}" if function is not None and function.line else ""


def _caller(own: PathStatistics, called: Bools, regions: Sequence[Region]) -> Region | None:
    """Return the program's own function that makes most of some calls; None if there is none."""
    functions = np.array([is_own_function(each) for each in regions], dtype=bool)
    caller_of = innermost(own.parent, functions[own.region])
    made = Counter[int]()
    for path in np.flatnonzero(called).tolist():
        made[int(own.region[caller_of[path]]) if caller_of[path] >= 0 else -1] += int(own.calls[path])
    (caller, count), *_ = made.most_common(1) or [(-1, 0)]
    return regions[caller] if caller >= 0 and count >= _MOST * made.total() else None
