"""From tables of a database to spans, marks and properties: shared by the importers of SQLite files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from strobe.formats.reading.import_process import Cells, ImportProcess, finish_all, present
from strobe.formats.reading.sqlite_input import BATCH_ROWS, NONE, Batch, SqliteInput, Texts, Whole, combinations, factor
from strobe.model.losses import LEFT_OUT, NOT_READ, RECORDS_LEFT_OUT, RECORDS_TAKEN, RECORDS_UNKNOWN, UNKNOWN
from strobe.model.plugins import Imported, ImportSource, ImportTarget
from strobe.model.schema import TABLES

Region = tuple[str, str, str, str]  # name, paradigm, role, module
Naming = Callable[[Mapping[str, object]], Region]

_MOST_PROCESSES = 256
_MOST_COLUMNS = 64  # that are named
_MOST_PROPERTY_ROWS = 1000
_MOST_PROPERTY_TEXT = 1000
_MOST_PROPERTIES_BYTES = 512 << 10
# A table with one of these columns holds events: each of its rows is a record of the file.
TIMES = {"start", "timestamp", "startNs", "timestampNs"}
_ON_A_STREAM = {"deviceId", "streamId"}


class Dialect(Protocol):
    """The numbering of rows, processes and locations, which differs between the tools that write such tables."""

    @property
    def placing(self) -> frozenset[str]:
        """Columns with the process, the location and the time of a row."""

    def process_keys(self, batch: Batch) -> Whole:
        """Return the key of the process of each row, NONE if it has none."""

    def pid(self, key: int) -> int:
        """Return the number that the operating system gave a process."""

    def threads(self, part: Batch) -> Whole | None:
        """Return the thread of each row, NONE if it has none; None if the table does not know threads."""

    def thread_name(self, thread: int) -> tuple[str, int]:
        """Return the name of a thread, and the number that the operating system gave it."""

    def referenced(self, table: str, column: str, numbers: list[int]) -> Mapping[int, object] | None:
        """Return what the numbers of a column refer to (texts, call chains); None if they are plain numbers."""


def named_by(column: str, paradigm: str, role: str, module: str = "", *, unnamed: str = "Unknown") -> Naming:
    """Name regions by a column."""
    return lambda values: (str(values.get(column) or unnamed), paradigm, role, module)


@dataclass(frozen=True)
class SpanTable:
    """How the rows of a table become spans.

    names: the columns that `naming` makes a region of. columns: from columns of the table to those of the side table
    `side`. words: by column, the names of its numbers. row: the name of a location of their own, for rows that do not
    nest into the calls of their thread or the work of their stream. repeats: columns that are kept only in rows where
    they differ from another one. pairs: columns with a JSON list of pairs, each a name and a value: an argument.
    """

    table: str
    names: tuple[str, ...]
    naming: Naming
    side: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    row: str = ""
    repeats: Mapping[str, str] = field(default_factory=dict)
    pairs: tuple[str, ...] = ()


class TableImport:
    """Reads tables batch by batch, each row into its process.

    A column without a place in a side table becomes `arguments`. `counters`: what was wrong with the file as a whole.
    """

    def __init__(
        self, source: ImportSource, target: ImportTarget, database: SqliteInput, texts: Texts, dialect: Dialect
    ) -> None:
        self.database, self.texts = database, texts
        self.counters: Counter[str] = Counter()
        self.processes: dict[int, ImportProcess] = {}
        self.default_key = 0
        self._source, self._target, self._dialect = source, target, dialect
        self._labels: dict[str, dict[int, str]] = {}
        self.stopped = False
        # By table: rows that became something, and those that there are.
        self.taken: Counter[str] = Counter()
        self._joined: Counter[str] = Counter()
        self._rows: dict[str, int] = {}
        self._unknown: set[str] = set()
        self._made_of: dict[str, Sequence[str]] = {}
        self._left_out: dict[str, Counter[str]] = {}
        rows = sum(table.most_rows for table in database.tables.values())
        self._bytes_per_row = database.size_bytes / max(rows, 1)

    def batches(self, table: str, columns: tuple[str, ...] | None = None, rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Return the rows of a table and report the progress; ends early where the import is stopped."""
        count = 0
        for batch in self.database.batches(table, columns, rows):
            if self.stopped:
                return
            count += batch.count
            self._rows[table] = max(self._rows.get(table, 0), count)
            yield batch
            self.stopped = not self._source.tick(int(batch.count * self._bytes_per_row))

    def by_process(self, batch: Batch) -> Iterator[tuple[ImportProcess, Batch]]:
        """Return the rows of a batch, process by process."""
        keys, places = factor(self._dialect.process_keys(batch))
        for place, key in enumerate(keys.tolist()):
            part = batch if len(keys) == 1 else batch.where(places == place)
            yield self.process(self.default_key if key == NONE else key), part

    def process(self, key: int) -> ImportProcess:
        """Return the process of a key. A file may name more of them than files can be open: the last takes the rest."""
        known = self.processes.get(key)
        if known is None and len(self.processes) >= _MOST_PROCESSES:
            self.counters["processes_joined"] += 1
            return next(reversed(self.processes.values()))
        if known is None:
            known = self.processes[key] = ImportProcess(self._target, self._dialect.pid(key))
        return known

    def choose_default_key(self, tables: Iterable[str], columns: tuple[str, ...]) -> None:
        """Let rows without a process belong to the first one that the `columns` of some tables name."""
        for table in tables:
            for batch in islice(self.database.batches(table, columns, rows=64), 1):
                keys = self._dialect.process_keys(batch).tolist()
                self.default_key = self.default_key or next((key for key in keys if key != NONE), 0)

    def locations(self, process: ImportProcess, part: Batch, row: str = "") -> npt.NDArray[np.uint32]:
        """Return the location of each row: its stream, else its thread; with `row`, one of that name beside it."""
        on_stream = process.streams(part, row)
        if on_stream is not None:
            return on_stream
        threads = self._dialect.threads(part)
        if threads is None:
            return np.full(part.count, process.location(("row", row), row, 0, "task"), dtype=np.uint32)
        unique, codes = factor(threads)
        return np.array([self.thread(process, each, row) for each in unique.tolist()], dtype=np.uint32)[codes]

    def thread(self, process: ImportProcess, thread: int, row: str) -> int:
        """Return the location of a thread; with `row`, one of that name beside it."""
        if thread == NONE:
            return process.location(("row", row), row or "unknown thread", 0, "task")
        name, number = self._dialect.thread_name(thread)
        return process.location(("thread", thread, row), f"{name} {row}".rstrip(), number, "task" if row else "thread")

    def meanings(
        self, table: str, batch: Batch, column: str, codes: Whole, words: Mapping[int, str] | None = None
    ) -> dict[int, object]:
        """Return the meaning of the numbers in a column: words, referenced texts, names of kinds, or the numbers."""
        numbers = [code for code in factor(codes)[0].tolist() if code != NONE]
        if column in batch.coded:
            return {number: batch.words[column][number] for number in numbers}
        refers = self.database.tables[table].references.get(column, "")
        labels = self.enumeration(refers) if refers.startswith("ENUM_") else {}
        if words:
            return {number: words.get(number) or labels.get(number, f"kind {number}") for number in numbers}
        referenced = self._dialect.referenced(table, column, numbers)
        if referenced is not None:
            return dict(referenced)
        return {number: labels.get(number, number) for number in numbers}

    def enumeration(self, name: str) -> dict[int, str]:
        """Return the names of numbers in a table of kinds; none if the file lacks the table."""
        if name not in self._labels:
            columns = self.database.tables[name].columns if name in self.database.tables else {}
            label = "label" if "label" in columns else "name"
            self._labels[name] = {key: str(text) for key, text in self.database.pairs(name, "id", label).items()}
        return self._labels[name]

    def spans(self, kind: SpanTable) -> None:
        """Import a table whose rows have a start and an end, if it is there."""
        for batch in self.batches(kind.table):
            for process, part in self.by_process(batch):
                self._part(process, part, kind)

    def _part(self, process: ImportProcess, part: Batch, kind: SpanTable) -> None:
        start = part.integers("start")
        if start is None:
            self.counters["events_without_time"] += part.count
            return
        side: dict[str, Cells] = {}
        arguments: list[tuple[str | Cells, Cells]] = []
        placed = {*self._dialect.placing, *kind.names, *kind.pairs}
        if part.whole.keys() >= _ON_A_STREAM:  # their place is the location
            placed |= {*_ON_A_STREAM, "contextId"}
        text_columns = {each.name for each in TABLES[kind.side] if each.type == "string"} if kind.side else set()
        for column in part.columns:
            to = kind.columns.get(column)
            if to is not None:
                if to in text_columns:
                    side[to] = self.texts_of(process, part, kind.table, column, kind.words.get(column))
                else:
                    side[to] = present(part.integers_or(column))
            elif column not in placed:
                codes = part.cells(column)
                if column in kind.repeats and kind.repeats[column] in part.whole:
                    codes = np.where(codes == part.whole[kind.repeats[column]], NONE, codes)
                if (codes != NONE).any():
                    meanings = self.meanings(kind.table, part, column, codes, kind.words.get(column))
                    arguments.append((column, process.words(codes, meanings, as_json_text)))
        for column in kind.pairs:
            arguments += _pairs(process, part, column)
        if kind.side == "kernel_spans" and "static_shared_bytes" in side and "dynamic_shared_bytes" in side:
            static, dynamic = side["static_shared_bytes"], side["dynamic_shared_bytes"]
            side["shared_memory_bytes"] = (static[0] + dynamic[0], there(static) & there(dynamic))
        tables = {kind.side: side} if kind.side else {}
        self.taken[kind.table] += process.spans(
            self.locations(process, part, kind.row),
            start,
            part.integers_or("end"),
            self._region_numbers(process, part, kind),
            tables,
            arguments,
        )

    def texts_of(
        self, process: ImportProcess, part: Batch, table: str, column: str, words: Mapping[int, str] | None = None
    ) -> Cells:
        """Return the meaning of the cells of a column, as texts."""
        codes = part.cells(column)
        return process.words(codes, self.meanings(table, part, column, codes, words))

    def _region_numbers(self, process: ImportProcess, part: Batch, kind: SpanTable) -> npt.NDArray[np.uint32]:
        names = [name for name in kind.names if name in part.columns]
        if not names:
            return np.full(part.count, process.region(*kind.naming({})), dtype=np.uint32)
        columns = [part.cells(name) for name in names]
        first, codes = combinations(columns)
        meanings = [
            self.meanings(kind.table, part, name, column[first], kind.words.get(name))
            for name, column in zip(names, columns, strict=True)
        ]
        made = []
        for cells in zip(*(column[first].tolist() for column in columns), strict=True):
            values = (meaning.get(cell) for meaning, cell in zip(meanings, cells, strict=True))
            made.append(process.region(*kind.naming(dict(zip(names, values, strict=True)))))
        return np.array(made, dtype=np.uint32)[codes]

    def marks(self, table: str, time: str, names: tuple[str, ...], category: str, row: str = "") -> None:
        """Import a table whose rows have one time, in the column `time`, as marks."""
        for batch in self.batches(table):
            for process, part in self.by_process(batch):
                self.instants(process, part, table, time, names, category, row)

    def instants(
        self,
        process: ImportProcess,
        part: Batch,
        table: str,
        time: str,
        names: tuple[str, ...],
        category: str,
        row: str = "",
    ) -> None:
        """Add rows with one time as marks; their other columns become JSON."""
        times = part.integers(time)
        if times is None:
            self.counters["events_without_time"] += part.count
            return
        rows = self._as_dictionaries(table, part, {time, *self._dialect.placing})
        titles = []
        for one in rows:
            given = [one.pop(name) for name in names if name in one]
            titles.append(process.text(str(given[0] if given and given[0] is not None else category)))
        arguments = np.array([process.text(as_json_text(one)) for one in rows], dtype=np.int64)
        names_of_rows = np.array(titles, dtype=np.int64)
        self.taken[table] += process.marks(
            self.locations(process, part, row), times, names_of_rows, category, arguments
        )

    def _as_dictionaries(self, table: str, part: Batch, but: Collection[str] = ()) -> list[dict[str, object]]:
        """Return rows as the meanings of their cells by column, those of some columns left out."""
        rows: list[dict[str, object]] = [{} for _ in range(part.count)]
        for column in part.columns:
            if column in but:
                continue
            codes = part.cells(column)
            meanings = self.meanings(table, part, column, codes)
            for row, code in zip(rows, codes.tolist(), strict=True):
                if code != NONE:
                    row[column] = meanings.get(code)
        return rows

    def property(self, properties: dict[str, object], table: str) -> None:
        """Keep a table without times as it is, up to a bound; the number of rows left out is counted."""
        rows: list[dict[str, object]] = []
        for batch in islice(self.batches(table, rows=_MOST_PROPERTY_ROWS), 1):
            for row in self._as_dictionaries(table, batch):
                rows.append({column: _short(value) for column, value in row.items()})
        if len(rows) == _MOST_PROPERTY_ROWS:
            self.counters["rows_left_out"] += max(0, self.database.count(table) - len(rows))
        size = len(json.dumps(properties, default=str)) + len(json.dumps(rows, default=str))
        if size > _MOST_PROPERTIES_BYTES:
            self.counters["rows_left_out"] += len(rows)
        elif rows and all(row.keys() == {"name", "value"} for row in rows):
            properties[table] = {str(row["name"]): row["value"] for row in rows}
        elif rows:
            properties[table] = rows

    def finish(self, name_of: Callable[[int], str], **facts: Any) -> Imported:
        """Write every process, and return the facts about the file; see `finish_all`."""
        if not self.processes:
            self.process(self.default_key)
        self._count_records()
        self._count_columns()
        counters = self.counters + self.database.counters
        return finish_all(self.processes, self._source, name_of, counters=counters, **facts)

    def made_of(self, derived: str, tables: Sequence[str]) -> None:
        """Note that each row of a derived table is a row of one of some tables of the file."""
        self._made_of[derived] = tables

    def left_out(self, table: str, kind: str, rows: int) -> None:
        """Note that so many rows of a table, of a kind with a name of its own, are left out on purpose."""
        self._left_out.setdefault(table, Counter())[kind] += rows

    def kept_unknown(self, table: str) -> None:
        """Note that nobody here knows a table: its rows are kept by what its columns are called."""
        self._unknown.add(table)

    def joined(self, table: str, rows: int) -> None:
        """Note that so many rows of a table are read as parts of others, in a table derived in its place."""
        self._joined[table] += rows

    def _count_columns(self) -> None:
        """Name the columns that nobody reads, but for the words of numbers; of very many, count the rest."""
        found = [] if self.stopped else self.database.columns_not_read()
        columns = [each for each in found if not each.startswith("ENUM_")]
        self.counters.update(dict.fromkeys((NOT_READ + each for each in columns[:_MOST_COLUMNS]), 1))
        self.counters["columns_not_kept"] += max(len(columns) - _MOST_COLUMNS, 0)

    def _count_records(self) -> None:
        """Count the rows of all tables with times: what became nothing was left out, whatever the reason."""
        for derived, tables in self._made_of.items():
            taken = self.taken.pop(derived, 0)
            for name in filter(self.database.tables.__contains__, tables):
                part = min(taken, max(0, self.database.count(name) - self.taken[name]))
                self.taken[name] += part
                taken -= part
        for name, table in self.database.tables.items():
            if not table.of_file or not TIMES & table.columns.keys():
                continue
            rows = self._rows[name] if name in self._rows else self.database.count(name)
            rows += self._joined[name]
            taken = min(self.taken[name] + self._joined[name], rows)
            self.counters[RECORDS_UNKNOWN if name in self._unknown else RECORDS_TAKEN] += taken
            self.counters[RECORDS_LEFT_OUT] += rows - taken
            named = self._left_out.get(name, Counter())
            self.counters[LEFT_OUT + name] += max(0, rows - taken - named.total())
            for kind, number in named.items():
                self.counters[LEFT_OUT + kind] += number
            if name in self._unknown:
                self.counters[UNKNOWN + name] += taken
                self.counters["rows_of_unknown_tables"] += taken


def as_json_text(value: object) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _pairs(process: ImportProcess, part: Batch, column: str) -> list[tuple[str | Cells, Cells]]:
    """Return the arguments in a column that holds a JSON list of pairs: the first one of each row, the second, ..."""
    texts = enumerate(part.words.get(column, []))
    rows = {code: json.loads(text) for code, text in texts if isinstance(text, str)}
    codes = part.cells(column)
    found: list[tuple[str | Cells, Cells]] = []
    for place in range(max(map(len, rows.values()), default=0)):
        there_ = {code: pairs[place] for code, pairs in rows.items() if place < len(pairs)}
        keys = process.words(codes, {code: name for code, (name, _) in there_.items()})
        values = process.words(codes, {code: value for code, (_, value) in there_.items()}, as_json_text)
        found.append((keys, values))
    return found


def there(cells: Cells) -> npt.NDArray[np.uint8]:
    """Return which cells of a column are there."""
    return np.ones(len(cells[0]), dtype=np.uint8) if cells[1] is None else cells[1]


def _short(value: object) -> object:
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        if len(text) > _MOST_PROPERTY_TEXT:
            return f"{text[:_MOST_PROPERTY_TEXT]} ... ({len(text)} characters)"
        return text
    return value
