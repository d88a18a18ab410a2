"""Side tables: attributes that only some spans have, and rows with a time of their own, from one process's columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.model.schema import TABLES
from strobe.store.raw import ProcessReader
from strobe.store.table import arrow_schema


def read(
    name: str, reader: ProcessReader, locations: Mapping[int, int], zero_ns: int, paths: npt.NDArray[np.uint32]
) -> pa.Table:
    """Return a side table of one process.

    `locations`, `paths`: from its ids to those of the trace; times become the trace's.
    """
    raw = reader.table(name)
    count = len(raw["location"])
    given = raw["columns"]
    texts: pa.Array | None = None
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
                texts = texts if texts is not None else pa.array(reader.texts(), type=pa.string())
                columns.append(texts.take(pa.array(values, mask=missing)))
            elif kind == "real":
                columns.append(pa.array(values.view(np.float64), mask=missing))
            elif field.name == "call_path":
                inside = (values >= 0) & (values < len(paths))
                known = paths[np.where(inside, values, 0)] if len(paths) else np.zeros(count, dtype=np.uint32)
                columns.append(pa.array(known, mask=missing | ~inside))
            else:
                shifted = values - zero_ns if field.name == "time_ns" else values
                columns.append(pa.array(shifted, type=field.type, mask=missing))
    return pa.Table.from_arrays(columns, schema=arrow_schema(TABLES[name]))
