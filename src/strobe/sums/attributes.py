"""Attributes that only some spans have (the side tables), read in the order of the spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.trace import Trace


class Attributes:
    """Columns of a side table for the spans of one location, in constant memory.

    The table is read once, from its first row on: each question must be about rows that are not before the last one's.
    """

    def __init__(self, trace: Trace, table: str, location: int, columns: Sequence[str]) -> None:
        self._batches: Iterator[pa.Table] = trace.side_batches(table, location)
        self._columns = ["row", *columns]
        self._held: list[pa.Table] = []
        self._ended = False

    def between(self, first_row: int, last_row: int) -> pa.Table:
        """Return what the table holds of spans first_row ... last_row: the column `row`, and those asked for."""
        while not self._ended and (not self._held or _last(self._held[-1]) < last_row):
            batch = next(self._batches, None)
            if batch is None:
                self._ended = True
            else:
                self._held.append(batch.select(self._columns))
        self._held = [batch for batch in self._held if _last(batch) >= first_row]
        if not self._held:
            return pa.table({name: pa.nulls(0) for name in self._columns})
        whole = pa.concat_tables(self._held)
        rows = whole.column("row").to_numpy()
        begin, end = np.searchsorted(rows, (first_row, last_row + 1))
        return whole.slice(begin, end - begin)

    def of(self, rows: Ints) -> pa.Table:
        """Return the columns for spans in order of row, as long as `rows`; null where the table does not hold one."""
        if not len(rows):
            return self.between(0, -1)
        found = self.between(int(rows[0]), int(rows[-1]))
        known = found.column("row").to_numpy().astype(np.int64)
        at = np.minimum(np.searchsorted(known, rows), max(0, len(known) - 1))
        missing = known[at] != rows if len(known) else np.ones(len(rows), dtype=bool)
        return found.take(pa.array(at, mask=missing))


def integers(column: pa.ChunkedArray, missing: int = -1) -> Ints:
    """Return a column of whole numbers as numpy has them, `missing` for null."""
    values: Ints = column.cast(pa.int64()).fill_null(missing).to_numpy()
    return values


def product(table: pa.Table, columns: Sequence[str]) -> Ints:
    """Return the product of columns of whole numbers, 0 where one is null."""
    values: Ints = np.prod([integers(table.column(name), 0) for name in columns], axis=0, dtype=np.int64)
    return values


def reals(column: pa.ChunkedArray) -> Floats:
    """Return a column of numbers as numpy has them, NaN for null."""
    values: Floats = column.cast(pa.float64()).fill_null(float("nan")).to_numpy()
    return values


def _last(batch: pa.Table) -> int:
    return int(batch.column("row")[-1].as_py())
