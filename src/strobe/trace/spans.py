"""Spans of one location as arrays and as rows of a table, and their sums by call path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from strobe.model.schema import SPANS
from strobe.tables.column_arrays import Bools, Ints, interval_at
from strobe.tables.lazy_pyarrow import pa
from strobe.tables.table import arrow_schema

Stretches = tuple[Ints, Ints]


class SpanArrays(TypedDict):
    """Spans of one location as numpy arrays: the columns of schema `spans`; `parent` is -1 at the root.

    `depth` is exact, also where a recursion is deeper than the tables' 16 bits.
    """

    row: Ints
    start_ns: Ints
    duration_ns: Ints
    self_ns: Ints
    region: npt.NDArray[np.uint32]
    call_path: npt.NDArray[np.uint32]
    depth: npt.NDArray[np.uint32]
    parent: Ints
    complete: Bools


class PathSums(TypedDict):
    """Sums by call path: executions, ns in all of them, without what is directly inside, shortest, longest (or 0)."""

    calls: Ints
    total_ns: Ints
    own_ns: Ints
    min_ns: Ints
    max_ns: Ints


def chosen_spans(spans: SpanArrays, which: npt.NDArray[Any] | slice) -> SpanArrays:
    """Return some of the spans: by their positions, or by a mask."""
    columns: dict[str, Any] = {**spans}
    chosen: Any = {name: values[which] for name, values in columns.items()}
    arrays: SpanArrays = chosen
    return arrays


def joined_spans(parts: Sequence[SpanArrays]) -> SpanArrays:
    """Return the spans of all parts, one behind the other. There must be a part."""
    columns: Any = {name: np.concatenate([{**part}[name] for part in parts]) for name in SpanArrays.__annotations__}
    joined: SpanArrays = columns
    return joined


def enclosing(spans: SpanArrays) -> Ints:
    """Return the position of the span around each one, -1 at the root. (`parent` is its row: some may be missing.)"""
    parent, row = spans["parent"], spans["row"]
    if len(row) and row[-1] - row[0] == len(row) - 1:  # none is missing: nothing needs to be searched
        return np.where(parent < 0, -1, parent - row[0])
    return np.where(parent < 0, -1, np.searchsorted(row, parent))


def depth_column(depth: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
    """Return depths as the tables have them: 16 bits, 65,535 where there are more."""
    return np.minimum(depth, np.iinfo(np.uint16).max).astype(np.uint16)


def record_batch(spans: SpanArrays, location: int) -> pa.RecordBatch:
    """Return the spans of a location as rows of schema `spans`."""
    columns: dict[str, Any] = {**spans, "location": np.full(len(spans["row"]), location, dtype=np.uint32)}
    columns["depth"] = depth_column(spans["depth"])
    columns["parent"] = pa.array(spans["parent"], type=pa.int64(), mask=spans["parent"] < 0)
    schema = arrow_schema(SPANS)
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def sums_by_path(spans: SpanArrays, path_count: int, chosen: Stretches | None) -> PathSums:
    """Sum up spans by call path; with `chosen`, those that begin in one of these stretches [begin, end)."""
    path, duration, own = spans["call_path"], spans["duration_ns"], spans["self_ns"]
    if chosen is not None:
        mask = interval_at(*chosen, spans["start_ns"]) >= 0
        path, duration, own = path[mask], duration[mask], own[mask]
    each: PathSums = {
        "calls": np.ones_like(duration),
        "total_ns": duration,
        "own_ns": own,
        "min_ns": duration,
        "max_ns": duration,
    }
    return with_global_paths(each, path, path_count)


def joined_sums(sums: Sequence[PathSums]) -> PathSums:
    """Return the sums of several locations as those of one; `sums` must not be empty."""
    if len(sums) == 1:
        return sums[0]
    calls, total_ns, own_ns, min_ns, max_ns = (
        np.stack([each[name] for each in sums]) for name in ("calls", "total_ns", "own_ns", "min_ns", "max_ns")
    )
    executed = calls > 0
    least = np.where(executed, min_ns, np.iinfo(np.int64).max).min(axis=0)
    return {
        "calls": calls.sum(axis=0),
        "total_ns": total_ns.sum(axis=0),
        "own_ns": own_ns.sum(axis=0),
        "min_ns": np.where(executed.any(axis=0), least, 0),
        "max_ns": max_ns.max(axis=0),
    }


def with_global_paths(local: PathSums, paths: npt.NDArray[np.uint32], path_count: int) -> PathSums:
    """Return the sums of a process by call path of the trace; several of its paths may be one of the trace."""
    calls, total_ns, own_ns, min_ns, max_ns = np.zeros((5, path_count), dtype=np.int64)
    np.add.at(calls, paths, local["calls"])
    np.add.at(total_ns, paths, local["total_ns"])
    np.add.at(own_ns, paths, local["own_ns"])
    executed = local["calls"] > 0
    min_ns[paths[executed]] = np.iinfo(np.int64).max
    np.minimum.at(min_ns, paths[executed], local["min_ns"][executed])
    np.maximum.at(max_ns, paths[executed], local["max_ns"][executed])
    return {"calls": calls, "total_ns": total_ns, "own_ns": own_ns, "min_ns": min_ns, "max_ns": max_ns}
