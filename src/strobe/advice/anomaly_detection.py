"""Rule `backward.anomaly`: PyTorch looks for NaN in each gradient."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.breakdown.backward_passes import backward_passes
from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the step
# At most twice the time of the checks goes: operators of the forward pass keep their call stacks, too.
_LEAST, _MOST = 0.75, 2.0


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if most nodes of the backward pass look for NaN, and that takes 5 % of the step."""
    found, calls = backward_passes(trace), usual_calls(trace)
    if found is None or calls is None or found.checks_ns < LEAST_SHARE * calls.usual.median_ns:
        return
    yield Finding(
        rule="backward.anomaly",
        what=f"the backward pass looks for NaN in what each of its nodes has made (anomaly detection): "
        f"{format_ns(found.checks_ns)} ({format_share(found.checks_ns / calls.usual.median_ns)}) of a step",
        do="torch.autograd.set_detect_anomaly(False), or detect_anomaly() only while a NaN is looked for",
        gain_low_ns=round(_LEAST * found.checks_ns),
        gain_high_ns=round(min(_MOST * found.checks_ns, calls.usual.median_ns)),
        confidence="high",
    )


RULE = Rule("backward.anomaly", "Each gradient is looked at for NaN", run, needs=("torch",))
