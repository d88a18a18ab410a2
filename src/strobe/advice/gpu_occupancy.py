"""Rule `gpu.occupancy`: a kernel that takes much of a step uses a part of the GPU: few blocks, or few warps."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from strobe.breakdown.gpu_problems import gpu_problems
from strobe.breakdown.gpu_step import Advice, GpuStep
from strobe.gpu.capabilities import gpu_model
from strobe.gpu.kernel_names import short_name
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_share
from strobe.sums.attributes import integers, product, reals
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.trace import Trace

LEAST_SHARE = 0.10
_FILLED = 0.7  # of the multiprocessors have a block: below, the rest is worth a line
_LAST_WAVE = 0.6  # of all waves of blocks: more is lost by chance everywhere
_FILLED_BY_LIBRARY = 0.4  # of those of a library, whose tiles are chosen for the whole product
_LIBRARY = re.compile(r"gemm|xmma|cutlass|nvjet|cijk|flash_|fmha|cudnn|wgmma", re.I)
_CUTLASS = re.compile(r"cutlass::(device_k|K)ernel")  # kernels of these names; in others they are parameters
# Made to stay on a part of the GPU, or to move arrays, or a matrix once (times a vector): memory limits these.
_MEANT_SO = re.compile(r"persist|multi_tensor|gemv", re.I)
_LEAST_OF_NAME = 0.05  # of a step: kernels that take less are many small ones
_SHORT_NS = 10_000  # a kernel takes some microseconds, however little it does
_OCCUPANCY = 0.25  # of the warps: fewer hide little of the memory's latency
# What they have, and what to do.
_BLOCKS = (
    "few blocks, which fill {} of the multiprocessors,",
    "give them more blocks: smaller tiles, a split along the reduced dimension (split-k), a larger batch",
)
_WARPS = (
    "few warps, {} of what the multiprocessors hold,",
    "fewer registers or less shared memory of a block (__launch_bounds__, -maxrregcount, smaller tiles)",
)
_COLUMNS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread",
            "shared_memory_bytes", "blocks_per_sm", "occupancy_percent")  # fmt: skip


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for kernels with few blocks, and one for those with few warps, if they take 10 % of a step.

    At most the part of the multiprocessors is saved that have no block, or are left empty by the last wave of blocks;
    or that of the warps for which registers or shared memory leave no place. Nothing is sure. Kernels of libraries on
    tensor cores are meant to have few warps, products with a vector few blocks; short kernels do not count.
    """
    found = gpu_problems(trace)
    if found is None:
        return
    step = found.step
    own = found.of("product", "reduction", "scatter", "other") & step.wanted
    filled, occupancy, blocks = _launches(step, own)
    library = np.array([bool(_LIBRARY.search(short_name(name)) or _CUTLASS.search(name)) for name in step.names])[
        step.work.region
    ]
    length = step.work.end_ns - step.work.start_ns
    own &= ~step.named(_MEANT_SO) & (length >= _SHORT_NS)
    by_name = np.bincount(step.work.region, length * own, minlength=len(step.names))
    own &= (by_name >= _LEAST_OF_NAME * step.duration_ns)[step.work.region]
    few_blocks = own & (filled < np.where(library, _FILLED_BY_LIBRARY, _FILLED))
    few_warps = own & (filled >= _FILLED) & (occupancy < _OCCUPANCY) & ~library
    for which, part, words, do in ((few_blocks, filled, *_BLOCKS), (few_warps, occupancy, *_WARPS)):
        cost = step.exposed_ns(which)
        if step.share(cost) < LEAST_SHARE:
            continue
        time_ns = (length * which).astype(np.float64)
        used = float((part * time_ns).sum() / time_ns.sum())
        name = short_name(step.names[step.work.region[step.longest(which)]])
        what = f"kernels with {words.format(format_share(used))} take {step.text(cost)}, most of all {name}"
        if which is few_blocks:
            what += f" ({np.median(blocks[which]):.0f} blocks)"
        saved = cost * (1 - used)
        yield step.finding(
            Advice("gpu.occupancy", what, f"{do}; strobe kernels --by shape", "medium"), which, 0.0, saved
        )


def _launches(step: GpuStep, own: Bools) -> tuple[Floats, Floats, Ints]:
    """Return which part of the multiprocessors and of their warps each activity fills (1: unknown), and its blocks."""
    (filled, occupancy), count = np.ones((2, len(step.work))), np.zeros(len(step.work), dtype=np.int64)
    model = gpu_model(step.trace, step.device.number)
    for at, rows in step.attributes("kernel_spans", _COLUMNS, own):
        blocks, threads = product(rows, _COLUMNS[:3]), product(rows, _COLUMNS[3:6])
        count[at] = blocks
        per_unit, achieved = reals(rows.column("blocks_per_sm")), reals(rows.column("occupancy_percent")) / 100
        if model is not None:
            per_unit = np.where((blocks > 0), blocks / model.multiprocessors, per_unit)
            registers, shared = (integers(rows.column(name), 0) for name in _COLUMNS[6:8])
            there = (blocks > 0) & (threads > 0)
            achieved = np.where(there, model.occupancy(threads, registers, shared), achieved)
        if model is not None:  # more blocks than run at once: waves of them
            at_once = np.maximum(1, np.minimum.reduce(list(model.limits(threads, registers, shared).values())))
            per_unit = np.where(per_unit > at_once, per_unit / at_once, per_unit)
        whole = per_unit / np.ceil(np.maximum(per_unit, 1e-9))
        filled[at] = np.where(np.isnan(per_unit) | ((per_unit > 1) & (whole > _LAST_WAVE)), 1, whole)
        occupancy[at] = np.where(np.isnan(achieved) | (achieved <= 0), 1, achieved)
    return filled, occupancy, count


RULE = Rule("gpu.occupancy", "A kernel fills a part of the GPU", run)
