"""Rule `gpu.copies`: steps wait for copies between host and GPU: pageable, in small pieces, or not hidden."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice, GpuStep
from strobe.gpu.copies import parts_of_name
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_bytes
from strobe.sums.attributes import integers
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.trace import Trace

LEAST_SHARE = 0.03
# What pinned memory gives over PCIe 3.0 x16 (NVIDIA's bandwidthTest): slower large copies are from pageable memory.
_PINNED_GB_S = 12.0
_LARGE_BYTES = 1 << 20
_SMALL_BYTES = 64 << 10
_MANY = 20  # copies in a step
_OF_COPY = ("copy_kind", "source_kind", "destination_kind")
_WORDS = {"HtoD": "to", "DtoH": "from"}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each direction whose copies cost 3 % of the steps.

    Cost: time in which nothing but these copies runs, and gaps behind copies to the GPU for which the host had waited.
    All of it is saved if copies run beside kernels (upper bound). Pinned memory saves what pageable memory loses
    against 12 GB/s, one large copy all but its bytes at that rate (lower bounds).
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step = found.step
    kind, pageable, size = _attributes(step, found.of("copy"))
    for direction, word in _WORDS.items():
        own = (kind == direction) & step.wanted
        # What a small copy to the host waits for is the rule `gpu.sync`.
        gaps = step.gaps_of("copy") & (direction == "HtoD")
        idle = float(step.gaps.lost_ns[gaps].sum())
        cost, count = step.exposed_ns(own) + idle, int(own.sum())
        if not count or step.share(cost) < LEAST_SHARE:
            yield Below(step.share(cost), LEAST_SHARE)
            continue
        sized = own & (size > 0)
        mean = float(size[sized].mean()) if sized.any() else 0.0
        speed = float(size[sized].sum()) / max(1, int((step.work.end_ns - step.work.start_ns)[sized].sum()))
        slow = bool(pageable[own].mean() > 0.5) or (mean >= _LARGE_BYTES and 0 < speed < _PINNED_GB_S / 2)
        many = count >= _MANY * step.steps and 0 < mean < _SMALL_BYTES
        low = cost * max(0.0, 1 - speed / _PINNED_GB_S) if (slow or many) and speed else 0.0
        if many:
            do = "many small copies: collect them in one tensor on the host (stack, collate), and copy that once"
        elif slow and direction == "HtoD":
            do = "pinned memory, and copies beside kernels: DataLoader(pin_memory=True), .to(device, non_blocking=True)"
        elif slow:
            do = "copy into pinned memory (torch.empty(pin_memory=True)) with non_blocking=True; read it a step later"
        elif direction == "HtoD":
            do = "copy the next batch in a stream of its own while this one is computed, or keep the data on the GPU"
        else:
            do = "copy in a stream of its own while the next step computes, less often, or reduce it on the GPU first"
        memory = "pageable memory" if pageable[own].mean() > 0.5 else "the host"
        what = (
            f"copies {word} {step.device.name} {'from' if direction == 'HtoD' else 'to'} {memory} cost "
            f"{step.text(cost)}, in which nothing else runs: {step.often(count)}"
        )
        what += f", {format_bytes(mean)} each at {speed:.3g} GB/s" if sized.any() else ""
        confidence = "high" if slow or many else "medium"
        yield step.finding(Advice("gpu.copies", what, f"{do}; strobe copies", confidence), own, low, cost)


def _attributes(step: GpuStep, copies: Bools) -> tuple[npt.NDArray[np.object_], Bools, Ints]:
    """Return kind, whether it is from or to pageable memory, and bytes (-1: unknown) of every activity."""
    names = [parts_of_name(name) for name in step.names]
    kind = np.array([each[0] or "" for each in names], dtype=object)[step.work.region]
    pageable = np.array(["Pageable" in each[1:] for each in names], dtype=bool)[step.work.region]
    size = np.full(len(step.work), -1, dtype=np.int64)
    for at, rows in step.attributes("copy_spans", ("size_bytes", *_OF_COPY), copies):
        size[at] = integers(rows.column("size_bytes"))
        known = [rows.column(name).to_pylist() for name in _OF_COPY]
        for k, which, source, destination in zip(at.tolist(), *known, strict=True):
            kind[k] = which or kind[k]
            pageable[k] |= "Pageable" in (source, destination)
    return np.where(copies, kind, ""), pageable, size


RULE = Rule("gpu.copies", "Steps wait for copies between host and GPU", run)
