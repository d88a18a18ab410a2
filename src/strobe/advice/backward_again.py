"""Rule `backward.again`: several backward passes of a step go through the same nodes."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.breakdown.backward_passes import backward_passes, place_of
from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the step
# What one pass for all costs more than one of them: of what is evaluated again, this part is saved at least.
_LEAST = 0.75


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if nodes take 5 % of the step that were evaluated before in the same step (see Backward)."""
    found, calls = backward_passes(trace), usual_calls(trace)
    if found is None or calls is None or found.again_ns[1] < LEAST_SHARE * calls.usual.median_ns:
        return
    low, high = found.again_ns
    at = found.caller
    yield Finding(
        rule="backward.again",
        what=f"{found.passes:.3g} backward passes a step go through the same operators: up to {format_ns(high)} "
        f"({format_share(high / calls.usual.median_ns)}) of a step is done again"
        + (f", called in {at.name}" if at is not None else ""),
        where=place_of(at),
        do="add the losses and call backward once, instead of twice with retain_graph=True",
        gain_low_ns=round(_LEAST * low),
        gain_high_ns=round(high),
    )


RULE = Rule("backward.again", "Backward passes go through the same operators", run, needs=("torch",))
