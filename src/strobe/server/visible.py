"""The spans of a stretch of time as a table to keep: what the page saves as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from strobe.server.tables import expected_spans, named_spans, some_of

if TYPE_CHECKING:
    from strobe.server.facts import Facts

MOST_ROWS = 50_000
# Spans that are read: fuller locations are left out, and it is said so.
_MOST_READ = 2_000_000


def visible_spans(facts: Facts, locations: list[int], start_ns: int, end_ns: int) -> pa.Table:
    """Return the spans of some locations that overlap [start_ns, end_ns), by location and start.

    At most the `MOST_ROWS` longest. Metadata: `count`, of all; `skipped`, how many of the locations are too full to
    read while one waits.
    """
    parts, count, skipped, read = list[pa.Table](), 0, 0, 0.0
    for location in locations:
        read += expected_spans(facts, location, start_ns, end_ns)
        if read > _MOST_READ:
            skipped += 1
            continue
        spans = facts.trace.span_arrays(location, start_ns, end_ns)
        count += len(spans["row"])
        longest = np.sort(np.argsort(-spans["duration_ns"], kind="stable")[:MOST_ROWS])
        table = named_spans(facts, some_of(spans, longest)).drop_columns(["region", "complete", "row", "self_ns"])
        parts.append(table.append_column("location", pa.array(np.full(len(longest), location, dtype=np.uint32))))
    if not parts:
        return pa.table({}).replace_schema_metadata({"count": "0", "skipped": str(skipped)})
    # Names of kernels have thousands of characters: each is sent once.
    found = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    if len(found) > MOST_ROWS:
        longest = np.argsort(-found["duration_ns"].to_numpy(), kind="stable")[:MOST_ROWS]
        found = found.take(pa.array(np.sort(longest)))
    return found.replace_schema_metadata({"count": str(count), "skipped": str(skipped)})
