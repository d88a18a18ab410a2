"""Rows of tables as named tuples: what Python code goes through row by row, with types."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from strobe.tables.table import Table

Row = TypeVar("Row", bound=NamedTuple)


def rows(table: Table, kind: type[Row]) -> list[Row]:
    """Return the rows of a table; the fields of `kind` are the columns that are wanted, in any number and order."""
    columns = [table.to_arrow().column(name).to_pylist() for name in kind._fields]
    return [kind._make(row) for row in zip(*columns, strict=True)]
