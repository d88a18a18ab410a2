"""SQLite files of other tools: opened so that nothing in them can act, and read in batches of numpy columns."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]

# How a missing integer comes out of a batch. No time, size, or id of any tool is this number.
NONE = -(2**63)
# Measured (benchmarks/nsys.py): 64k rows take 100 MiB more and a third longer, because they leave the caches.
BATCH_ROWS = 1 << 14
_KEYS_A_QUERY = 500
_MOST_REMEMBERED = 1 << 18
_LOOKED_AT = 1 << 16
# At least: of any row, and of one with times, with all that it refers to.
_BYTES_A_ROW, _BYTES_AN_EVENT = 2, 16
# Of SQLite's machine, which does some 50 million a second, and fewer where it sorts. A database of rocprofv3 with
# 300,000 rows needs two for each of its bytes.
_LEAST_STEPS, _STEPS_A_BYTE, _STEPS_AT_ONCE = 20_000_000, 30, 1_000_000
_REFERENCE = re.compile(r"""^[^\S\n]*["'`\[]?(\w+)["'`\]]?\s.*?REFERENCES\s+(\w+)\s*\(\s*\w+\s*\)""", re.MULTILINE)


@dataclass(frozen=True)
class SqliteTable:
    """A table: its columns with declared types and references, and a bound of its number of rows."""

    name: str
    columns: dict[str, str]
    references: dict[str, str]  # column -> table whose id it holds, by the statement that made the table
    key: str | None  # the column that is the row's number
    most_rows: int
    of_file: bool = True  # else made of other tables


@dataclass
class Batch:
    """Rows of a table. Integers lie in `whole` (NONE if null); other cells in `coded`: numbers into `words`."""

    count: int
    whole: dict[str, Whole] = field(default_factory=dict)
    coded: dict[str, Whole] = field(default_factory=dict)
    words: dict[str, list[object]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, those of integers first."""
        return (*self.whole, *self.coded)

    def cells(self, name: str) -> Whole:
        """Return a column as stored: integers, or numbers into `words`; NONE for null or a missing column."""
        if name in self.whole:
            return self.whole[name]
        return self.coded[name] if name in self.coded else np.full(self.count, NONE, dtype=np.int64)

    def integers(self, name: str) -> Whole | None:
        """Return a column as integers, whatever its declared type; None if the table lacks it."""
        if name in self.whole:
            return self.whole[name]
        if name not in self.coded:
            return None
        of_code = np.array([_integer(value)[0] for value in self.words[name]] or [NONE], dtype=np.int64)
        codes = self.coded[name]
        return np.where(codes == NONE, NONE, of_code[np.maximum(codes, 0)])

    def integers_or(self, name: str, missing: int = NONE) -> Whole:
        """Return the same, with `missing` in every row if the table lacks the column."""
        values = self.integers(name)
        return np.full(self.count, missing, dtype=np.int64) if values is None else values

    def reals(self, name: str) -> npt.NDArray[np.float64] | None:
        """Return a column as reals, NaN for a cell that is not a number; None if the table lacks it."""
        if name in self.whole:
            values = self.whole[name]
            return np.where(values == NONE, np.nan, values.astype(np.float64))
        if name not in self.coded:
            return None
        of_code = [float(each) if isinstance(each, float | int) else np.nan for each in self.words[name]]
        codes = self.coded[name]
        return np.where(codes == NONE, np.nan, np.array(of_code or [np.nan])[np.maximum(codes, 0)])

    def where(self, chosen: npt.NDArray[np.bool_]) -> Batch:
        """Return the rows that are chosen."""
        return Batch(
            int(chosen.sum()),
            {name: values[chosen] for name, values in self.whole.items()},
            {name: codes[chosen] for name, codes in self.coded.items()},
            self.words,
        )


class SqliteInput:
    """A SQLite file, opened read-only and as it is: no extensions, no views, no code of the file's schema.

    `counters`: its errors: `unreadable_values` (of a type that does not fit), `texts_not_utf8`,
    `damaged_tables` (read up to the damage), `truncated_files`. Raises ValueError if the whole database is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.counters: Counter[str] = Counter()
        self._read: set[tuple[str, str]] = set()  # columns that a statement named
        self.size_bytes = path.stat().st_size
        self._steps_left = _LEAST_STEPS + _STEPS_A_BYTE * self.size_bytes  # of all statements that derive tables
        self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        self._connection.text_factory = self._text
        pragmas = ["trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"]
        if self.size_bytes < _stated_size(path):
            self.counters["truncated_files"] += 1
            pragmas.append("writable_schema=ON")  # SQLite then reads the pages that are there; nothing can be written
        try:
            for pragma in pragmas:
                self._connection.execute(f"PRAGMA {pragma}")
            self.tables = {table.name: table for table in self._described()}
            self._connection.set_authorizer(self._authorized)
        except sqlite3.Error as error:
            self._connection.close()
            raise ValueError(f"the database is damaged ({error})") from error

    def _authorized(self, action: int, table: str | None, column: str | None, *_: object) -> int:
        """Note the columns of a statement; SQLite asks once, when it compiles it."""
        if action == sqlite3.SQLITE_READ and table and column:
            self._read.add((table, column))
        return sqlite3.SQLITE_OK

    def columns_not_read(self) -> list[str]:
        """Return the columns of the file that have data and that no statement named, as `TABLE.COLUMN`.

        Keys are numbers of rows, and columns whose first 65 536 cells are empty count as empty.
        """
        found = []
        for name, table in self.tables.items():
            asked = [each for each in table.columns if (name, each) not in self._read and each != table.key]
            for column in asked if table.of_file else ():
                head = f"SELECT {_quoted(column)} AS cell FROM {_quoted(name)} LIMIT {_LOOKED_AT}"
                if next(self.query(f"SELECT 1 FROM ({head}) WHERE cell IS NOT NULL LIMIT 1"), None) is not None:
                    found.append(f"{name}.{column}")
        return found

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def batches(self, name: str, columns: Iterable[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Return the rows of a table in the order in which they lie there, those of its `columns` that it has.

        Ends where the table is damaged. A table that is not there has no rows.
        """
        table = self.tables.get(name)
        if table is None:
            return
        wanted = [each for each in (table.columns if columns is None else columns) if each in table.columns]
        whole = [each for each in wanted if "INT" in table.columns[each].upper()]
        coded = [each for each in wanted if each not in whole]
        queries = []
        if whole:
            queries.append(", ".join(f"ifnull({_quoted(each)}, {NONE})" for each in whole))
        if coded:
            queries.append(", ".join(_quoted(each) for each in coded))
        statements = [f"SELECT {query} FROM {_quoted(name)}" for query in queries]
        left = self.size_bytes // _BYTES_A_ROW + 1  # more of them is a table that leads back to itself
        done = 0
        damaged = False
        try:
            cursors = [self._connection.execute(statement) for statement in statements]
        except sqlite3.Error:
            cursors, damaged = [], True
        while cursors and not damaged and done < left:
            try:
                fetched = [cursor.fetchmany(min(rows, left - done)) for cursor in cursors]
            except sqlite3.Error:
                fetched, damaged = [self._salvaged(statement, done, rows) for statement in statements], True
            count = min(len(each) for each in fetched)
            if count == 0:
                break
            done += count
            batch = Batch(count)
            if whole:
                for each, values in zip(whole, self._whole_columns(fetched[0][:count], len(whole)), strict=True):
                    batch.whole[each] = values
            if coded:
                for each, cells in zip(coded, zip(*fetched[-1][:count], strict=True), strict=True):
                    batch.coded[each], batch.words[each] = _coded(cells)
            yield batch
        if damaged or done >= left:
            self.counters["damaged_tables"] += 1

    def _salvaged(self, statement: str, after: int, most: int) -> list[tuple[object, ...]]:
        """Return the rows before a damaged place, one by one: a batch that meets it is lost as a whole."""
        found: list[tuple[object, ...]] = []
        with suppress(sqlite3.Error):
            for row in islice(self._connection.execute(statement), after, after + most):
                found.append(row)
        return found

    def query(self, statement: str, parameters: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
        """Return the rows of a statement of ours; ends where the database is damaged."""
        try:
            yield from self._connection.execute(statement, tuple(parameters))
        except sqlite3.Error:
            self.counters["damaged_tables"] += 1

    def looked_up(
        self, table: str, key: str, cells: Sequence[str], numbers: Sequence[int]
    ) -> Iterator[tuple[object, ...]]:
        """Return cells of the rows of a table from `keyed` that have a key among some numbers."""
        for at in range(0, len(numbers), _KEYS_A_QUERY):
            part = numbers[at : at + _KEYS_A_QUERY]
            marks = ", ".join("?" * len(part))
            yield from self.query(f"SELECT {', '.join(cells)} FROM {table} WHERE {key} IN ({marks})", part)

    def pairs(self, table: str, key: str, value: str) -> dict[int, object]:
        """Return two columns of a small table as a dictionary."""
        found: dict[int, object] = {}
        for batch in self.batches(table, (key, value)):
            keys = batch.integers(key)
            if keys is None:
                return found
            words = batch.words.get(value)
            for number, cell in zip(keys.tolist(), batch.cells(value).tolist(), strict=True):
                if NONE not in (number, cell):
                    found[number] = cell if words is None else words[cell]
        return found

    def derive(self, name: str, statement: str, columns: Mapping[str, str]) -> None:
        """Add a table that a statement of ours makes of others; `columns` have types. SQLite keeps it on disk.

        It ends where it has more rows than the file can have, or all such tables take longer than any file needs: where
        numbers that should be there once are there often, joins have as many rows as their product.
        """
        most = self.size_bytes // _BYTES_AN_EVENT + 1
        try:
            declared = ", ".join(f"{_quoted(column)} {kind}" for column, kind in columns.items())
            self._connection.execute(f"CREATE TEMP TABLE {_quoted(name)} ({declared})")
            self.tables[name] = SqliteTable(name, dict(columns), {}, None, 0, of_file=False)
            with self._bounded():
                bounded = f"SELECT * FROM ({statement}) LIMIT {most}"
                found = self._connection.execute(f"INSERT INTO temp.{_quoted(name)} {bounded}").rowcount
            self.counters["damaged_tables"] += found >= most
        except sqlite3.Error:
            self.counters["damaged_tables"] += 1

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Stop a statement with which all of them take more steps than any file of this size needs."""

        def no_more() -> bool:
            self._steps_left -= _STEPS_AT_ONCE
            return self._steps_left < 0

        self._connection.set_progress_handler(no_more, _STEPS_AT_ONCE)
        try:
            yield
        finally:
            self._connection.set_progress_handler(None, 0)

    def function(self, name: str, of_text: Callable[[str], str]) -> None:
        """Let statements of ours call a function; it gets texts, and null is left as it is."""
        self._connection.create_function(name, 1, lambda cell: of_text(str(cell)), deterministic=True)

    def count(self, name: str) -> int:
        """Return the number of rows of a table."""
        counted = next(self.query(f"SELECT count(*) FROM {_quoted(name)}"), (0,))[0]
        return counted if isinstance(counted, int) else 0

    def keyed(self, name: str, key: str, values: Sequence[str]) -> str:
        """Return a table for look-ups by `key`: itself if it has an index for that, else an indexed copy.

        The copy is a temporary table of SQLite's: beyond a few pages it lies on disk.
        """
        table = self.tables[name]
        if table.key == key or self._indexed(name, key):
            return _quoted(name)
        copy = _quoted(f"keyed {name}")
        cells = ", ".join(_quoted(each) for each in (key, *values))
        try:
            self._connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {copy} AS SELECT {cells} FROM {_quoted(name)}")
            index = _quoted(f"keyed {name} index")
            self._connection.execute(f"CREATE INDEX IF NOT EXISTS temp.{index} ON {copy} ({_quoted(key)})")
        except sqlite3.Error:
            self.counters["damaged_tables"] += 1
            return _quoted(name)
        return copy

    def _described(self) -> Iterator[SqliteTable]:
        # Only tables in pages of the file: virtual tables and views would run code of their author.
        found = self._connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%' "
            "AND typeof(name) = 'text'"
        ).fetchall()
        for name, statement in found:
            columns = self._connection.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
            keys = [column for column in columns if column[5]]
            key = str(keys[0][1]) if len(keys) == 1 and str(keys[0][2]).upper() == "INTEGER" else None
            try:
                last = self._connection.execute(f"SELECT max(rowid) FROM {_quoted(name)}").fetchone()[0]
            except sqlite3.Error:  # damaged, or a table without row numbers
                last = 0
            most = last if isinstance(last, int) and last > 0 else 0
            types = {str(column[1]): str(column[2]) for column in columns}
            yield SqliteTable(str(name), types, dict(_REFERENCE.findall(str(statement))), key, most)

    def _indexed(self, name: str, key: str) -> bool:
        for index in self._connection.execute(f"PRAGMA index_list({_quoted(name)})").fetchall():
            columns = self._connection.execute(f"PRAGMA index_info({_quoted(str(index[1]))})").fetchall()
            if columns and columns[0][2] == key and not index[4]:
                return True
        return False

    def _whole_columns(self, rows: Sequence[tuple[Any, ...]], columns: int) -> list[Whole]:
        """Return the columns of rows of integers: one pass over all cells, or cell by cell if some are none."""
        try:
            cells = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * columns)
        except (TypeError, ValueError, OverflowError):
            found = [[_integer(value) for value in row] for row in rows]
            self.counters["unreadable_values"] += sum(not sound for row in found for _, sound in row)
            cells = np.array([[value for value, _ in row] for row in found], dtype=np.int64).reshape(-1)
        return [np.ascontiguousarray(column) for column in cells.reshape(len(rows), columns).T]

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.counters["texts_not_utf8"] += 1
            return raw.decode("utf-8", "replace")


class Texts:
    """The table that other tables take their texts from by number, looked up when asked and remembered a while."""

    def __init__(self, source: SqliteInput, table: str, key: str, value: str) -> None:
        self._source, self._key, self._value = source, key, value
        known = source.tables.get(table)
        sound = known is not None and key in known.columns and value in known.columns
        self._table = source.keyed(table, key, (value,)) if sound else None
        self._known: dict[int, str | None] = {}

    def of(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Return the texts of some numbers, None if there is none."""
        asked = [int(each) for each in numbers]
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        unknown = [each for each in asked if each not in self._known]
        key, value = _quoted(self._key), _quoted(self._value)
        self._known.update(dict.fromkeys(unknown))
        found = () if self._table is None else self._source.looked_up(self._table, key, (key, value), unknown)
        for number, text in found:
            if isinstance(number, int) and text is not None:
                self._known[number] = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        return {each: self._known[each] for each in asked}


def factor(values: Whole) -> tuple[Whole, npt.NDArray[np.int64]]:
    """Return the different values in order, and for each value its place among them.

    As numpy.unique, but without sorting where the values lie close together, as the ids of traces do.
    """
    if len(values) == 0:
        return values, values
    low, high = int(values.min()), int(values.max())
    if low == high:
        return values[:1], np.zeros(len(values), dtype=np.int64)
    if high - low < 1 << 17:
        seen = np.zeros(high - low + 1, dtype=bool)
        near = values - low
        seen[near] = True
        unique = np.flatnonzero(seen)
        place = np.zeros(high - low + 1, dtype=np.int64)
        place[unique] = np.arange(len(unique))
        return unique + low, place[near]
    unique, inverse = np.unique(values, return_inverse=True)
    return unique, inverse.reshape(-1).astype(np.int64)


def combinations(columns: Sequence[Whole]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a row of each combination of values that occurs, and for each row which combination it has."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for values in columns:
        unique, inverse = factor(values)
        if len(unique) > 1:
            codes = factor(codes * len(unique) + inverse)[1]
    first = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first, codes


def _coded(cells: Sequence[object]) -> tuple[Whole, list[object]]:
    numbers: dict[object, int] = {}
    codes = [NONE if cell is None else numbers.setdefault(cell, len(numbers)) for cell in cells]
    return np.array(codes, dtype=np.int64), list(numbers)


def _integer(value: object) -> tuple[int, bool]:
    """Return a cell as an integer, and whether it was one."""
    if isinstance(value, int):
        return value, True
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value), True
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,18}\s*", value):
        return int(value), True
    return NONE, value is None


def _stated_size(path: Path) -> int:
    """Return how large a database is by its header: https://sqlite.org/fileformat2.html#the_database_header."""
    with path.open("rb") as stream:
        head = stream.read(32)
    page_bytes = int.from_bytes(head[16:18], "big")
    return int.from_bytes(head[28:32], "big") * (1 << 16 if page_bytes == 1 else page_bytes)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
