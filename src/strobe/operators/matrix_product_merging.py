"""Equal matrix products one after the other, which could be one; and how long that one would take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.gpu.devices import Device
from strobe.gpu.nvidia.peaks import Peak
from strobe.operators.flops import ITEM_BYTES, Product
from strobe.operators.matrix_products import Found, Gemms, Kind, Sum, peak_of
from strobe.steps.step_times import step_at
from strobe.trace.definition_rows import path_tree, region_rows
from strobe.trace.trace import Trace

_NUMBERED = re.compile(r"#\d+$")
NO_CANDIDATE = "no equal matrix products follow each other directly, or merging them would gain nothing"
NO_KERNELS = "no kernel of a matrix product in this trace: what merging gains is known on a GPU only"
# Operators that stand for one matrix product; merging convolutions or attention is another matter.
_MATRICES = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::linear", "aten::matmul")


@dataclass
class Candidate:
    """So many equal products one after the other, as often as the run has them. The place is that of the first."""

    device: Device
    kind: Kind
    dtype: str
    tf32: bool
    product: Product
    together: int
    inside: str
    location: int
    start_ns: int
    times: int = 0
    device_ns: int = 0

    @property
    def independent(self) -> bool:
        """Whether none can need the result of another."""
        return independent(self.product)

    @property
    def merged(self) -> Product:
        """Return the product of all rows at once, with the right operand they share; stacks become a higher one."""
        p = self.product
        if p.batch > 1:
            return replace(p, batch=p.batch * self.together, flop=p.flop * self.together,
                           elements=p.elements * self.together)  # fmt: skip
        rows = p.m * self.together
        return replace(p, m=rows, flop=p.flop * self.together, elements=rows * p.k + p.k * p.n + rows * p.n)


def independent(p: Product) -> bool:
    """Return whether the result, as a whole, has too many or too few elements for an operand of such a product."""
    return p.result_elements not in {p.batch * p.m * p.k, p.batch * p.k * p.n, p.m * p.k, p.k * p.n}


def candidates(trace: Trace, found: Found) -> list[Candidate]:
    """Return the products that follow each other directly, in the order in which they were found."""
    out: dict[tuple[object, ...], Candidate] = {}
    parents, region_of_path = path_tree(trace)
    regions = region_rows(trace)

    def around(call_path: int) -> str:
        parent = parents[call_path]
        name = regions[region_of_path[parent]].name if parent >= 0 else ""
        return _NUMBERED.sub("", name)  # ProfilerStep#3: every step is the same place

    for location, gemms in found.threads.items():
        for first, together in _runs(trace, found, location, gemms):
            kind = found.kinds[int(gemms.kind[first])]
            dtype = found.dtype(int(gemms.kind[first]), int(gemms.dtype_kind[first]))
            device = int(gemms.device[first])
            tf32 = bool(gemms.tf32[first]) and dtype == "float32"
            inside = around(int(gemms.call_path[first]))
            key = (found.process_of[location], device, kind.name, kind.shapes, dtype, tf32, together, inside)
            if kind.product is None:
                continue
            if key not in out:
                start = int(gemms.start_ns[first])
                out[key] = Candidate(
                    found.devices[device], kind, dtype, tf32, kind.product, together, inside, location, start
                )
            out[key].times += int(gemms.runs[first])
            out[key].device_ns += int(gemms.device_ns[first : first + together].sum())
    return list(out.values())


def predicted(
    trace: Trace, products: Sequence[Sum], candidate: Candidate, stated: Peak
) -> tuple[int | None, str | None]:
    """Return how long the merged products would take in all, in nanoseconds, and the source of this estimate.

    `products`: all of the run. The formula is in `analyses/operators/gemm_merging.py`.
    """
    merged = candidate.merged
    work = merged.flop * candidate.times
    flop, time_ns = 0, 0
    for each in products:
        alike = (each.device, each.dtype, each.tf32) == (candidate.device, candidate.dtype, candidate.tf32)
        if alike and each.kind != candidate.kind and each.flop and merged.flop <= 2 * each.flop <= 4 * merged.flop:
            flop, time_ns = flop + each.flop * each.calls, time_ns + each.device_ns
    peak = peak_of(trace, candidate.device, candidate.dtype, candidate.tf32, stated)
    size = ITEM_BYTES.get(candidate.dtype)
    least = 0.0
    if peak.gflops is not None and peak.gb_s is not None and size is not None:
        least = candidate.times * max(merged.flop / peak.gflops, merged.elements * size / peak.gb_s)
    if flop and time_ns and work * time_ns / flop >= least:
        return round(work * time_ns / flop), "trace"
    return (round(least), "roofline") if least else (None, None)


def _runs(trace: Trace, found: Found, location: int, gemms: Gemms) -> list[tuple[int, int]]:
    """Return the stretches of equal products of a thread: number of the first, and how many."""
    if len(gemms) < 2:
        return []
    step = step_at(trace, location, gemms.start_ns)
    mergeable = np.array([kind.product is not None and kind.name in _MATRICES for kind in found.kinds], dtype=bool)
    alike = np.stack((gemms.device, gemms.kind, gemms.dtype_kind, step))
    follows = (alike[:, 1:] == alike[:, :-1]).all(axis=0) & (gemms.others[1:] == 0)
    follows &= mergeable[gemms.kind[1:]] & (gemms.device[1:] >= 0)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], follows, [False])).astype(np.int8)))
    return [(int(begin), int(end - begin + 1)) for begin, end in edges.reshape(-1, 2)]
