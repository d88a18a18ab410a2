"""Spans as tables: some rows of them, their names and groups, and how many to expect in a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.model.kinds import GROUPS
from strobe.model.schema import Column
from strobe.server.trace_context import TraceContext
from strobe.tables.column_arrays import Ints
from strobe.tables.table import arrow_schema
from strobe.trace.definition_rows import Process, location_rows, process_rows
from strobe.trace.spans import SpanArrays

Rows = npt.NDArray[np.intp]

SPAN_COLUMNS = (
    Column("row", "int64", "", "number of the span in its location"),
    Column("start_ns", "int64", "ns", "when it starts"),
    Column("duration_ns", "int64", "ns", "how long it lasts"),
    Column("self_ns", "int64", "ns", "its time without what is directly inside"),
    Column("region", "uint32", "", "its region"),
    Column("depth", "uint32", "", "spans around it"),
    Column("complete", "uint8", "", "0 where it was still open when recording ended"),
    Column("name", "string", "", "name of its region"),
    Column("group", "string", "", "what it is drawn as", values=GROUPS),
)
LOCATED_COLUMNS = (*SPAN_COLUMNS, Column("location", "uint32", "", "location that it is in"))


def process_title(process: Process) -> str:
    """Return what a process is called among others: its rank, else its pid."""
    return f"pid {process.pid}" if process.rank is None else f"rank {process.rank}"


def thread_title(context: TraceContext, location: int) -> str:
    """Return what a thread or stream is called: behind its process where there are several."""
    row, processes = location_rows(context.trace)[location], process_rows(context.trace)
    name = row.name or f"thread {row.thread_id}"
    return f"{process_title(processes[row.process])} · {name}" if len(processes) > 1 else name


def region_texts(context: TraceContext, region: npt.NDArray[Any], *columns: str) -> dict[str, pa.DictionaryArray]:
    """Return columns of texts for the regions of rows.

    The dictionaries hold only the texts in view: an answer is bounded by its rows, not by the trace's regions.
    """
    used, index = np.unique(region, return_inverse=True)
    some, row = context.regions.select(columns).take(pa.array(used)), pa.array(index.astype(np.int32))
    texts = {name: some.column(name).cast(pa.string()).combine_chunks().fill_null("") for name in columns}
    return {name: pa.DictionaryArray.from_arrays(row, values) for name, values in texts.items()}


def span_table(arrays: SpanArrays, texts: Mapping[str, pa.DictionaryArray]) -> pa.Table:
    """Return spans as SPAN_COLUMNS has them; `texts`: the columns name and group."""
    numbers: dict[str, Any] = {**arrays}
    return pa.table(
        {
            **{
                name: pa.array(numbers[name])
                for name in ("row", "start_ns", "duration_ns", "self_ns", "region", "depth")
            },
            "complete": pa.array(arrays["complete"].astype(np.uint8)),
            **texts,
        }
    )


def named_spans(context: TraceContext, arrays: SpanArrays) -> pa.Table:
    """Return spans with the names and groups of their regions."""
    return span_table(arrays, region_texts(context, arrays["region"], "name", "group"))


def located_spans(context: TraceContext, location: int, arrays: SpanArrays) -> pa.Table:
    """Return spans of a location, as LOCATED_COLUMNS has them."""
    some = named_spans(context, arrays)
    return some.append_column("location", pa.array(np.full(some.num_rows, location, dtype=np.uint32)))


def joined_spans(parts: list[pa.Table]) -> pa.Table:
    """Return located spans of several locations as one table: names of kernels have thousands of characters, and each
    is sent once."""
    if not parts:
        return arrow_schema(LOCATED_COLUMNS).empty_table()
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def longest_spans(parts: list[pa.Table], limit: int) -> pa.Table:
    """Return the `limit` longest of located spans, the longest first."""
    return joined_spans(parts).sort_by([("duration_ns", "descending")]).slice(0, limit)


def longest_rows(duration_ns: Ints, rows: Rows, most: int) -> Rows:
    """Return the `most` rows whose spans last longest, in no particular order."""
    return rows if len(rows) <= most else rows[np.argpartition(-duration_ns[rows], most)[:most]]


def expected_spans(context: TraceContext, location: int, start_ns: int, end_ns: int) -> float:
    """Return the spans in a window if they were spread evenly: too full windows are found without reading."""
    row = location_rows(context.trace)[location]
    inside = min(end_ns, row.last_ns) - max(start_ns, row.first_ns)
    return float(row.span_count) * max(0, inside) / max(1, row.last_ns - row.first_ns)
