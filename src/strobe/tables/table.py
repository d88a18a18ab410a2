"""Table: the one form in which strobe answers. Any Arrow consumer takes it (pandas, Polars, DuckDB, pyarrow)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from strobe.errors import UsageError
from strobe.model.schema import SCHEMA_VERSION, TABLES, Column
from strobe.tables.lazy_pyarrow import pa

if TYPE_CHECKING:
    import pandas
    import polars


class Table:
    """Columns with units, and what they were computed from.

    Immutable: `sort`, `head`, `filter`, `select` return a new Table. `name` is its subject, `about` the part of the run
    that it covers. `note` is the reason if rows are missing, with the option of `strobe run` that would have recorded
    them. `shows` is how many rows a terminal shows unless asked for more (0: all).
    """

    def __init__(self, arrow: pa.Table, *, name: str = "", about: str = "", note: str = "", shows: int = 0) -> None:
        self._arrow = arrow
        self.name, self.about, self.note, self.shows = name, about, note, shows

    # Interchange

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table to any Arrow consumer: `polars.DataFrame(table)`, `pyarrow.table(table)`."""
        return self._arrow.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return the table as a pyarrow.Table (no copy)."""
        return self._arrow

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame."""
        frame: pandas.DataFrame = self._arrow.to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a Polars DataFrame."""
        import polars

        return polars.DataFrame(self)

    def to_csv(self) -> str:
        """Return the table as CSV text with a header line; column names carry the units."""
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows())
        return text.getvalue()

    def to_json(self) -> str:
        """Return `{"schema_version", "table", "units", "about", "note", "source", "rows": [{column: value}]}` as JSON.

        `about`, `note` and `source` are left out if they are empty, or the source is `spans`.
        """
        source = "" if self.source == "spans" else self.source
        body = {
            "schema_version": SCHEMA_VERSION,
            "table": self.name,
            "units": self.units,
            **{key: text for key, text in (("about", self.about), ("note", self.note), ("source", source)) if text},
            "rows": self._arrow.to_pylist(),
        }
        try:
            return json.dumps(body, allow_nan=False, default=_json_value)
        except ValueError:  # not a number, or infinite: JSON has no such numbers
            return json.dumps(_finite(body), allow_nan=False, default=_json_value)

    def rows(self) -> list[tuple[object, ...]]:
        """Return all rows as plain Python values."""
        return list(zip(*(column.to_pylist() for column in self._arrow.columns), strict=True))

    def to_pylist(self) -> list[dict[str, object]]:
        """Return all rows as dictionaries."""
        rows: list[dict[str, object]] = self._arrow.to_pylist()
        return rows

    # Shape

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._arrow.column_names)

    @property
    def units(self) -> dict[str, str]:
        """Unit of every column that has one (also in the Arrow field metadata, key `unit`)."""
        return {field.name: unit for field in self._arrow.schema if (unit := _meta(field, b"unit"))}

    @property
    def extra(self) -> list[str]:
        """Columns that are left out first if space is short."""
        return [field.name for field in self._arrow.schema if _meta(field, b"extra")]

    @property
    def source(self) -> str:
        """What it was computed from: `spans`, `statistics` (of steps not kept in detail), or `spans and statistics`."""
        return str((self._arrow.schema.metadata or {}).get(b"source", b"").decode())

    def column(self, name: str) -> list[object]:
        """Return the values of one column as plain Python values."""
        self._require(name)
        values: list[object] = self._arrow.column(name).to_pylist()
        return values

    def integers(self, name: str) -> list[int | None]:
        """Return the values of a column of whole numbers; null is None."""
        self._require(name)
        values: list[int | None] = self._arrow.column(name).to_pylist()
        return values

    def texts(self, name: str) -> list[str]:
        """Return the values of a column of texts; null is an empty text."""
        self._require(name)
        return [value or "" for value in self._arrow.column(name).to_pylist()]

    # New tables

    def sort(self, by: str, *, descending: bool | None = None) -> Table:
        """Sort by a column (`duration` for `duration_ns`, too: see `named`).

        By default numbers are sorted from large to small and text from A to Z.
        """
        by = self.named(by)
        if descending is None:
            descending = bool(pa.types.is_integer(t := self._arrow.schema.field(by).type) or pa.types.is_floating(t))
        return self._with(self._arrow.sort_by([(by, "descending" if descending else "ascending")]))

    def head(self, count: int) -> Table:
        """Return the first `count` rows."""
        return self._with(self._arrow.slice(0, count))

    def select(self, names: Sequence[str]) -> Table:
        """Return only these columns, in this order."""
        return self._with(self._arrow.select([self.named(name) for name in names]))

    def filter(self, condition: str) -> Table:
        """Return the rows for which an SQL expression over the columns holds: `calls > 10 and name like 'aten::%'`."""
        from strobe.tables.query_engine import filter_rows

        return self._with(filter_rows(self._arrow, condition))

    def _with(self, arrow: pa.Table) -> Table:
        return Table(arrow, name=self.name, about=self.about, note=self.note, shows=self.shows)

    def named(self, heading: str) -> str:
        """Return the column of a name, or of a heading as people see it. Raises UsageError if there is none."""
        columns = {heading_of(name): name for name in self.columns} | {name: name for name in self.columns}
        name = columns.get(heading, heading)
        self._require(name)
        return name

    def _require(self, column: str) -> None:
        if column not in self._arrow.column_names:
            raise UsageError(f"no column '{column}' in this table", do=f"Columns: {', '.join(self.columns)}")

    # Notebooks

    def __repr__(self) -> str:
        return f"<strobe.Table {self.name or 'result'}: {len(self)} rows, columns {', '.join(self.columns)}>"

    card: ClassVar[Callable[[Table], str] | None] = None  # the HTML for notebooks; strobe.api sets it

    def _repr_html_(self) -> str | None:
        return Table.card(self) if Table.card else None


def heading_of(column: str) -> str:
    """Return the name of a column without the unit, which its cells show."""
    return column.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def _json_value(value: object) -> object:
    """Return a value that JSON has no type for: sums in SQL are decimals, which are numbers; all others become text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def _finite(value: object) -> object:
    """Return a value with null in place of the numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def arrow_schema(columns: Iterable[Column], *, source: str = "spans") -> pa.Schema:
    """Return the Arrow schema for columns of model/schema.py, with unit and meaning in the field metadata."""
    return _schema(tuple(columns), source)


@cache  # made for every process and table
def _schema(columns: tuple[Column, ...], source: str) -> pa.Schema:
    fields = []
    for column in columns:
        metadata = {"meaning": column.meaning, **({"unit": column.unit} if column.unit else {})}
        metadata |= {"extra": "yes"} if column.extra else {}
        fields.append(pa.field(column.name, _arrow_type(column.type), metadata=metadata))
    return pa.schema(fields, metadata={"source": source})


def make_table(
    columns: Sequence[Column] | str,
    values: Mapping[str, object] | Iterable[Sequence[object] | Mapping[str, object]],
    *,
    name: str = "",
    about: str = "",
    note: str = "",
    source: str = "spans",
    shows: int = 0,
) -> Table:
    """Build a Table from column values (a mapping of name to array or list) or from rows.

    A row is a sequence of cells in the order of the columns, or a mapping of name to cell, which may have more cells.
    `columns` are Column descriptions, or the name of a table of model/schema.py. A numpy array is taken over without
    a copy where the type allows it; `None` in a list becomes null. Arrow arrays may come in chunks.
    """
    if isinstance(columns, str):
        name, columns = name or columns, TABLES[columns]
    schema = arrow_schema(columns, source=source)
    if not isinstance(values, Mapping):
        rows = [row if isinstance(row, Mapping) else dict(zip(schema.names, row, strict=True)) for row in values]
        values = {name: [row[name] for row in rows] for name in schema.names}
    arrays = [_column_of(values[field.name], field.type) for field in schema]
    return Table(pa.Table.from_arrays(arrays, schema=schema), name=name, about=about, note=note, shows=shows)


def _column_of(values: object, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return values.cast(kind) if isinstance(values, pa.ChunkedArray) else pa.array(values, type=kind)


def _arrow_type(name: str) -> pa.DataType:
    if name.startswith("list<"):
        return pa.list_(_arrow_type(name.removeprefix("list<").removesuffix(">")))
    return pa.type_for_alias(name)


def _meta(field: pa.Field, key: bytes) -> str:
    return str((field.metadata or {}).get(key, b"").decode())
