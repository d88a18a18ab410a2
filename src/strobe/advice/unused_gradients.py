"""Rule `backward.unused`: gradients are computed of tensors that no optimizer has."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.breakdown.backward_passes import backward_passes, place_of
from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the step
# Their part of the gradients need not be their part of the time.
_LEAST = 0.7


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if a backward pass accumulates more gradients than optimizers have parameters.

    Saved is the backward pass through what is not trained: all of it at most (what is trained may be at its end), and
    70 % of the unused gradients' part of it at least.
    """
    found, calls = backward_passes(trace), usual_calls(trace)
    if found is None or calls is None or not found.parameters:
        return
    unused = found.leaves - found.parameters
    low = _LEAST * found.time_ns * unused / max(1, found.leaves)
    if unused < 1 or low < LEAST_SHARE * calls.usual.median_ns:
        return
    yield Finding(
        rule="backward.unused",
        what=f"a backward pass computes {found.leaves:.3g} gradients, and optimizers have {found.parameters} "
        f"parameters: {unused:.3g} are of none of them; it takes {format_ns(found.time_ns)} "
        f"({format_share(found.time_ns / calls.usual.median_ns)}) of a step",
        where=place_of(found.caller),
        do="run what is not trained under torch.no_grad(), or call requires_grad_(False) for its parameters",
        gain_low_ns=round(low),
        gain_high_ns=round(found.time_ns),
    )


RULE = Rule("backward.unused", "Gradients of what is not trained", run, needs=("torch",))
