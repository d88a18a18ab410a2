"""Side tables: attributes that only some spans have, and rows with a time of their own, from one process's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.model.schema import TABLES
from strobe.tables.lazy_pyarrow import pa
from strobe.tables.table import arrow_schema
from strobe.trace.processes.process_reader import ProcessReader

_CHUNKS = 16  # of 4096 rows


def read(
    name: str,
    raw: Mapping[str, Any],
    locations: Mapping[int, int],
    zero_ns: int,
    paths: npt.NDArray[np.uint32],
    texts: Callable[[], pa.Array],
) -> pa.Table:
    """Return rows of a side table of one process, as its reader gave them.

    `locations`, `paths`: from its ids to those of the trace; times become the trace's. `texts`: those of the process.
    If a damaged file has lost definitions, rows of their locations are left out, and cells with their texts and call
    paths are null.
    """
    given = raw["columns"]
    here = np.isin(raw["location"], np.fromiter(locations, dtype=np.uint32))
    if not here.all():
        given = {column: (kind, values[here], valid[here]) for column, (kind, values, valid) in given.items()}
        raw = {**raw, "location": raw["location"][here], "row": raw["row"][here]}
    count = len(raw["location"])
    columns = []
    for field in arrow_schema(TABLES[name]):
        if field.name == "location":
            known = np.array([locations.get(i, 0) for i in range(max(locations, default=0) + 1)], dtype=np.uint32)
            columns.append(pa.array(known[raw["location"]]))
        elif field.name == "row":
            columns.append(pa.array(raw["row"], type=field.type))
        elif field.name not in given:
            columns.append(pa.nulls(count, field.type))
        else:
            kind, values, valid = given[field.name]
            missing = valid == 0
            if kind == "text":
                words = texts()
                outside = (values < 0) | (values >= len(words))
                columns.append(words.take(pa.array(np.where(outside, 0, values), mask=missing | outside)))
            elif kind == "real":
                columns.append(pa.array(values.view(np.float64), mask=missing))
            elif field.name == "cause":
                whose = np.array([locations.get(each, -1) for each in values.tolist()], dtype=np.int64)
                columns.append(pa.array(whose, type=field.type, mask=missing | (whose < 0)))
            elif field.name == "call_path":
                inside = (values >= 0) & (values < len(paths))
                known = paths[np.where(inside, values, 0)] if len(paths) else np.zeros(count, dtype=np.uint32)
                columns.append(pa.array(known, mask=missing | ~inside))
            else:
                shifted = values - zero_ns if field.name == "time_ns" else values
                columns.append(pa.array(shifted, type=field.type, mask=missing))
    return pa.Table.from_arrays(columns, schema=arrow_schema(TABLES[name]))


def raw_batches(name: str, reader: ProcessReader, location: int) -> Iterator[dict[str, Any]]:
    """Return the rows of one location (its id in the process) in pieces, in their order."""
    first, chunks = 0, 1
    while first < chunks:
        raw = reader.table(name, location, first, _CHUNKS)
        chunks = int(raw["chunks"])
        first += _CHUNKS
        if len(raw["location"]):
            yield raw
