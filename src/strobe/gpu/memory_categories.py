"""What blocks of memory are for: the categories of PyTorch's memory profiler, by who allocated a block and its life.

PyTorch follows tensors from operator to operator (torch/profiler/_memory_profiler.py). Files have stacks or operators
instead: a block is a gradient because it was allocated in the backward pass and outlived it.
"""

from __future__ import annotations

import re

import numpy as np

from strobe.gpu.block_lifetimes import NEVER, in_use
from strobe.gpu.memory import Curve
from strobe.gpu.memory_blocks import MemoryBlocks, PoolBlocks, memory_blocks
from strobe.steps.thread_spans import innermost
from strobe.tables.column_arrays import Bools, Ints, interval_at
from strobe.trace.definition_rows import Region, location_rows, path_tree, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Numbered by their place. The names of formats/pytorch/memory_timeline.py, and `workspace`, which PyTorch lacks.
CATEGORIES = (
    *("parameters", "gradients", "optimizer state", "activations", "inputs", "autograd details", "temporary"),
    *("workspace", "unknown"),
)
(PARAMETERS, GRADIENTS, OPTIMIZER_STATE, ACTIVATIONS, INPUTS, AUTOGRAD_DETAILS, TEMPORARY, WORKSPACE, UNKNOWN) = range(
    len(CATEGORIES)
)
# Names in files that have categories: `Category` of PyTorch, in small letters.
_GIVEN = {
    "parameter": PARAMETERS,
    "gradient": GRADIENTS,
    "optimizer state": OPTIMIZER_STATE,
    "activation": ACTIVATIONS,
    "input": INPUTS,
    "autograd detail": AUTOGRAD_DETAILS,
    "temporary": TEMPORARY,
}
# What a program is doing. Of all regions around an allocation, the last in this order counts: a backward pass may
# recompute a forward one, an optimizer may run both.
_NOTHING, _DATA, _SET_UP, _FORWARD, _OPTIMIZER, _BACKWARD, _WORKSPACE = range(7)
_BY_NAME = (
    (_WORKSPACE, r"CUDABlasHandle|[cC]ublas(Lt)?Workspace|CUDABlasLtWorkspace|ChosenWorkspaceSize"),
    (_BACKWARD, r"^autograd::engine::evaluate_function|Backward\d+$|torch::autograd::(Engine|AccumulateGrad)\b"),
    (_BACKWARD, r"^_engine_run_backward$"),
    (_OPTIMIZER, r"^Optimizer\.step#"),
    (_FORWARD, r"^nn\.Module: "),
    (_DATA, r"^enumerate\(DataLoader\)#|torch::autograd::(THPVariable_(to|cuda)|dispatch_to)\b"),
)
_BY_PLACE = (  # of a function of Python: names, files
    (
        _OPTIMIZER,
        r"^(?!__init__$|zero_grad$|add_param_group$|load_state_dict$)",
        r"torch[/\\]optim[/\\](?!lr_scheduler)",
    ),
    (_FORWARD, r"^(Module\.)?_(wrapped_)?call_impl$", r"torch[/\\]nn[/\\]modules[/\\]module\.py$"),
    (_SET_UP, r"(^|\.)(__init__|_apply|reset_parameters|load_state_dict)$", r"torch[/\\]nn[/\\]"),
    (_DATA, r"", r"torch[/\\]utils[/\\]data[/\\]"),
)
_NAMES = [(phase, re.compile(pattern)) for phase, pattern in _BY_NAME]
_PLACES = [(phase, re.compile(name), re.compile(file)) for phase, name, file in _BY_PLACE]
_COPIES = re.compile(r"^aten::(to|_to_copy|copy_)$")


def categories(trace: Trace, pool: PoolBlocks) -> Ints:
    """Return the category of each block, as its place in CATEGORIES: the file's own, else by its call path and life."""
    blocks = pool.blocks
    if (blocks.given >= 0).any():
        numbers = [*(_GIVEN.get(word, UNKNOWN) for word in pool.words.texts), UNKNOWN]
        return np.array(numbers, dtype=np.int64)[blocks.given]
    return _by_phase(trace, blocks, pool.pool.gpu is not None)


