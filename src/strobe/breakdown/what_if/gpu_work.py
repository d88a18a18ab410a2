"""What if? The work of a GPU in half the precision, and kernels that become one."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import translate

import numpy as np

from strobe.breakdown.gpu_problems import WELL, Problems, chains, gpu_problems
from strobe.breakdown.gpu_step import GpuStep
from strobe.breakdown.what_if.changes import Change, unknown
from strobe.gpu.nvidia.peaks import TF32
from strobe.gpu.work import Work
from strobe.operators.flops import Product, is_product
from strobe.operators.matrix_product_merging import independent
from strobe.ranks.critical_path.longest_path import COMPUTATION, HOST, LAUNCH, QUEUE, Edges, Graph
from strobe.steps.step_times import step_of_process
from strobe.tables.column_arrays import Bools, Floats, Ints, place_of, rows_by
from strobe.trace.trace import Trace

_ELEMENTS = re.compile(r"elementwise", re.I)
_UNKNOWN_GPU = "the peaks of its GPU are unknown"
# What reads and writes elements, in the type of its operands.
_BY_BYTES = ("elementwise", "reduction", "contiguous", "concatenation", "layout", "attention", "inefficient")
_HALVES = re.compile(r"half|bf16|bfloat16|f16|fp16|hmma|h884|h1688|h16816", re.I)
_GOOD = 0.8  # of what computing or moving takes at the peak: few kernels come closer
_BETWEEN = 4  # kernels between products that are merged: sums, casts
_FLOAT = re.compile(r"\bfloat\b")


def half(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    """Compute in bfloat16 (in float16 where the GPU has no peak for it) what computes in float32.

    Products and convolutions reach at best _GOOD of their roofline, at worst WELL of it; where their shapes are unknown
    they take the peaks' part of their time, at worst twice that, or half of it for half of the bytes. Other kernels
    take half of their time for half of the bytes, or what they take now, if they stay in float32 (as autocast has it).
    Optimizers stay as they are.
    """
    found = _problems(trace)
    step = found.step
    faster = next((each for each in ("bfloat16", "float16") if found.peak_gflops(each)), "")
    if not faster or not found.peak_gflops("float32"):
        raise unknown(_UNKNOWN_GPU)
    single = np.array([each.dtype == "float32" for each in found.kinds])[found.kind]
    untyped = np.array([not each.dtype for each in found.kinds])[found.kind]
    is_half = step.named(_HALVES)
    products = found.of("fp32", "misaligned", "product", "attention", "inefficient") & ~step.named(_ELEMENTS)
    products &= np.array([is_product(each.operator) or not each.operator for each in found.kinds])[found.kind]
    products &= (single | found.of("fp32") | (untyped & step.named(TF32))) & ~is_half
    others = (found.of(*_BY_BYTES) & (single | (untyped & step.named(_FLOAT)))) | (found.of("other") & single)
    others &= ~products & ~is_half
    if not products.any() and not others.any():
        raise unknown("nothing on its GPU computes in float32")
    took = found.took_ns(products).astype(np.float64)
    needs = np.array([found.least_ns(each, faster) for each in found.kinds])[found.kind]
    needs = np.divide(needs, took, out=np.zeros(len(took)), where=took > 0)
    now = np.where(step.named(TF32), found.peak_gflops("tf32"), found.peak_gflops("float32"))
    ratio = now / found.peak_gflops(faster)
    best = np.where(products, np.minimum(1, np.where(needs > 0, needs / _GOOD, ratio)), np.where(others, 0.5, 1.0))
    worst = np.where(products, np.minimum(1, np.where(needs > 0, needs / WELL, np.maximum(2 * ratio, 0.5))), 1.0)
    _multiply(graph.edges, both, step, best, worst)


def fuse(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    """Make one kernel of each chain of elementwise kernels (and reductions) that a pattern matches.

    Memory limits them: at best one takes as long as the longest of its chain, at worst the others still take half of
    their time, where results in between are needed later. All launches but the first of a chain are gone.
    """
    found = _problems(trace)
    chain, length = chains(found, _matching(found.step, change.pattern))
    if not len(length):
        raise unknown(f"no elementwise kernels that '{change.pattern}' matches follow each other")
    took, longest = _took(found.step), np.zeros(len(length))
    np.maximum.at(longest, chain[chain >= 0], took[chain >= 0])
    total = np.bincount(chain[chain >= 0], took[chain >= 0])
    _as_one(graph.edges, both, found.step, chain, longest / total, (longest + total) / 2 / total)


def merge(trace: Trace, graph: Graph, change: Change, both: list[Floats]) -> None:
    """Make one of equal products that follow each other, if a pattern matches them.

    At best it takes its roofline, with the largest operand or result once for all; at worst what all of them take now.
    All launches but the first are gone.
    """
    found = _problems(trace)
    step = found.step
    own = _matching(step, change.pattern) & step.wanted
    own &= np.array([each.product is not None for each in found.kinds])[found.kind]
    group, counts = _equal(found, own)
    if not len(counts):
        raise unknown(f"no equal products that '{change.pattern}' matches, and whose shapes it has, follow each other")
    took, best = _took(step), np.ones(len(counts))
    for number, at in rows_by(group):
        if number >= 0:
            kind = found.kind_of(int(at[0]))
            assert kind.product is not None
            count, total = int(counts[number]), float(took[at].sum())
            least = found.least_ns(kind._replace(product=_merged(kind.product, count)))
            if not least:
                raise unknown(_UNKNOWN_GPU)
            best[number] = min(1.0, least / total)
    _as_one(graph.edges, both, step, group, best, np.ones(len(counts)))


def _merged(p: Product, count: int) -> Product:
    """Return so many equal products as one, whose left or right operand they share, or whose results are added up."""
    left, right, result = p.batch * p.m * p.k, p.batch * p.k * p.n, p.result_elements
    elements = count * (left + right + result) - (count - 1) * max(left, right, result)
    return replace(p, flop=count * p.flop, elements=elements)


def _problems(trace: Trace) -> Problems:
    found = gpu_problems(trace)
    if found is None:
        raise unknown("it has no work of a GPU")
    return found


def _took(step: GpuStep) -> Floats:
    return (step.work.end_ns - step.work.start_ns).astype(np.float64)


def _matching(step: GpuStep, pattern: str) -> Bools:
    """Return which activities have a name that a pattern matches, or were launched inside of such a region."""
    whole = re.compile(rf"\A{translate(pattern)}")
    return step.named(whole) | step.under(whole)


def _equal(found: Problems, own: Bools) -> tuple[Ints, Ints]:
    """Return the group of each of these activities, -1 without one, and how many operators each group has.

    A group: operators of one kind in a step and on a stream, with at most _BETWEEN other activities in between; with
    none where one may need the result of another.
    """
    step = found.step
    group, counts = np.full(len(step.work), -1, dtype=np.int64), list[int]()
    of_step = step_of_process(step.trace, step.device.process, step.call.start_ns)
    for location in np.unique(step.work.location[own]).tolist():
        at = np.flatnonzero(step.work.location == location)
        for number, places in rows_by(np.where(own[at], found.kind[at], -1)):
            shape = found.kinds[number].product if number >= 0 else None
            if shape is None:
                continue
            apart = np.diff(places) > (1 + _BETWEEN if independent(shape) else 1)
            apart |= np.diff(of_step[at[places]]) != 0
            for each in np.split(at[places], np.flatnonzero(apart) + 1):
                if (operators := len(np.unique(step.operator.row[each]))) > 1:
                    group[each] = len(counts)
                    counts.append(operators)
    return group, np.array(counts, dtype=np.int64)


def _multiply(edges: Edges, both: list[Floats], step: GpuStep, best: Floats, worst: Floats) -> None:
    """Multiply the times of activities: each by its factors, those of other GPUs by the means of their kernel."""
    at = _places(edges, step.work)
    work = edges.kind == COMPUTATION
    for weights, factor in zip(both, (best, worst), strict=True):
        regions, took = step.work.region, _took(step)
        total = np.bincount(regions, took, minlength=len(step.names))
        mean = np.divide(np.bincount(regions, took * factor, minlength=len(total)), total, where=total > 0,
                         out=np.ones(len(total)))  # fmt: skip
        weights[work] *= np.where(at >= 0, np.append(factor, 1.0)[at], mean[edges.region])[work]


def _as_one(edges: Edges, both: list[Floats], step: GpuStep, group: Ints, best: Floats, worst: Floats) -> None:
    """Make one activity of each group, which takes a part of their time; without launches and gaps of all but one."""
    first = np.zeros(len(group), dtype=bool)
    first[np.unique(group, return_index=True)[1]] = True
    later = (group >= 0) & ~first
    at = _places(edges, step.work)
    gone = (edges.kind == QUEUE) & np.append(later, False)[at]
    for host in (step.call, step.operator):
        # A call that launches others, too, stays.
        gone_rows, kept_rows = (_key(host.location[each], host.row[each]) for each in (later, ~later))
        own = np.setdiff1d(gone_rows[gone_rows >= 0], kept_rows)
        gone |= np.isin(edges.kind, (LAUNCH, HOST)) & np.isin(_key(edges.location, edges.row), own)
    for weights, factor in zip(both, (best, worst), strict=True):
        own_factor = np.append(np.where(group >= 0, np.append(factor, 1.0)[group], 1.0), 1.0)
        weights[edges.kind == COMPUTATION] *= own_factor[at][edges.kind == COMPUTATION]
        weights[gone] *= 0


def _places(edges: Edges, work: Work) -> Ints:
    """Return the place of the activity of each edge, -1 where it is of none."""
    keys = _key(work.location.astype(np.int64), work.row)
    order = np.argsort(keys)
    return np.asarray(np.append(order, -1)[place_of(_key(edges.location, edges.row), keys[order])])


def _key(location: Ints, row: Ints) -> Ints:
    return (location << 40) + row
