"""Matrix products that could be one: equal ones, one after the other, and what merging them would gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace, *, peak_gflops: float | None = None, bandwidth_gb_s: float | None = None) -> Table:
    """Find products of equal operator, shape and type that one thread calls one after the other in the same step.

    No other operator launches a kernel between them, so n of them may be one product of n-fold work: operands put
    after each other ([A1; A2; A3] h), or stacked (bmm). A trace does not hold which data an operator reads: that they
    share an operand is to be checked in the program, and so is that none needs the result of another. `independent`
    is `by size` where a result has as many elements as neither operand, so that it cannot be the next one's as a whole
    (a part of it still can), else `unknown`.

    predicted_ns = n-fold FLOPs / speed; speed = that of the products of the same type in this trace, on the same GPU,
    which take half to twice as many FLOPs a call (`basis`: trace); where there are none, or that is more than the
    roofline allows, min(peak, intensity of the merged product x bandwidth), which is the best case (`basis`: roofline).
    gain_ns = device_ns - predicted_ns; where that is not more than 0, there is no row.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.gemms import NO_PEAK, NO_SHAPES, find, stated_peak, sums
    from strobe.structure.merging import NO_CANDIDATE, NO_KERNELS, candidates, predicted

    stated = stated_peak(peak_gflops, bandwidth_gb_s)
    found = find(trace)
    ranks = trace.processes.column("rank")
    rows, no_peak = [], set()
    products = sums(found)
    for each in candidates(trace, found):
        after, basis = predicted(trace, products, each, stated)
        if after is None:
            no_peak.add(f"{each.dtype or 'unknown types'} on GPU {each.device.number}")
        elif after >= each.device_ns:
            continue
        product = each.product
        rows.append(
            (
                ranks[each.device.process], each.device.process, each.device.number, each.kind.name, each.dtype or None,
                product.batch, product.m, product.n, product.k, each.together, each.times, each.device_ns, after,
                None if after is None else each.device_ns - after, None if after is None else each.device_ns / after,
                basis, "by size" if each.independent else "unknown", each.inside, each.kind.shapes, each.location,
                each.start_ns,
            )
        )  # fmt: skip
    notes = [NO_PEAK.format(", ".join(sorted(no_peak)))] if no_peak else []
    if not rows:
        known = [gemms for gemms in found.threads if len(gemms)]
        notes.append(NO_SHAPES if not known else NO_CANDIDATE if found.devices else NO_KERNELS)
    columns = (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that called them", extra=True),
        Column("device", "int64", "", "number of the GPU"),
        Column("operator", "string", "", "operator"),
        Column("dtype", "string", "", "type of the operands that are multiplied"),
        Column("batch", "int64", "", "matrix products of a call"),
        Column("m", "int64", "", "rows of each"),
        Column("n", "int64", "", "columns of each"),
        Column("k", "int64", "", "length of the sums of each"),
        Column("together", "int64", "", "calls one after the other, which could be one"),
        Column("times", "int64", "", "how often so many follow each other"),
        Column("device_ns", "int64", "ns", "durations of their kernels, all times"),
        Column("predicted_ns", "int64", "ns", "the same after merging, null where nothing to predict it from is known"),
        Column("gain_ns", "int64", "ns", "what merging would save, all times"),
        Column("speedup", "float64", "", "device_ns / predicted_ns"),
        Column("basis", "string", "", "what the prediction rests on: trace, or roofline (the best case)"),
        Column("independent", "string", "", "by size: none as a whole can be an operand of the next; else unknown"),
        Column("inside", "string", "", "what directly surrounds the first, empty where nothing does", extra=True),
        Column("shapes", "string", "", "shapes of the inputs of each, as JSON", extra=True),
        Column("location", "uint32", "", "thread of the first of them", extra=True),
        Column("start_ns", "int64", "ns", "when the first of them was called", extra=True),
    )
    rows.sort(key=lambda row: -(row[13] or 0))
    return make_table(columns, rows, name="gemm_merging", about="the whole run", note="; ".join(notes))


ANALYSIS = Analysis(
    "gemm_merging",
    "Which matrix products could be merged into one, and what would that gain?",
    run,
    options=(
        Option("peak_gflops", "peak of the GPU in GFLOP/s, for all types", type=float),
        Option("bandwidth_gb_s", "bandwidth of the GPU's memory in GB/s", type=float),
    ),
)
