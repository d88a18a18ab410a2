"""Rule `operators`: one function of the program, outside of modules, calls operators for a large part of a step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.usual_calls import usual_calls
from strobe.gpu.devices import devices
from strobe.model.kinds import HOST_KINDS
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.steps.thread_spans import are_backward, innermost, kinds_of
from strobe.sums.path_statistics import caller_of, is_own_function
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.10
MOST = 2
_OPERATORS = HOST_KINDS.index("operators")


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each function of the program whose operators take at least 10 % of the usual step on a CPU.

    Those in a module's `forward`, in the backward pass and in the update are the model's, and so is a function that
    holds any of these. What the others do may be meant, or a model without modules: no gain is promised.
    """
    calls = usual_calls(trace)
    if calls is None or devices(trace):
        return
    own = calls.main
    regions = region_rows(trace)
    names, paradigms, roles = (
        list(each) for each in zip(*((r.name, r.paradigm, r.role) for r in regions), strict=True)
    )
    model = are_backward(names) | np.array(list(map(_is_of_model, names)))
    of_model = innermost(own.parent, model[own.region]) >= 0
    is_function = np.array([is_own_function(each) and each.name[-1] != ">" for each in regions])
    maker = innermost(own.parent, is_function[own.region])
    called = (kinds_of(names, paradigms, roles)[own.region] == _OPERATORS) & ~of_model & (maker >= 0)
    # The function that holds the loop was not called in a step; one that holds the model is not outside of it.
    holds = np.zeros(len(regions), dtype=bool)
    above = own.parent[of_model]
    while (above := above[above >= 0]).size:
        holds[own.region[above]] = True
        above = np.unique(own.parent[above])
    holds[np.bincount(own.region, weights=own.calls, minlength=len(regions)) == 0] = True
    of_maker = own.region[maker[called]]
    time_ns = np.bincount(of_maker, weights=own.own_ns[called], minlength=len(regions)) * ~holds
    share = time_ns / max(1, calls.duration_ns)
    for region in np.argsort(-share)[:MOST].tolist():
        if share[region] < LEAST_SHARE:
            break
        mine = np.flatnonzero(called)[of_maker == region]
        of_operator = np.bincount(own.region[mine], weights=own.own_ns[mine])
        per_step, most = float(share[region]) * calls.usual.median_ns, int(of_operator.argmax())
        often = own.calls[mine][own.region[mine] == most].sum() / calls.steps
        function, caller = regions[region], caller_of(own, regions, own.region, region)
        do = f"{often:.3g} calls of {regions[most].name} a step"
        yield Finding(
            rule="operators",
            what=f"operators that {function.name} calls outside of modules take {format_ns(per_step)} "
            f"({format_share(share[region])}) of a step, most of all {regions[most].name}",
            where=f"{function.file}:{function.line}" if function.line else "",
            do=f"{do}; called by {caller}" if caller else do,
            gain_high_ns=round(per_step),
            confidence="low",
            informative=True,
        )


def _is_of_model(name: str) -> bool:
    return name.startswith(("nn.Module: ", "Optimizer.", "_engine_run_backward")) or name.split(".")[-1] == "forward"


RULE = Rule("operators", "Operators outside of modules take the time", run)
