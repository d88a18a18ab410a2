"""Who allocated the memory that is in use at its peak, as a tree of call paths: bytes in place of times."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from strobe.gpu.memory import curves
from strobe.gpu.memory_blocks import memory_blocks
from strobe.model.units import format_bytes, format_ns
from strobe.server.routing.endpoints import MB, route
from strobe.server.run.call_tree import COLUMNS, TreeAbout, named
from strobe.server.trace_context import TraceContext


@route("memory_tree", columns=COLUMNS, about=TreeAbout, most_bytes=64 * MB, slow=True)
def memory_tree(context: TraceContext) -> pa.Table:
    """Who allocated what is in use at the peak, of the memory that has most in use."""
    parent, region = context.call_path_arrays
    own, count = np.zeros(len(parent), dtype=np.int64), np.zeros(len(parent), dtype=np.int64)
    about: TreeAbout = {"about": "No block of memory is known", "note": "", "nodes": 0, "unit": "bytes"}
    pools = memory_blocks(context.trace)
    of_curve = [
        (c, p.blocks) for c in curves(context.trace) for p in pools if (c.process, c.pool) == (p.process, p.pool)
    ]
    if of_curve:
        curve, blocks = max(of_curve, key=lambda each: int(each[0].allocated.max()))
        peak = int(curve.allocated.argmax())
        alive = blocks.chosen((blocks.begin <= peak) & (blocks.end > peak) & (blocks.path >= 0))
        np.add.at(own, alive.path, alive.size)
        np.add.at(count, alive.path, 1)
        where = curve.memory if curve.device is None else f"GPU {curve.device}"
        about["about"] = f"{where} at its peak, after {format_ns(int(curve.time_ns[peak]))}"
        missing = int(curve.allocated[peak]) - int(own.sum())
        about["note"] = f"Who allocated {format_bytes(missing)} more is not known" if missing > 0 else ""
    total = own.copy()
    for level in context.call_path_levels:
        below = level[parent[level] >= 0]
        np.add.at(total, parent[below], total[below])
    kept = np.flatnonzero(total > 0)
    about["nodes"] = len(kept)
    place = np.full(len(parent) + 1, -1, dtype=np.int64)  # the last one: of -1
    place[kept] = np.arange(len(kept))
    nothing = np.zeros(len(kept), dtype=np.int64)
    table = named(context, region[kept], {
        "parent": place[parent[kept]].astype(np.int32),
        "call_path": kept.astype(np.int32),
        "device": nothing.astype(np.uint8),
        "calls": count[kept],
        "total_ns": total[kept],
        "self_ns": own[kept],
        "gpu_ns": nothing,
    })  # fmt: skip
    return table.replace_schema_metadata({"about": json.dumps(about)})
