"""Rule `gpu.sync`: the host waits for the GPU, which then has nothing to do until the host has caught up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from strobe.breakdown.expert_loops import expert_loop
from strobe.breakdown.gpu_step import Advice, GpuStep, gpu_step
from strobe.model.plugins import Below, Finding, Rule
from strobe.operators.labels import innermost_line
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import path_tree, region_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.02
MOST = 3
_OFTEN = 0.1  # a step: what is rarer makes steps slow, and is the rule `outlier`
_READ, _SHORT_NS = 3, 100_000  # a comparison, a reduction, and a copy to the host; longer ones are rather needed
# By what is on the call path, the first that fits: what to do.
_DO = (
    (
        r"(?<!is_)nonzero|masked_select|unique|repeat_interleave|bincount|boolean",
        "its result has a size that only the GPU knows: use torch.where or a mask instead of selecting, or "
        "torch.nonzero_static(size=...), output_size=...",
    ),
    (
        r"aten::(item|_local_scalar_dense|is_nonzero|equal|allclose)|tolist",
        "keep the value on the GPU (loss.detach() summed there, torch.where instead of if); read it every 100th step",
    ),
    (
        r"_to_copy|aten::to$|aten::copy_|aten::cpu|Memcpy",
        "copy into pinned memory with non_blocking=True, and read it a step later, after an event",
    ),
    (r"DeviceSynchronize", "remove the synchronisation of the whole device (torch.cuda.synchronize) from the loop"),
    (
        r"EventSynchronize|StreamSynchronize",
        "wait where the result is needed, or let a stream wait (cudaStreamWaitEvent)",
    ),
)


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each place where the host waits, if gaps of the GPU behind it take 2 % of the steps.

    Without the wait, the host would have been ahead by as long as it had waited when the gap began: so much of the gap
    is saved (lower bound). It stays ahead by what the calls took, and by these gaps, which saves later ones, too; and
    short kernels right before may compute what is read for nothing else (upper bound).
    """
    step = gpu_step(trace)
    if step is None:
        return
    of_experts = loop[2] if (loop := expert_loop(trace)) is not None else False  # of the rule `gpu.experts`
    at, gaps = np.flatnonzero(step.gaps_of("sync") & ~np.asarray(of_experts)), step.gaps
    places: dict[tuple[str, str, str], list[int]] = {}
    for each in at.tolist():
        places.setdefault(_place(step, int(gaps.path[each])), []).append(each)
    often_enough = {place: own for place, own in places.items() if len(own) >= _OFTEN * step.steps}
    lost = {place: float(gaps.lost_ns[own].sum()) for place, own in often_enough.items()}
    if step.share(most := max(lost.values(), default=0.0)) < LEAST_SHARE:
        yield Below(step.share(most), LEAST_SHARE)
    for place in sorted(lost, key=lambda each: (-lost[each], each))[:MOST]:
        if step.share(lost[place]) < LEAST_SHARE:
            return
        operators, call, _ = place
        do = next(
            (text for pattern, text in _DO if re.search(pattern, f"{operators} {call}")), "wait less often, or later"
        )
        own = np.isin(np.arange(len(gaps)), places[place])
        low, high = (float(np.minimum(gaps.lost_ns, each)[own].sum()) for each in (gaps.waited_ns, gaps.call_ns))
        called = float(gaps.call_ns[own & (gaps.waited_ns > 0)].sum())
        late = float(gaps.lost_ns[step.gaps_of("sync") | step.gaps_of("launch") | step.gaps_of("host")].sum())
        high = max(high, min(called + lost[place] if called else 0.0, late))
        high += _read_ns(step, gaps.start_ns[own & (gaps.waited_ns > 0)])
        often = step.often(int((own & (gaps.waited_ns > 0)).sum()))
        what = (
            f"the host waits for {step.device.name} in {f'{operators.split()[0]} ({call})' if operators else call}, "
            f"{often}; then the GPU idles {step.text(lost[place])} until more is launched"
        )
        yield step.gap_finding(Advice("gpu.sync", what, f"{do}; strobe idle", "high"), own, low, high)


def _read_ns(step: GpuStep, waited_until_ns: Ints) -> float:
    """Return the time of the last kernels and copies before waits, if they are short: what is read, what makes it."""
    last = np.searchsorted(step.work.start_ns, waited_until_ns) - 1
    before = np.unique((last[:, None] - np.arange(_READ)).clip(0))
    length = (step.work.end_ns - step.work.start_ns)[before]
    return float(length[length < _SHORT_NS].sum())


def _place(step: GpuStep, path: int) -> tuple[str, str, str]:
    """Return the operators around a call (outermost first), the call, and the line of the program."""
    if path < 0:
        return "", "", ""
    parent, region = path_tree(step.trace)
    regions, operators, at = region_rows(step.trace), list[str](), path
    while at >= 0:
        if regions[region[at]].role == "operator":
            operators.append(regions[region[at]].name)
        at = int(parent[at])
    return " ".join(reversed(operators)), regions[region[path]].name, innermost_line(step.trace, path)


RULE = Rule("gpu.sync", "The host waits for the GPU, which idles then", run)
