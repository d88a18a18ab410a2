"""SQL from the page: the same engine as `strobe sql`, read-only, with a time limit; a viewer that leaves ends it."""

from __future__ import annotations

import pyarrow as pa

from strobe.answers import sql
from strobe.server.routing.analysis_routes import FILE, table_body
from strobe.server.routing.bodies import ARROW_TYPE, Body
from strobe.server.routing.endpoints import parameter, route
from strobe.server.trace_context import TraceContext
from strobe.tables.table import Table

# Longer queries are for the command line, which has no limit.
_LIMIT_S = 30.0
_MOST_BYTES = 256 << 20


@route(
    "sql",
    parameter("query", "one SELECT", str, most=16_384),
    FILE,
    media=(ARROW_TYPE, "text/csv; charset=utf-8", "application/json"),
    most_bytes=_MOST_BYTES,
    slow=True,
)
def answer(context: TraceContext, query: str, form_of_file: str | None) -> Body:
    """One SELECT over the tables of the trace (`catalogue`), as Arrow with the metadata of a table, or as a file."""
    found = sql.query(context.read, query, timeout_s=_LIMIT_S)
    plain = Table(_plain(found.to_arrow()), name="sql", note=found.note)
    return table_body(plain, form_of_file, note=context.read_part)


def _plain(rows: pa.Table) -> pa.Table:
    """Return rows of numbers, texts and flags, each column under a name of its own: what else there is, as text.

    Units follow from names: `..._ns`, `..._bytes`.
    """
    columns, names = list[pa.ChunkedArray](), list[str]()
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        type = column.type
        if pa.types.is_decimal(type):
            column = column.cast(pa.float64())
        elif pa.types.is_nested(type):
            column = pa.chunked_array(
                [pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())]
            )
        elif not (pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_boolean(type)):
            column = column.cast(pa.string())
        columns.append(column)
        names.append(name if name not in names else f"{name}_{len(names)}")
    units = [next((unit for unit in ("ns", "bytes") if name.endswith(f"_{unit}")), "") for name in names]
    fields = [
        pa.field(*each, metadata={"unit": unit})
        for *each, unit in zip(names, (c.type for c in columns), units, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
