"""The mesh of a distributed training: what each dimension of its groups is for, bubbles of pipelines, hot experts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.ranks.mesh import ANALYSIS
from strobe.ranks.mesh.dimensions import mesh
from strobe.ranks.mesh.experts import exchanges
from strobe.ranks.mesh.in_words import NO_EXCHANGE, NO_MESH, NO_PIPELINE, of_experts, of_mesh, of_pipelines
from strobe.ranks.mesh.pipelines import STAGE_TIMES, pipelines
from strobe.ranks.mesh.traffic import dimension_traffic
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_Row = Mapping[str, object]


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.mesh`."""
    rows = [*_ROWS[by](trace)]
    sentences = {
        "dimension": (of_mesh, of_pipelines, of_experts),
        "rank": (of_mesh,),
        "expert": (of_experts,),
    }.get(by, (of_pipelines,))
    nothing = {"expert": NO_EXCHANGE, "stage": NO_PIPELINE, "step": NO_PIPELINE}.get(by, NO_MESH)
    note = "; ".join(filter(None, (sentence(trace) for sentence in sentences))) if rows else nothing
    return make_table(ANALYSIS.columns_with(by=by), rows, note=note)


def _by_dimension(trace: Trace) -> Iterator[_Row]:
    for each in dimension_traffic(trace):
        dimension = each.dimension
        yield {
            **vars(each),
            "dimension": dimension.title,
            "kind": dimension.kind or None,
            "source": dimension.source or None,
            "also": ", ".join(dimension.also) or None,
            "groups": len(dimension.groups),
            "size": dimension.size,
            "ranks": json.dumps(dimension.groups),
        }


def _by_rank(trace: Trace) -> Iterator[_Row]:
    found = mesh(trace)
    for rank in found.ranks:
        for dimension in found.dimensions:
            group = next((each for each in dimension.groups if rank in each), None)
            if group is not None:
                yield {
                    "rank": rank,
                    "dimension": dimension.title,
                    "kind": dimension.kind or None,
                    "coordinate": dimension.place(rank),
                    "group_ranks": json.dumps(group),
                }


def _by_stage(trace: Trace) -> Iterator[_Row]:
    for number, each in enumerate(pipelines(trace)):
        steps = int(each.steady.sum())
        for stage, rank in enumerate(each.ranks):
            of_step = each.times_ns[stage, each.steady].sum(axis=0) / max(1, steps)
            yield {"pipeline": number, "stage": stage, "rank": rank, "steps": steps, **_stage_cells(of_step.tolist())}


def _by_step(trace: Trace) -> Iterator[_Row]:
    for number, each in enumerate(pipelines(trace)):
        for at, step in enumerate(each.step.tolist()):
            for stage, rank in enumerate(each.ranks):
                cells = _stage_cells(each.times_ns[stage, at].tolist())
                yield {"pipeline": number, "stage": stage, "rank": rank, "step": step, **cells}


def _stage_cells(times_ns: list[float]) -> dict[str, float]:
    named = {f"{name}_ns": float(ns) for name, ns in zip(STAGE_TIMES, times_ns, strict=True)}
    return {**named, "step_ns": float(sum(times_ns))}


def _by_expert(trace: Trace) -> Iterator[_Row]:
    for each in exchanges(trace):
        steps, busiest = int(each.steady.sum()), np.bincount(each.busiest, minlength=len(each.ranks))
        for row, rank in enumerate(each.ranks):
            means = {
                name: float(getattr(each, name)[row, each.steady].sum() / max(1, steps))
                for name in ("received_bytes", "expert_ns", "wait_ns")
            }
            yield {
                "rank": rank,
                "dimension": each.dimension.title,
                "kind": each.dimension.kind or None,
                "steps": steps,
                "busiest": int(busiest[row]),
                **means,
            }


_ROWS = {
    "dimension": _by_dimension,
    "rank": _by_rank,
    "stage": _by_stage,
    "step": _by_step,
    "expert": _by_expert,
}
