"""Statistics: what remains of the steps that were folded while the program ran, and of calls that were too short."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace) -> Table:
    """List the sums over what was folded, by location, call path and class of steps; see schema `statistics`.

    Spans and statistics together are everything that ran: `strobe sql` sees both as `totals`.
    """
    import numpy as np
    import pyarrow as pa

    from strobe.store.folded import NO_CLASS
    from strobe.store.table import Table, make_table
    from strobe.structure.records import class_labels

    tables = []
    for process, folded in trace.folded.items():
        names = class_labels(trace, process)
        values = {
            "location": folded.location.astype(np.uint32),
            "call_path": folded.call_path.astype(np.uint32),
            "class": [None if each == NO_CLASS else names[each] for each in folded.class_id.tolist()],
            "count": folded.count.astype(np.uint64),
            "total_ns": folded.total_ns,
            "self_ns": folded.own_ns,
            "min_ns": folded.min_ns,
            "max_ns": folded.max_ns,
            "sum_squares": folded.sum_squares,
            "histogram": folded.histogram.tolist(),
            "short": folded.is_short,
        }
        tables.append(make_table("statistics", values, source="statistics").to_arrow())
    if not tables:
        return make_table("statistics", [], note="everything was kept in detail", source="statistics")
    return Table(pa.concat_tables(tables), name="statistics")


ANALYSIS = Analysis("statistics", "What remains of what was not kept in detail?", run, needs=("spans",))
