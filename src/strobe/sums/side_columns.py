"""Columns of a side table of all processes at once, as numbers: for what has millions of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Ints
from strobe.trace.processes.process_reader import ProcessReader
from strobe.trace.trace import Trace

# Of all processes together, about, in a part of a table. A column is 16 MB: memory of up to 32 MB is used again.
PART_ROWS = 2_000_000
Part = tuple[int, int]  # the number of a part from 0, and how many parts there are
WHOLE: Part = (0, 1)
_Value = TypeVar("_Value")


class NeedsWholeLogError(Exception):
    """What was read in parts needs rows that other parts have."""


def in_parts(answer: Callable[[bool], _Value]) -> _Value:
    """Return an answer that reads logs in parts, or, where it has to, as a whole: then its argument is true."""
    try:
        return answer(False)
    except NeedsWholeLogError:
        return answer(True)


def parts_of(trace: Trace, table: str) -> int:
    """Return in how many parts to read a side table: of about PART_ROWS, and of whole chunks or pieces of one."""
    readers = [reader for reader in trace.readers if reader.tables().get(table)]
    count = max(1, -(-sum(reader.tables()[table] for reader in readers) // PART_ROWS))
    chunks = max((int(reader.table(table, -1, 0, 0)["chunks"]) for reader in readers), default=1)
    return count if count < chunks else chunks * round(count / chunks)


def side_columns(
    trace: Trace, table: str, names: Sequence[str], texts: Texts, part: Part = WHOLE
) -> tuple[Ints, dict[str, Ints]]:
    """Return the location of every row of a side table, in order of locations and rows, and some of its columns.

    Whole numbers only; -1 where a cell is null. Texts are their numbers in `texts`, times and call paths those of the
    trace. A part of a table has the rows of all processes from one fraction of their rows to the next.
    """
    parts = [
        _of_rows(trace, process, names, texts, raw, rows)
        for process, reader in enumerate(trace.readers)
        if reader.tables().get(table)
        for raw, rows in _rows(reader, table, part)
    ]
    location, columns = (list(each) for each in zip(*parts, strict=True)) if parts else ([], [])
    nothing = np.zeros(0, dtype=np.int64)
    # What has been joined is not kept beside it.
    joined = {name: np.concatenate([nothing, *(each.pop(name) for each in columns)]) for name in names}
    return np.concatenate([nothing, *location]), joined


def _rows(reader: ProcessReader, table: str, part: Part) -> Iterator[tuple[Mapping[str, Any], slice]]:
    """Yield rows as read, and which of them are of the part: chunks, or where these are too few, pieces of them."""
    (number, count), chunks = part, int(reader.table(table, -1, 0, 0)["chunks"])
    if chunks >= count:
        first = number * chunks // count
        yield reader.table(table, -1, first, (number + 1) * chunks // count - first), slice(None)
        return
    begin, end = number * chunks, (number + 1) * chunks
    for chunk in range(begin // count, -(-end // count)):
        raw = reader.table(table, -1, chunk, 1)
        rows, before = len(raw["location"]), chunk * count
        yield raw, slice(max(0, begin - before) * rows // count, min(count, end - before) * rows // count)


def _of_rows(
    trace: Trace, process: int, names: Sequence[str], texts: Texts, raw: Mapping[str, Any], rows: slice
) -> tuple[Ints, dict[str, Ints]]:
    of_row = raw["location"][rows]
    here = of_row[:1] if (of_row == of_row[:1]).all() else np.unique(of_row)
    known = [trace.location_of(process, local_id) for local_id in here.tolist()]
    of_here = np.array([-1 if each is None else each for each in known], dtype=np.int64)
    location = np.repeat(of_here, len(of_row)) if len(here) == 1 else of_here[np.searchsorted(here, of_row)]
    columns = {name: np.full(len(location), -1, dtype=np.int64) for name in names}
    for name in names:
        if name in raw["columns"]:
            kind, values, valid = raw["columns"][name]
            columns[name] = _numbers(trace, process, name, (kind, values[rows], valid[rows]), texts)
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
