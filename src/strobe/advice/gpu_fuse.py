"""Rule `gpu.fuse`: kernels that work element by element follow each other, and each reads and writes everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import chains, gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.model.plugins import Below, Finding, Rule
from strobe.tables.column_arrays import rows_by
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
_SHOWN = 4  # operators of the chain that costs most


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding if chains of elementwise kernels (and reductions between them) cost 5 % of the steps.

    A chain: kernels that directly follow each other on a stream, none of which is a batch norm of a library. Memory
    limits them, so that one kernel for a chain takes at least as long as its longest one: the others are saved (upper
    bound), or half of them, where results in between are needed later (lower bound).
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step = found.step
    chain, length = chains(found, found.step.wanted)
    own = chain >= 0
    if not own.any():
        return
    time_ns = (step.work.end_ns - step.work.start_ns) * own
    longest = np.zeros(len(length), dtype=np.int64)
    np.maximum.at(longest, chain[own], time_ns[own])
    total, exposed = float(time_ns.sum()), step.exposed_ns(own)
    high = exposed * (1 - longest.sum() / total) if total else 0.0
    if step.share(high) < LEAST_SHARE:
        yield Below(step.share(high), LEAST_SHARE)
        return
    of_chain = Counter[str]()
    for number, at in rows_by(chain):
        if number >= 0:
            names = dict.fromkeys(found.kind_of(each).operator for each in at[:_SHOWN].tolist())
            of_chain[", ".join(filter(None, names))] += int(time_ns[at].sum())
    name = of_chain.most_common(1)[0][0]
    what = (
        f"kernels that work element by element follow each other, {step.often(int(own.sum()))} in chains of "
        f"{own.sum() / len(length):.3g}: {step.text(exposed)}"
    )
    what += f", most of all {name}" if name else ""
    do = "torch.compile() the function or module that calls them: one kernel then reads and writes everything once"
    yield step.finding(Advice("gpu.fuse", what, f"{do}; strobe kernels --by operator", "medium"), own, high / 2, high)


RULE = Rule("gpu.fuse", "Elementwise kernels follow each other", run)
