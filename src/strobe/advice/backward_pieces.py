"""Rule `backward.pieces`: the backward pass makes a gradient of a whole tensor for each piece that a loop takes."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.breakdown.backward_passes import backward_passes, place_of
from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.1  # of the step
LEAST_PIECES = 16  # a step; some layers take two or three
# Of this time at least the first part is saved; at most as much again with the operators of the loop.
_LEAST, _MOST = 0.75, 2.0


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if gradients of pieces of tensors take 10 % of the step.

    The backward pass of `x[:, t]` fills a tensor of the size of `x` with zeros, and adds it to those of other pieces.
    """
    found, calls = backward_passes(trace), usual_calls(trace)
    if found is None or calls is None or found.pieces < LEAST_PIECES:
        return
    share, at = found.pieces_ns / calls.usual.median_ns, found.taken_in
    if share < LEAST_SHARE:
        return
    yield Finding(
        rule="backward.pieces",
        what=f"the backward pass of {found.pieces:.3g} pieces of tensors (x[:, t]) takes {format_ns(found.pieces_ns)} "
        f"({format_share(share)}) of a step: it makes a gradient of the whole tensor for each"
        + (f"; {at.name} takes most of them" if at is not None else ""),
        where=place_of(at),
        do="one operator on the whole tensor instead of a loop, or all pieces at once: x.unbind(1), x.split(n)",
        gain_low_ns=round(_LEAST * found.pieces_ns),
        gain_high_ns=round(min(_MOST * found.pieces_ns, calls.usual.median_ns)),
    )


RULE = Rule("backward.pieces", "Gradients of pieces of tensors", run, needs=("torch",))
