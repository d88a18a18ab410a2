"""Matrix products, convolutions and attention: FLOPs, bytes, speed, and how close to what the GPU can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace, *, peak_gflops: float | None = None, bandwidth_gb_s: float | None = None) -> Table:
    """Sum matrix products, convolutions and attention by operator, shape and type; all ranks and all their GPUs.

    Of operators inside each other (linear, addmm) the outermost counts. FLOPs follow from the shapes: a product of
    (m, k) and (k, n) takes 2 m n k (formulas: `strobe.structure.flops`); bytes are those of the operands and the
    result, each once. device_ns = sum of the durations of the kernels launched inside. gflops = FLOPs / device_ns, or
    / host_ns where the process used no GPU. efficiency = gflops / peak of the type; it may exceed 1 where a
    convolution multiplies less than its definition says (Winograd, FFT). bound: `compute` where FLOPs a
    byte (intensity) reach peak / bandwidth, else `memory`; of_roofline = gflops / min(peak, intensity x bandwidth).
    Peaks are as stated in the options, else those of the GPU's data sheet, where it is a known one; float32 is measured
    against TF32 where the names of the kernels say that tensor cores computed it.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.gemms import NO_FLOPS, NO_PEAK, NO_SHAPES, find, peak_of, stated_peak, sums

    stated = stated_peak(peak_gflops, bandwidth_gb_s)
    found = find(trace)
    ranks = trace.processes.column("rank")
    with_gpu = {device.process for device in found.devices}
    rows, unknown, no_peak = [], 0, set()
    for each in sums(found):
        device, product, flop = each.device, each.kind.product, each.flop
        moved = each.kind.moved_bytes(each.dtype)
        time_ns = each.device_ns if device else each.host_ns if each.process not in with_gpu else 0
        rate = flop * each.calls / time_ns if flop and time_ns else None
        peak = peak_of(trace, device, each.dtype, each.tf32, stated)
        intensity = flop / moved if flop and moved else None
        reach = min(peak.gflops, intensity * peak.gb_s) if intensity and peak.gflops and peak.gb_s else None
        bound = None if reach is None else "compute" if reach == peak.gflops else "memory"
        unknown += 0 if flop else each.calls
        if rate and not peak.gflops:
            no_peak.add(f"{each.dtype or 'unknown types'} on {each.hardware(trace)}")
        rows.append(
            (
                ranks[each.process], each.process, device.number if device else None,
                each.kind.name, each.dtype or None,
                *((product.batch, product.m, product.n, product.k) if product else (None,) * 4),
                each.calls, flop, moved, intensity,
                each.device_ns if device else None, each.host_ns, time_ns / each.calls if time_ns else None,
                rate, peak.gflops, rate / peak.gflops if rate and peak.gflops else None,
                bound, rate / reach if rate and reach else None, each.tf32, each.kind.shapes,
            )
        )  # fmt: skip
    notes = [NO_SHAPES] if not rows else []
    if unknown:
        notes.append(NO_FLOPS.format(unknown, sum(len(gemms) for gemms in found.threads)))
    notes += [NO_PEAK.format(", ".join(sorted(no_peak)))] if no_peak else []
    columns = (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that called it", extra=True),
        Column("device", "int64", "", "number of the GPU that computed it, null where no kernel is known"),
        Column("operator", "string", "", "outermost operator"),
        Column("dtype", "string", "", "type of the operands that were multiplied"),
        Column("batch", "int64", "", "matrix products of a call; groups of a convolution, heads in all of attention"),
        Column("m", "int64", "", "rows; positions of a convolution's output in all images; queries"),
        Column("n", "int64", "", "columns; output channels of a group; keys"),
        Column("k", "int64", "", "length of the sums; elements of a filter; size of a head"),
        Column("calls", "int64", "", "executions; of what a CUDA graph holds, how often the graph ran it"),
        Column("flop", "int64", "FLOP", "floating-point operations of a call"),
        Column("moved_bytes", "int64", "bytes", "operands and result of a call, each once", extra=True),
        Column("intensity", "float64", "FLOP/byte", "floating-point operations a byte"),
        Column("device_ns", "int64", "ns", "durations of the kernels launched inside, of all calls"),
        Column("host_ns", "int64", "ns", "durations of the operators on the host, of all calls", extra=True),
        Column("avg_ns", "float64", "ns", "kernels of a call (operator, without a GPU), mean"),
        Column("gflops", "float64", "GFLOP/s", "speed that was reached"),
        Column("peak_gflops", "float64", "GFLOP/s", "what the GPU does at most with this type", extra=True),
        Column("efficiency", "float64", "", "speed as a part of the peak, 0 to 1"),
        Column("bound", "string", "", "what limits it at best: compute or memory"),
        Column("of_roofline", "float64", "", "speed as a part of what peak and bandwidth allow, 0 to 1", extra=True),
        Column("tf32", "bool", "", "whether names of kernels say float32 was multiplied on tensor cores", extra=True),
        Column("shapes", "string", "", "shapes of the inputs, as JSON", extra=True),
    )
    rows.sort(key=lambda row: (-(row[13] or 0), -row[14]))
    return make_table(columns, rows, name="gemm", about="the whole run", note="; ".join(notes))


ANALYSIS = Analysis(
    "gemm",
    "How fast are matrix products, convolutions and attention, and how close to what the GPU can do?",
    run,
    options=(
        Option("peak_gflops", "peak of the GPU in GFLOP/s, for all types", type=float),
        Option("bandwidth_gb_s", "bandwidth of the GPU's memory in GB/s", type=float),
    ),
)
