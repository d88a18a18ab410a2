"""Sentences about the mesh of a job, the bubbles of its pipelines, and its experts."""

from __future__ import annotations

from strobe.model.units import format_number_of, format_share
from strobe.ranks.mesh.dimensions import mesh
from strobe.ranks.mesh.experts import exchanges
from strobe.ranks.mesh.pipelines import BUBBLE_SHARE, COMPUTING, SYNC, Pipeline, pipelines
from strobe.trace.trace import Trace

NO_MESH = "no groups of ranks communicate in this trace (torch.distributed, NCCL, MPI)"
NO_PIPELINE = (
    "no pipeline in this trace: in no group do messages connect each rank with two others at most, and the steps of all"
    " its ranks must be known"
)
NO_EXCHANGE = "no all-to-all in this trace is followed by one that brings back, on every rank, what it brought"
_SLOWEST = 1.05  # times the mean of the stages: a stage that computes less is as fast as the others


def of_mesh(trace: Trace) -> str:
    """Return a sentence about the dimensions of a job: their kinds and sizes."""
    found = mesh(trace)
    known = [each for each in found.dimensions if each.kind]
    if not known:
        return ""
    named = (
        f"{each.kind} {len(each.groups)} x {each.size}" + (f" ({each.name})" if each.name else "") for each in known
    )
    return f"{format_number_of(len(found.ranks), 'rank')}: groups x ranks: " + ", ".join(named)


def of_pipelines(trace: Trace) -> str:
    """Return a sentence about the pipelines of a job: what of the time is bubble, and why; the slowest stage."""
    found = [each for each in pipelines(trace) if each.steady.any()]
    if not found:
        return ""
    whole = sum(len(each.ranks) * int(each.duration_ns[each.steady].sum()) for each in found)
    bubble = sum(int(each.bubble_ns[each.steady].sum()) for each in found)
    schedule, imbalance = (
        sum(float(getattr(each, name)[each.steady].sum()) for each in found) for name in ("schedule_ns", "imbalance_ns")
    )
    text = (
        f"{format_share(bubble / whole)} of the ranks' time is bubble: {format_share(schedule / whole)} because of the"
        f" schedule{_formula(found[0])}, {format_share(imbalance / whole)} because stages are uneven"
    )
    rest = bubble - schedule - imbalance
    if rest > 0:
        text += f", {format_share(rest / whole)} for messages and other waits"
    sync = sum(int(each.times_ns[:, each.steady, SYNC].sum()) for each in found)
    if sync >= BUBBLE_SHARE * whole:
        text += f"; they wait {format_share(sync / whole)} more for replicas or in other groups"
    return "; ".join(filter(None, (text, slowest_stage(found[0]))))


def slowest_stage(found: Pipeline) -> str:
    """Return a part of a sentence about the stage that computes longest, "" where stages are even."""
    computing = found.times_ns[:, found.steady, COMPUTING].sum(axis=1)
    stage, mean = found.slowest, float(computing.mean())
    if computing[stage] < _SLOWEST * mean:
        return ""
    more = format_share(computing[stage] / mean - 1)
    return f"stage {stage} (rank {found.ranks[stage]}) is the slowest: it computes {more} longer than the mean stage"


def _formula(found: Pipeline) -> str:
    """Return how much the schedule costs by the rule, of the computation: (p - 1) / (v m); "" where m is unknown."""
    if found.microbatches is None or found.chunks is None:
        return ""
    stages = f"{len(found.ranks)} stages" if found.chunks == 1 else f"{len(found.ranks)} ranks of {found.chunks} stages"
    return f" ({stages}, {found.microbatches} microbatch{'es' * (found.microbatches > 1)})"


def of_experts(trace: Trace) -> str:
    """Return a sentence about uneven experts: which rank has most work, and whether that changes."""
    found = [each for each in exchanges(trace) if each.steady.any()]
    if not found:
        return ""
    each = max(found, key=lambda one: one.imbalance_in_total)
    share = format_share(float(each.imbalance_by_step.mean()))
    text = f"experts: the time between dispatch and combine has an imbalance of {share} (1 - mean / max of a step)"
    if each.hot is not None:
        times = format_number_of(int((each.busiest == each.ranks.index(each.hot)).sum()), "step")
        return f"{text}; rank {each.hot} computes longest in {times} of {len(each.busiest)}"
    return f"{text}; the rank that computes longest changes from step to step"
