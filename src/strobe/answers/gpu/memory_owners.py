"""Who owns the memory that is in use at its peak, and whose part of it grows from step to step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.gpu.memory_owners import ANALYSIS
from strobe.gpu.memory import Curve, curves
from strobe.gpu.memory_blocks import PoolBlocks, memory_blocks
from strobe.gpu.out_of_memory import failures
from strobe.gpu.steady_growth import growth_of, parts_between
from strobe.operators.memory_owners import UNKNOWN, levels_at, owners, readings
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_NOTHING = (
    "which blocks were allocated is not known: profiles of PyTorch with profile_memory=True and its memory snapshots"
    " (torch.cuda.memory._dump_snapshot) hold them, and strobe run --trace +cuda+memory records those of CUDA"
)
_NO_FAILURE = "no allocation failed in this recording"


def run(trace: Trace, *, by: str, at: str) -> Table:
    """Return the answer; see `strobe.analyses.gpu.memory_owners`."""
    pools = memory_blocks(trace)
    found = {(each.process, each.pool): each for each in curves(trace)}
    rows = [row for pool in pools for row in _of_pool(trace, pool, found[pool.process, pool.pool], by, at)]
    note = "" if rows else _NO_FAILURE if pools and at == "oom" else _NOTHING
    return make_table(ANALYSIS.columns_with(by=by), rows, about="who owns memory that is in use", note=note)


def _of_pool(trace: Trace, pool: PoolBlocks, curve: Curve, by: str, at: str) -> Iterator[Mapping[str, object]]:
    event = _moment(trace, pool, curve, at)
    if event is None:
        return
    blocks, who = pool.blocks, owners(trace, pool, by)
    alive = (blocks.begin <= event) & (blocks.end > event)
    count = len(who.cells)
    size = np.bincount(who.of_block[alive], blocks.size[alive], count).astype(np.int64)
    number = np.bincount(who.of_block[alive], minlength=count)
    in_use = int(curve.allocated[event]) if event >= 0 else int(curve.allocated[0] - curve.change[0])
    moments, steps = readings(trace, pool)
    growth = growth_of(levels_at(blocks, who.of_block, count, moments)) if len(moments) else None
    place: dict[str, object] = dict.fromkeys(column.name for column in ANALYSIS.columns)
    place |= {"rank": pool.rank, "process": pool.process, "device": pool.pool.gpu, "memory": pool.pool.memory}
    place["time_ns"] = int(curve.time_ns[max(0, event)])
    missing = in_use - int(size.sum())
    for i in np.argsort(-size, kind="stable").tolist():
        if not size[i]:
            continue
        owner, function, category = who.cells[i]
        more = None if growth is None else int(growth.bytes[i])
        yield {
            **place,
            "owner": owner,
            "function": function,
            "category": category,
            "allocated_bytes": int(size[i]),
            "share": size[i] / in_use if in_use else None,
            "blocks": int(number[i]),
            "growth_bytes": more,
            "step_growth_bytes": None if more is None or not steps else more / parts_between(steps),
            "steady": None if growth is None else bool(growth.steady[i]),
        }
    if missing > 0:  # in use before the first event, and never freed
        nobody = {"owner": UNKNOWN, "category": "unknown", "allocated_bytes": missing, "share": missing / in_use}
        yield {**place, **nobody}


def _moment(trace: Trace, pool: PoolBlocks, curve: Curve, at: str) -> int | None:
    """Return the event after which it is, -1: before the first; None where no allocation failed."""
    if at == "end":
        return len(curve.time_ns) - 1
    if at == "oom":
        failed = [each.event for each in failures(trace) if (each.process, each.pool) == (pool.process, pool.pool)]
        return failed[-1] if failed else None
    peak = int(curve.allocated.argmax())
    return peak if curve.allocated[peak] > curve.allocated[0] - curve.change[0] else -1
