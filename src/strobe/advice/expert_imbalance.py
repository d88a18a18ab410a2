"""Rule `rank.experts`: ranks wait in all-to-alls for the one whose experts get most tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_step import MODEL_ERROR, gpu_step
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.ranks.mesh.experts import exchanges
from strobe.ranks.uneven_exchanges import uneven_exchanges
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each group of ranks with uneven all-to-alls, if ranks wait in them 5 % of a step (mean).

    With even parts each rank would compute for the mean time of all: the mean of the waits is saved, and what the
    transfer takes longer for more bytes (upper bound); or half of the waits, as tokens are never quite even. Where the
    clocks of the ranks are known, this time is the rule `rank.waits`, too, and the finding is information.
    """
    gpu = gpu_step(trace)
    if gpu is None:
        yield from _on_hosts(trace)
    if gpu is None or not gpu.of_steps:
        return
    step_ns = gpu.per_step(gpu.duration_ns)
    for each in uneven_exchanges(trace):
        most, wait_ns = int(each.size.argmax()), float(each.wait_ns.mean())
        if wait_ns < LEAST_SHARE * step_ns:
            continue
        more_ns = each.transfer_ns * (1 - each.size.mean() / each.size[most])
        length = each.found.end_ns - each.found.call_ns
        yield Finding(
            rule="rank.experts",
            what=f"{each.parties[most].name} exchanges {format_share(each.size[most] / each.size.sum())} of the bytes "
            f"of all-to-alls among {len(each.parties)} ranks: its experts get most tokens, and the others wait for it, "
            f"{format_ns(wait_ns)} ({format_share(wait_ns / step_ns)}) of a step (mean of all ranks)",
            do="balance the tokens of experts (a loss for it, a lower capacity factor), or place other experts on this "
            "rank; strobe collectives",
            gain_low_ns=round(wait_ns / 2 * (1 - MODEL_ERROR)),
            gain_high_ns=round((wait_ns + more_ns) * (1 + MODEL_ERROR)),
            informative=each.matched,
            evidence=tuple(
                {"location": int(each.found.location[at]), "start_ns": int(each.found.call_ns[at]),
                 "duration_ns": int(length[at])}
                for at in sorted(each.at.tolist(), key=lambda at: -int(length[at]))[:3]
            ),
        )  # fmt: skip


def _on_hosts(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each group whose ranks compute unevenly between a dispatch and its combine.

    With even parts each rank computes for the mean of all: what the busiest one of each step computes longer is saved,
    at most; half of it at least, as tokens are never quite even.
    """
    for each in exchanges(trace):
        own = each.expert_ns[:, each.steady]
        if not own.size:
            continue
        duration, longer = float(each.duration_ns[each.steady].mean()), own.max(axis=0) - own.mean(axis=0)
        if longer.mean() < LEAST_SHARE * duration:
            continue
        share = format_share(float(each.imbalance_by_step.mean()))
        at = int(np.flatnonzero(each.steady)[longer.argmax()])
        who = "the rank that computes longest changes from step to step"
        if each.hot is not None:
            bytes_ = each.received_bytes[:, each.steady].sum(axis=1)
            part = format_share(bytes_[each.ranks.index(each.hot)] / max(1, bytes_.sum()))
            who = f"rank {each.hot} computes longest in most steps, and gets {part} of the bytes"
        yield Finding(
            rule="rank.experts",
            what=f"experts of {len(each.ranks)} ranks compute unevenly between dispatch and combine: {who}; the "
            f"imbalance is {share} (1 - mean / max), {format_ns(longer.mean())} of a step",
            do="balance the tokens of experts (a loss for it, a lower capacity factor)"
            + (", or place other experts on this rank" if each.hot is not None else "")
            + "; strobe mesh --by expert",
            gain_low_ns=round(longer.mean() / 2),
            gain_high_ns=round(longer.mean()),
            evidence=({"start_ns": int(each.start_ns[at]), "duration_ns": int(each.duration_ns[at])},),
        )


RULE = Rule("rank.experts", "Experts get uneven parts of the tokens", run)
