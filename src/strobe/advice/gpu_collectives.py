"""Rule `gpu.collectives`: the GPU does nothing but communicate: in many small collectives, or beside no computation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice
from strobe.gpu.kernel_names import short_name
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_bytes, format_ns
from strobe.ranks.step_waits import step_waits
from strobe.ranks.uneven_exchanges import uneven_exchanges
from strobe.sums.attributes import integers
from strobe.trace.definition_rows import processes_of_locations
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05
# PyTorch's DistributedDataParallel collects gradients into buckets of 25 MB; one of a MB is mostly latency.
_SMALL_BYTES = 1 << 20
_MANY = 20  # collectives in a step


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding if kernels that communicate run for 5 % of the steps while nothing else does.

    At most all of it is hidden, as far as there is computation to hide it behind; in a trace of one rank it may be
    waiting for others, so that nothing is sure. Of many small ones, large ones save all but one in `_MANY` for sure.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step, own = found.step, found.of("communication") & found.step.wanted
    alone, count = step.exposed_ns(own), int(own.sum())
    exposed = alone
    if (waits := step_waits(trace)) is not None:  # for other ranks: the rule `rank.waits`
        here = np.array(processes_of_locations(trace))[waits.waits.location] == step.device.process
        exposed = max(0.0, exposed - float(waits.waits.wait_ns[here].sum()) * step.steps / waits.steps)
    for each in uneven_exchanges(trace):  # for the busiest experts: the rule `rank.experts`
        for wait_ns, party in zip(each.wait_ns.tolist(), each.parties, strict=True):
            if party.process == step.device.process and not each.matched:
                exposed = max(0.0, exposed - wait_ns * step.steps)
    if step.share(exposed) < LEAST_SHARE:
        yield Below(step.share(exposed), LEAST_SHARE)
        return
    size = np.full(len(step.work), -1, dtype=np.int64)
    for at, rows in step.attributes("collective_spans", ("sent_bytes",), own):
        size[at] = integers(rows.column("sent_bytes"))
    known = own & (size >= 0)
    mean = float(np.median(size[known])) if known.any() else 0.0
    many = count >= _MANY * step.steps and known.any() and mean < _SMALL_BYTES
    computes = step.exposed_ns(~own & ~found.of("copy"))
    regions, calls = np.unique(step.work.region[own], return_counts=True)
    most = step.names[regions[calls.argmax()]]
    name = short_name(step.names[step.work.region[step.longest(own)]])
    do = (
        "start it earlier, so that computation runs meanwhile: DistributedDataParallel with smaller buckets "
        "(bucket_cap_mb) or gradient_as_bucket_view, async_op=True, prefetching (FSDP: backward_prefetch); or send "
        "less: no_sync() while gradients accumulate, bfloat16"
    )
    if many:
        do = "collect tensors in one buffer: a larger bucket_cap_mb, torch._foreach or coalesced collectives"
    if "broadcast" in most.lower():
        do = "DistributedDataParallel(broadcast_buffers=False), or SyncBatchNorm: buffers are sent before each forward"
    what = f"{step.device.name} only communicates for {step.text(alone)}: {step.often(count)}"
    what += f"; {format_ns(step.per_step(alone - exposed))} of it waits for other ranks" if exposed < alone else ""
    what += f", {format_bytes(mean)} (median)" if known.any() else ""
    low, high = (exposed / 2, exposed) if many else (0.0, min(exposed, computes))
    what, do = f"{what}, most of all in {name}", f"{do}; strobe overlap"
    yield step.finding(Advice("gpu.collectives", what, do, "medium"), own, low, high)


RULE = Rule("gpu.collectives", "The GPU does nothing but communicate", run)
