"""The flat profile of a time range: what ran in it, how often, and for how long by itself; over all locations."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from strobe.model.schema import Column
from strobe.server.routing.endpoints import MB, TIME_RANGE, route
from strobe.server.time_range.range_sums import CUT, MEANWHILE, summed
from strobe.server.trace_context import TraceContext
from strobe.tables.table import make_table

MOST_ROWS = 5000
_TITLES = {"data_wait": "data", CUT: "steps cut by the edge", MEANWHILE: "other threads and processes"}
COLUMNS = (
    Column("name", "string", "", "name of the region"),
    Column("group", "string", "", "what it is drawn and summed as"),
    Column("executions", "int64", "", "executions that begin in the time range"),
    Column("exclusive_ns", "int64", "ns", "time in it without what it called, inside the time range"),
    Column("share", "float64", "", "the same as a part of all exclusive time, 0 to 1"),
    Column("mean_ns", "float64", "ns", "exclusive time by executions that begin"),
)


@route("window/profile", *TIME_RANGE, columns=COLUMNS, most_bytes=16 * MB)
def flat_profile(context: TraceContext, start_ns: int, end_ns: int) -> pa.Table:
    """The flat profile of a time range: what ran in it, how often, for how long by itself; over all locations.

    The names with most exclusive time in [start_ns, end_ns) come first; there are at most `MOST_ROWS` of them. Times of
    folded steps of which it is not known what they called are rows without executions. Metadata: `rows` of the whole
    table, and `about`.
    """
    sums = summed(context, start_ns, end_ns)
    regions = np.flatnonzero((sums.count > 0) | (sums.own > 0))
    names, groups = context.names.names, context.names.groups
    executions, own_ns = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for region in regions.tolist():
        key = names[region], groups[region]
        executions[key] += int(sums.count[region])
        own_ns[key] += int(sums.own[region])
    rows: list[tuple[str, str, int | None, int]] = [(*key, count, own_ns[key]) for key, count in executions.items()]
    rows += [(f"folded steps: {_TITLES.get(name, name)}", "other", None, ns) for name, ns in sums.folded.items()]
    rows.sort(key=lambda row: (-row[3], row[0]))
    whole = max(1, sum(row[3] for row in rows))
    table = make_table(
        COLUMNS,
        [(*row, row[3] / whole, row[3] / row[2] if row[2] else None) for row in rows[:MOST_ROWS]],
        name="flat_profile",
    ).to_arrow()
    metadata = {"rows": str(len(rows)), "about": _about(sums.folded_steps, sums.counted_steps)}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})


def _about(folded_steps: int, counted_steps: int) -> str:
    if folded_steps:
        return f"from spans; of {folded_steps} folded steps only the time is known"
    return f"exact, with the statistics of {counted_steps} folded steps" if counted_steps else "exact"
