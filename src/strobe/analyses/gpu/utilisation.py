"""How much of each GPU was used, rung by rung: kernels ran, blocks filled multiprocessors, warps these, work done.

Show how much of each GPU was used, from the first start to the last end of its work.

When kernels ran is known of all steps; what folded ones launched counts with the launches that the same kernels have
in detail.

busy = part of the time in which some kernel ran (what `nvidia-smi` calls utilisation). SMs filled = the same,
each kernel counting with the part of the multiprocessors that its blocks fill: min(blocks / multiprocessors, 1).
warps there = each kernel counting with the warps that its launch can have at once, as a part of those that the GPU
can hold: min(warps of all blocks / (multiprocessors * warps of one), theoretical occupancy). Kernels that run at
the same time add up, to no more than the rung before. The largest loss between two rungs is where to begin: launch
sooner (idle), launch more blocks (SMs), use fewer registers, less shared memory, other blocks (warps). These are
upper bounds: `strobe devices` has what the GPU measured itself, `strobe metrics` what single kernels did.

roofline = part of the time that the work would take at least, each kernel as long as the GPU needs at its peak to
compute (FLOPs) or to move (bytes of device memory) what it does, whichever is longer, and no longer than it took.
What it does is known from hardware counters, where `strobe metrics --metrics roofline --trace TRACE` kept them
beside the trace (means over the launches that were measured, by the kernel's full name), else from the shapes of
the matrix product, convolution or attention that launched it: FLOPs, and each operand and result moved once.
Peaks follow from the GPU's own clock and bandwidth, else from its data sheet. Of other kernels nothing is
known, and nothing is assumed: roofline known = part of the time of kernels (each with its duration) that the
estimate is about, and roofline is a lower bound where that is below 1. Null where nothing is known. A kernel may
be near the roofline with few warps, so that this rung may be above the one of warps.
"""

from strobe.model.columns import OF_GPU, Column
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "How much of each GPU was used: busy, SMs filled, warps there, work done?",
    columns=(
        *OF_GPU,
        Column("duration_ns", "int64", "ns", "first start to last end of its work"),
        Column("busy_share", "float64", "", "part of it in which some kernel ran, 0 to 1"),
        Column("sms_filled_share", "float64", "", "with the multiprocessors that blocks filled; null: unknown GPU"),
        Column("warps_there_share", "float64", "", "with the warps that could be there; null: unknown GPU"),
        Column("roofline_share", "float64", "", "that its work takes at least at the GPU's peak, as far as known"),
        Column("roofline_known_share", "float64", "", "part of the kernels' time that this is known of, 0 to 1"),
        Column("lost", "string", "", "where most is lost: idle, SMs, or warps"),
        Column("kernels", "int64", "", "kernels that ran", extra=True),
    ),
)
