"""Rule `operators`: one function of the program, outside of modules, calls operators for a large part of a step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.function_times import LEAST_SHARE, avoidable_times, operators_of_functions, operators_of_models
from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.sums.path_statistics import caller_of
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

MOST = 2


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each function of the program whose operators take at least 10 % of the usual step on a CPU.

    Those in the backward pass and in the update are the model's, and those in a module's `forward`, unless they are
    very many and short. What the others do may be meant, or a model without modules: a gain is promised only for very
    many short calls (see avoidable_times). What a library calls for the function is the business of the rule `python`.
    """
    calls, operators, avoidable = usual_calls(trace), operators_of_functions(trace), avoidable_times(trace)
    inner = operators_of_models(trace)
    if calls is None or operators is None or inner is None:
        return
    own, regions = calls.main, region_rows(trace)
    many = [region for region, spare in avoidable.items() if spare.call is None and inner.time_ns[region]]
    time_ns = operators.time_ns.copy()
    time_ns[many] = np.maximum(time_ns[many], inner.time_ns[many])
    share = time_ns / max(1, calls.duration_ns)
    for region in np.argsort(-share)[:MOST].tolist():
        if share[region] < LEAST_SHARE:
            yield Below(float(share[region]), LEAST_SHARE)
            break
        spare = avoidable.get(region)
        if spare is not None and spare.call is not None:
            continue
        of_model = inner.time_ns[region] > operators.time_ns[region]
        per_step = float(share[region]) * calls.usual.median_ns
        operator, often, mean_ns = (inner if of_model else operators).most(calls, region)
        function, caller = regions[region], caller_of(own, regions, own.region, region)
        do = f"{often:.3g} calls of {regions[operator].name} a step"
        if spare is not None:
            do = f"one operator on all of the data instead of {do}, {format_ns(mean_ns)} each on average"
        yield Finding(
            rule="operators",
            what=f"operators that {function.name} calls {'itself' if of_model else 'outside of modules'} take "
            f"{format_ns(per_step)} "
            f"({format_share(share[region])}) of a step, most of all {regions[operator].name}"
            + (f"; with the Python code around them {format_ns(spare.high_ns)}" if spare is not None else ""),
            where=f"{function.file}:{function.line}" if function.line else "",
            do=f"{do}; called by {caller}" if caller else do,
            gain_low_ns=round(spare.low_ns) if spare is not None else 0,
            gain_high_ns=round(spare.high_ns if spare is not None else per_step),
            confidence="low" if spare is None else "medium",
            informative=spare is None,
        )


RULE = Rule("operators", "Operators outside of modules take the time", run)
