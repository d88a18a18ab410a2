"""Records of files that are no database, as tables of a temporary one: importers of tables then read both alike."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from strobe.formats.reading.profile_import import clean
from strobe.formats.reading.sqlite_input import Batch, SqliteInput, Whole

Layouts = Mapping[str, Mapping[str, str]]  # columns with their SQL types, by table
Row = tuple[str, Mapping[str, object]]  # a table, and its cells
_ROWS = 4096  # that wait


class PlainDialect:
    """Tables whose rows have columns for the number of their process and of their thread, and refer to no others."""

    placing = frozenset(("processId", "threadId", "start", "end"))

    def process_keys(self, batch: Batch) -> Whole:
        """Return the process of each row."""
        return batch.integers_or("processId")

    def pid(self, key: int) -> int:
        """Return the number of a process: its key."""
        return key

    def threads(self, part: Batch) -> Whole:
        """Return the thread of each row."""
        return part.integers_or("threadId")

    def thread_name(self, thread: int) -> tuple[str, int]:
        """Return the name of a thread, and its number."""
        return f"thread {thread}", thread

    def referenced(self, table: str, column: str, numbers: list[int]) -> Mapping[int, object] | None:
        """Return nothing: no column refers to another table."""
        return None


@contextmanager
def row_database(layouts: Layouts, rows: Iterable[Row]) -> Iterator[SqliteInput]:
    """Yield a database with these tables and rows; it is removed afterwards. Cells that rows lack are null."""
    with tempfile.TemporaryDirectory(prefix="strobe-") as folder:
        path = Path(folder) / "rows.db"
        _fill(path, layouts, rows)
        with closing(SqliteInput(path)) as database:
            yield database


def _stored(cell: object) -> object:
    """Return a cell as SQLite can hold it: a number beyond 64 bits is no time, size or id of any tool."""
    if isinstance(cell, int):
        return cell if abs(cell) < 1 << 63 else None
    return clean(cell) if isinstance(cell, str) else cell


def _fill(path: Path, layouts: Layouts, rows: Iterable[Row]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        for table, layout in layouts.items():
            columns = ", ".join(f'"{key}" {kind}' for key, kind in layout.items())
            database.execute(f'CREATE TABLE "{table}" ({columns})')
        waiting: dict[str, list[Sequence[object]]] = {table: [] for table in layouts}

        def flush(table: str) -> None:
            marks = ", ".join("?" * len(layouts[table]))
            database.executemany(f'INSERT INTO "{table}" VALUES ({marks})', waiting[table])
            waiting[table].clear()

        database.execute("BEGIN")
        for table, cells in rows:
            found = (cells.get(column) for column in layouts[table])
            waiting[table].append([_stored(each) for each in found])
            if len(waiting[table]) >= _ROWS:
                flush(table)
        for table in layouts:
            flush(table)
        database.execute("COMMIT")
