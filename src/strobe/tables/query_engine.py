"""The query engine behind SQL and `--where`. The only module that knows it is DuckDB.

A query sees only what it names: tables are made when the text mentions them, and nothing can be written, and no file
or address read.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from strobe.errors import QueryError
from strobe.model.cancellation import checkpoint, current

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# How often a running query looks whether it is still wanted.
_POLL_S = 0.05
# DuckDB's own limit is a share of the machine.
_MEMORY_OF_PAGES = "4GB"

TableSource = Callable[[], "pa.Table"]


def query(
    text: str,
    tables: Mapping[str, TableSource],
    views: Mapping[str, str] | None = None,
    *,
    timeout_s: float | None = None,
    rows: tuple[int, int] | None = None,
) -> pa.Table:
    """Answer one SQL query over Arrow tables.

    `tables` are made only when the query (or a view that it names) mentions them. `views` are names for SQL over
    them. After `timeout_s` seconds the query is interrupted and a QueryError raised. `rows`: only these, [begin, end),
    of a client that may not take all of the machine's memory.
    """
    import duckdb

    connection = _connect()
    try:
        statements = connection.extract_statements(text)
        allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
        if len(statements) != 1 or statements[0].type not in allowed:
            raise QueryError("only one SELECT (or EXPLAIN) can be asked", do="A trace is read-only.")
        _provide(connection, text, tables, views or {})
        if rows:
            connection.execute(f"set memory_limit = '{_MEMORY_OF_PAGES}'")
        connection.execute("set lock_configuration = true")
        return _run(connection, text, timeout_s, rows)
    except duckdb.Error as error:
        # The first paragraph of DuckDB's message, in one line.
        sentence = " ".join(str(error).split("\n\nLINE")[0].split())
        raise QueryError(sentence, do=_hint(str(error), tables, views or {})) from error
    finally:
        connection.close()


def filter_rows(table: pa.Table, condition: str) -> pa.Table:
    """Return the rows for which an SQL expression over the columns holds, in their order, with their metadata."""
    import pyarrow as pa

    kept = query(f"select ({condition}\n) as kept from t", {"t": lambda: table}).column(0)
    if not pa.types.is_boolean(kept.type) or len(kept) != table.num_rows:
        raise QueryError(f"'{condition}' is not a condition on a row", do="Example: calls > 10 and name like 'aten::%'")
    return table.filter(kept)


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "python_enable_replacements": "false",
            "python_scan_all_frames": "false",
            "threads": "4",
            # A location's spans come in order of start, and answers should, too.
            "preserve_insertion_order": "true",
        },
    )


def _provide(
    connection: duckdb.DuckDBPyConnection, text: str, tables: Mapping[str, TableSource], views: Mapping[str, str]
) -> None:
    """Register every table and view that the text mentions, and those that these views mention in turn.

    By word, not by parsing: the engine's own `get_table_names` binds columns, so it fails before the tables are there.
    """
    wanted, done, order = _words(text), set[str](), list[str]()
    while wanted:
        name = wanted.pop()
        if name in done:
            continue
        done.add(name)
        if name in views:
            order.append(name)
            wanted |= _words(views[name])
        elif name in tables:
            connection.register(name, tables[name]())
    for name in reversed(order):
        connection.execute(f'create view "{name}" as {views[name]}')


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z_]\w*", text)}


def _run(
    connection: duckdb.DuckDBPyConnection, text: str, timeout_s: float | None, rows: tuple[int, int] | None
) -> pa.Table:
    import duckdb

    done, cancellation = threading.Event(), current()
    until = time.monotonic() + timeout_s if timeout_s else math.inf

    def watch() -> None:
        """Interrupt the engine, which calls no checkpoint, when nobody waits for it any more."""
        while not done.wait(_POLL_S):
            if time.monotonic() > until or (cancellation and cancellation.ends):
                connection.interrupt()

    if timeout_s or cancellation:
        threading.Thread(target=watch, daemon=True).start()
    try:
        answer = connection.sql(text)
        return (answer.limit(rows[1] - rows[0], rows[0]) if rows else answer).to_arrow_table()
    except duckdb.InterruptException as error:
        checkpoint()
        raise QueryError(f"the query took more than {timeout_s:g} s and was stopped") from error
    finally:
        done.set()


def _hint(message: str, tables: Mapping[str, TableSource], views: Mapping[str, str]) -> str:
    if "Catalog Error" not in message or "Table" not in message:
        return ""
    return "Tables: " + ", ".join(name for name in sorted({*tables, *views}) if not name.startswith("_"))