def category_levels(trace: Trace, curve: Curve, shown: Ints) -> dict[str, Ints] | None:
    """Return the bytes of each category after some changes of a curve; None where its blocks are not known.

    All but `cache` (reserved, but not active) add up to what is allocated: `unknown` has what no block accounts for.
    """
    if curve.memory in CATEGORIES:  # a file of sums by category
        return {curve.memory: curve.allocated[shown]}
    pool = next((e for e in memory_blocks(trace) if (e.process, e.pool) == (curve.process, curve.pool)), None)
    if pool is None:
        return None
    blocks, of_block = pool.blocks, categories(trace, pool)
    levels = np.zeros((len(CATEGORIES), len(shown)), dtype=np.int64)
    for category in np.unique(of_block).tolist():
        own = blocks.chosen(of_block == category)
        levels[category] = in_use(own.begin, own.end, own.size, len(curve.time_ns))[shown]
    levels[UNKNOWN] += curve.allocated[shown] - levels.sum(axis=0)
    found = {name: level for name, level in zip(CATEGORIES, levels, strict=True) if level.any()}
    reserved, active = curve.reserved[shown], curve.active[shown]
    if (reserved >= 0).all() and (active >= 0).all():
        found["cache"] = reserved - active
    return found


def _by_phase(trace: Trace, blocks: MemoryBlocks, on_gpu: bool) -> Ints:
    phase = np.append(_phase_of_paths(trace), _NOTHING)[blocks.path]
    alone = on_gpu & np.append(_copies(trace), False)[blocks.path] & (phase == _NOTHING)
    phase = np.where(alone, _DATA, phase)
    call_end, phase_end = _ends(trace, blocks, phase)
    in_call = (blocks.end_ns <= call_end) & (blocks.end_ns != NEVER)
    outlives = blocks.end_ns > phase_end
    saved = (phase == _NOTHING) & _freed_in_backward(blocks, phase, phase_end)
    found = np.full(len(blocks), UNKNOWN, dtype=np.int64)
    for which, category in (
        (phase == _DATA, INPUTS),
        (phase == _SET_UP, PARAMETERS),
        ((phase == _FORWARD) | saved, ACTIVATIONS),
        ((phase == _OPTIMIZER) & outlives, OPTIMIZER_STATE),
        ((phase == _BACKWARD) & outlives, GRADIENTS),
        ((phase == _BACKWARD) & ~outlives, AUTOGRAD_DETAILS),
        (((phase == _OPTIMIZER) & ~outlives) | in_call, TEMPORARY),
        (phase == _WORKSPACE, WORKSPACE),
    ):
        found[which] = category
    return found


@cached_on_trace
def _phase_of_regions(trace: Trace) -> Ints:
    return np.array([_phase_of(region) for region in region_rows(trace)], dtype=np.int64)


def _phase_of(region: Region) -> int:
    named = (phase for phase, name in _NAMES if name.search(region.name))
    placed = (phase for phase, name, file in _PLACES if file.search(region.file) and name.search(region.name))
    return max((*named, *placed), default=_NOTHING)


@cached_on_trace
def _phase_of_paths(trace: Trace) -> Ints:
    parent, region = path_tree(trace)
    phase: Ints = _phase_of_regions(trace)[region]
    at = parent.copy()
    while len(left := np.flatnonzero(at >= 0)):
        phase[left] = np.maximum(phase[left], phase[at[left]])
        at[left] = parent[at[left]]
    return phase


def _copies(trace: Trace) -> Bools:
    """Return by call path whether it copies a tensor."""
    parent, region = path_tree(trace)
    copies = np.array([bool(_COPIES.search(each.name)) for each in region_rows(trace)], dtype=bool)
    return innermost(parent, copies[region]) >= 0


def _ends(trace: Trace, blocks: MemoryBlocks, phase: Ints) -> tuple[Ints, Ints]:
    """Return when the outermost operator ended that allocated each block, and when its phase did."""
    counts = [each.span_count for each in location_rows(trace)]
    call_end, phase_end = np.full(len(blocks), -1), np.full(len(blocks), NEVER)
    timed = np.array([*(count > 0 for count in counts), False])[blocks.location]
    for location in np.unique(blocks.location[timed]).tolist():
        rows = np.flatnonzero(blocks.location == location)
        call_end[rows], phase_end[rows] = _ends_of_spans(trace, location, blocks.begin_ns[rows], phase[rows])
    rows = np.flatnonzero(~timed & ~blocks.earlier)
    if len(rows):
        call_end[rows], phase_end[rows] = _ends_of_stacks(trace, blocks.chosen(rows), phase[rows])
        # The last call of an optimizer ends with its annotation, whatever follows.
        last = rows[(phase_end[rows] == NEVER) & (phase[rows] == _OPTIMIZER)]
        phase_end[last] = _annotated_end(trace, blocks.begin_ns[last])
    return call_end, phase_end


