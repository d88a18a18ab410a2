"""What the page asks about boxes of threads that were only sampled: those in a window, with names; facts about one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from strobe.server.pictures.cell_tiles import RegionNames
from strobe.server.spans.span_tables import span_table
from strobe.server.trace_context import TraceContext
from strobe.trace.spans import SpanArrays, chosen_spans


def boxes_in(context: TraceContext, location: int, start_ns: int, end_ns: int) -> SpanArrays:
    """Return the boxes of a location that overlap [start_ns, end_ns)."""
    spans = context.boxes(location).spans
    return chosen_spans(spans, (spans["start_ns"] < end_ns) & (spans["start_ns"] + spans["duration_ns"] > start_ns))


def named_boxes(context: TraceContext, spans: SpanArrays) -> pa.Table:
    """Return boxes as SPAN_COLUMNS has them."""
    used, row = np.unique(spans["region"], return_inverse=True)
    labels = [context.sampled.label(region) for region in used.tolist()]
    texts = {"name": [label.name for label in labels], "group": [label.group for label in labels]}
    rows = pa.array(row.ravel().astype(np.int32))
    return span_table(
        spans,
        {name: pa.DictionaryArray.from_arrays(rows, pa.array(each, pa.string())) for name, each in texts.items()},
    )


def drawn_names(context: TraceContext) -> RegionNames:
    """Return names and groups of the regions, and behind them of the labels of boxes."""
    labels = context.sampled.labels
    if not labels:
        return context.names
    names, groups = context.names.names, context.names.groups
    return RegionNames([*names, *(label.name for label in labels)], [*groups, *(label.group for label in labels)])
