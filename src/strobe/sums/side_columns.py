"""Columns of a side table of all processes at once, as numbers: for what has millions of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Ints
from strobe.trace.trace import Trace


def side_columns(trace: Trace, table: str, names: Sequence[str], texts: Texts) -> tuple[Ints, dict[str, Ints]]:
    """Return the location of every row of a side table, in order of locations and rows, and some of its columns.

    Whole numbers only; -1 where a cell is null. Texts are their numbers in `texts`, times and call paths those of the
    trace.
    """
    parts = [_of_process(trace, table, names, texts, process) for process in range(len(trace.readers))]
    location, columns = (list(each) for each in zip(*parts, strict=True)) if parts else ([], [])
    nothing = np.zeros(0, dtype=np.int64)
    joined = {name: np.concatenate([nothing, *(each[name] for each in columns)]) for name in names}
    return np.concatenate([nothing, *location]), joined


def _of_process(
    trace: Trace, table: str, names: Sequence[str], texts: Texts, process: int
) -> tuple[Ints, dict[str, Ints]]:
    reader = trace.readers[process]
    if not reader.tables().get(table):
        return np.zeros(0, dtype=np.int64), {name: np.zeros(0, dtype=np.int64) for name in names}
    raw = reader.table(table)
    here = np.unique(raw["location"])
    known = np.array([trace.location_of(process, local_id) for local_id in here.tolist()], dtype=np.float64)
    location = np.nan_to_num(known, nan=-1).astype(np.int64)[np.searchsorted(here, raw["location"])]
    columns = {name: np.full(len(location), -1, dtype=np.int64) for name in names}
    for name in names:
        if name in raw["columns"]:
            columns[name] = _numbers(trace, process, name, raw["columns"][name], texts)
    # A damaged file may have lost locations.
    if len(here) > 1 or (location < 0).any():
        order = np.argsort(location, kind="stable")
        order = order[location[order] >= 0]
        location, columns = location[order], {name: values[order] for name, values in columns.items()}
    return location, columns


def _numbers(trace: Trace, process: int, name: str, given: tuple[str, Ints, Ints], texts: Texts) -> Ints:
    """Return the cells of a column; those that refer to something that a damaged file has lost are null, too."""
    kind, values, valid = given
    if kind == "text":
        words = trace.texts(process)
        return _referred(values, valid, len(words), lambda used: np.array([texts.number(words[each]) for each in used]))
    if name == "call_path":
        paths = trace.definitions.path_maps[process]
        return _referred(values, valid, len(paths), lambda used: paths[used].astype(np.int64))
    shifted = values - trace.zero_of(process) if name == "time_ns" else values
    return shifted if valid.all() else np.where(valid, shifted, -1)


def _referred(values: Ints, valid: Ints, count: int, numbers: Callable[[Ints], Ints]) -> Ints:
    """Return what the cells refer to by their number, below `count`."""
    inside = (valid != 0) & (values >= 0) & (values < count)
    at = np.where(inside, values, count)
    is_used = np.zeros(count + 1, dtype=bool)
    is_used[at] = True
    (used,) = np.nonzero(is_used[:count])
    known = np.full(count + 1, -1, dtype=np.int64)
    if len(used):
        known[used] = numbers(used)
    return known[at]