def _ends_of_spans(trace: Trace, location: int, begin_ns: Ints, phase: Ints) -> tuple[Ints, Ints]:
    spans = trace.span_arrays(location)
    start, end = spans["start_ns"], spans["start_ns"] + spans["duration_ns"]
    path, region = spans["call_path"].astype(np.int64), spans["region"].astype(np.int64)
    operator = _computes(trace)[region]
    (outer,) = np.nonzero(operator & ~_within(trace, path))
    at = np.searchsorted(start[outer], begin_ns, "right") - 1
    ends = np.append(end[outer], -1)
    call_end = np.where(ends[at] >= begin_ns, ends[at], -1)
    phase_end = np.full(len(begin_ns), NEVER)
    of_path = _phase_of_paths(trace)[path]
    for one in (_OPTIMIZER, _BACKWARD):
        here = np.flatnonzero(phase == one)
        (inside,) = np.nonzero(of_path == one)
        if not len(here) or not len(inside):
            continue
        others = start[operator & (of_path != one)]
        following = np.append(others, NEVER)[np.searchsorted(others, begin_ns[here], "right")]
        latest = np.maximum.accumulate(end[inside])
        phase_end[here] = latest[np.searchsorted(start[inside], following) - 1]
    return call_end, phase_end


def _ends_of_stacks(trace: Trace, blocks: MemoryBlocks, phase: Ints) -> tuple[Ints, Ints]:
    """The same where only stacks are known: what allocates next, from another line of Python, is another call."""
    parent, region = path_tree(trace)
    python = np.array([each.paradigm == "python" for each in region_rows(trace)], dtype=bool)
    line = np.append(innermost(parent, python[region]), -1)[blocks.path]
    call_end = np.where(phase == _BACKWARD, -1, _next_other(blocks.begin_ns, line))
    phase_end = _next_other(blocks.begin_ns, phase)
    # Between the last allocation of a backward pass and the next one, gradients may be freed: they outlived it.
    last = np.append(phase[1:] != phase[:-1], True)
    latest = np.where(last, np.arange(len(phase)), len(phase))
    latest = np.minimum.accumulate(latest[::-1])[::-1]
    return call_end, np.where(phase == _BACKWARD, blocks.begin_ns[latest], phase_end)


def _annotated_end(trace: Trace, begin_ns: Ints) -> Ints:
    """Return when the optimizer's range ends in which each moment lies, NEVER outside of all of them."""
    phases, found = _phase_of_regions(trace), np.full(len(begin_ns), NEVER)
    for number, each in enumerate(location_rows(trace)):
        if each.span_count and len(begin_ns):
            spans = trace.span_arrays(number)
            own = np.flatnonzero(phases[spans["region"]] == _OPTIMIZER)
            start, length = spans["start_ns"][own], spans["duration_ns"][own]
            at = interval_at(start, start + length, begin_ns)
            found = np.where(at >= 0, np.append(start + length, NEVER)[at], found)
    return found


def _next_other(begin_ns: Ints, value: Ints) -> Ints:
    """Return when the next block with another value is allocated."""
    changes = np.append(np.flatnonzero(value[1:] != value[:-1]) + 1, len(value))
    following: Ints = np.append(begin_ns, NEVER)[changes[np.searchsorted(changes, np.arange(len(value)), "right")]]
    return following


def _freed_in_backward(blocks: MemoryBlocks, phase: Ints, phase_end: Ints) -> Bools:
    """Return which blocks a backward pass freed."""
    (backward,) = np.nonzero(phase == _BACKWARD)
    if not len(backward):
        return np.zeros(len(blocks), dtype=bool)
    begin, until = blocks.begin_ns[backward], np.maximum.accumulate(phase_end[backward])
    at = np.searchsorted(begin, blocks.end_ns, "right") - 1
    freed: Bools = (at >= 0) & (blocks.end_ns <= until[at]) & (blocks.end_ns != NEVER)
    return freed & (blocks.begin_ns < begin[np.maximum(at, 0)])


@cached_on_trace
def _computes(trace: Trace) -> Bools:
    """Return by region whether it is an operator, or a node of the backward pass; not the engine that runs nodes."""
    return np.array(
        [
            (each.role == "operator" and not each.name.startswith("autograd::"))
            or (each.paradigm == "torch" and bool(re.search(r"Backward\d+$", each.name)))
            for each in region_rows(trace)
        ],
        dtype=bool,
    )


def _within(trace: Trace, path: Ints) -> Bools:
    """Return which call paths lie in an operator."""
    parent, region = path_tree(trace)
    computes = innermost(parent, _computes(trace)[region]) >= 0
    inside: Bools = np.append(computes, False)[parent][path]
    return inside
