"""The spans of a time range as a table to keep: what the page saves as CSV."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from strobe.server.routing.endpoints import LOCATIONS, MB, TIME_RANGE, route
from strobe.server.spans.span_tables import LOCATED_COLUMNS, expected_spans, joined_spans, located_spans
from strobe.server.trace_context import TraceContext
from strobe.trace.spans import chosen_spans

MOST_ROWS = 50_000
_LEFT_OUT = ("region", "complete", "row", "self_ns")
COLUMNS = tuple(column for column in LOCATED_COLUMNS if column.name not in _LEFT_OUT)
# Spans that are read: fuller locations are left out, and the metadata names them.
_MOST_READ = 2_000_000


@route("window/spans", LOCATIONS, *TIME_RANGE, columns=COLUMNS, most_bytes=64 * MB, slow=True)
def visible_spans(context: TraceContext, locations: Sequence[int], start_ns: int, end_ns: int) -> pa.Table:
    """The spans of some locations in a time range, to keep: by location and start.

    At most the `MOST_ROWS` longest. Metadata: `count`, of all; `skipped`, how many of the locations are too full to
    read while one waits.
    """
    parts, count, skipped, read = list[pa.Table](), 0, 0, 0.0
    for location in sorted(set(locations)):
        read += expected_spans(context, location, start_ns, end_ns)
        if read > _MOST_READ:
            skipped += 1
            continue
        spans = context.trace.span_arrays(location, start_ns, end_ns)
        count += len(spans["row"])
        longest = np.sort(np.argsort(-spans["duration_ns"], kind="stable")[:MOST_ROWS])
        parts.append(located_spans(context, location, chosen_spans(spans, longest)))
    found = joined_spans(parts).select([column.name for column in COLUMNS])
    if len(found) > MOST_ROWS:
        longest = np.argsort(-found["duration_ns"].to_numpy(), kind="stable")[:MOST_ROWS]
        found = found.take(pa.array(np.sort(longest)))
    return found.replace_schema_metadata({"count": str(count), "skipped": str(skipped)})
