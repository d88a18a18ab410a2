"""Statistics: what remains of the steps that were folded while the program ran, and of calls that were too short."""

from __future__ import annotations

import pyarrow as pa

from strobe.analyses.steps.statistics import ANALYSIS
from strobe.steps.steps import class_label
from strobe.tables.table import Table, make_table
from strobe.trace.folded import NO_CLASS
from strobe.trace.trace import Trace


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.steps.statistics`."""
    tables = []
    for process, folded in trace.folded.items():
        label = class_label(trace, process)
        values = {
            **vars(folded),
            "class": [None if each == NO_CLASS else label(each) for each in folded.class_id.tolist()],
            "self_ns": folded.own_ns,
            "histogram": folded.histogram.tolist(),
            "short": folded.is_short,
        }
        tables.append(make_table(ANALYSIS.columns, values, source="statistics").to_arrow())
    if not tables:
        return make_table(ANALYSIS.columns, [], note="everything was kept in detail", source="statistics")
    return Table(pa.concat_tables(tables))
