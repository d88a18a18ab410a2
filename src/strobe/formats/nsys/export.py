"""One Nsight Systems export: the numbering of its processes and threads, and the meaning of the numbers in cells."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from strobe.formats.nsys.tables import CUDA_BACKTRACE, RUNTIME, TEXT_NUMBERS
from strobe.formats.reading.database_tables import TableImport
from strobe.formats.reading.import_process import ImportProcess
from strobe.formats.reading.sqlite_input import NONE, Batch, SqliteInput, Texts, Whole
from strobe.model.plugins import ImportSource, ImportTarget


class Export:
    """The dialect of the export's `tables`. `thread_names` are by global id."""

    placing = frozenset(("start", "end", "timestamp", "globalPid", "globalTid"))

    def __init__(self, source: ImportSource, target: ImportTarget, database: SqliteInput) -> None:
        self.tables = TableImport(source, target, database, Texts(database, "StringIds", "id", "value"), self)
        named = {
            thread: name
            for thread, name in database.pairs("ThreadNames", "globalTid", "nameId").items()
            if isinstance(name, int)
        }
        texts = self.tables.texts.of(named.values())
        self.thread_names = {thread: texts[name] for thread, name in named.items()}
        first = (RUNTIME, "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS")
        self.tables.choose_default_key(first, ("globalTid", "globalPid"))
        self._join_backtraces()

    def _join_backtraces(self) -> None:
        """Give calls the call stacks that `--cudabacktrace` took of them.

        A backtrace is a row of its own among the calls, a little longer than the call around which it was taken. One
        without its call stays as it is.
        """
        database, wanted = self.tables.database, {"eventClass", "globalTid", "correlationId", "callchainId"}
        described = database.tables.get(RUNTIME)
        if described is None or not wanted <= described.columns.keys():
            return
        classes = database.pairs("ENUM_NSYS_EVENT_CLASS", "id", "name")
        numbers = [number for number, name in classes.items() if name == "TRACE_PROCESS_EVENT_CUDABACKTRACE"]
        kind = numbers[0] if numbers else CUDA_BACKTRACE
        if next(database.query(f"SELECT 1 FROM {RUNTIME} WHERE eventClass = {kind} LIMIT 1"), None) is None:
            return
        joined = 'LEFT JOIN "strobe {0}" {0} ON {0}.globalTid = r.globalTid AND {0}.correlationId = r.correlationId'
        keys = {"globalTid": "INTEGER", "correlationId": "INTEGER"}
        parts = {"backtraces": (f"= {kind}", ", max(callchainId) AS callchainId"), "calls": (f"<> {kind}", "")}
        for name, (which, more) in parts.items():
            statement = f"SELECT globalTid, correlationId{more} FROM {RUNTIME} WHERE eventClass {which} GROUP BY 1, 2"
            database.derive(f"strobe {name}", statement, keys | ({"callchainId": "INTEGER"} if more else {}))
        cells = ", ".join(
            "coalesce(nullif(r.callchainId, 0), backtraces.callchainId)" if each == "callchainId" else f'r."{each}"'
            for each in described.columns
        )
        rows = database.count(RUNTIME)
        database.derive(
            RUNTIME,  # in its place
            f"SELECT {cells} FROM main.{RUNTIME} r {joined.format('backtraces')} {joined.format('calls')} "
            f"WHERE r.eventClass <> {kind} OR calls.globalTid IS NULL ORDER BY r.rowid",
            described.columns,
        )
        database.tables[RUNTIME] = described
        self.tables.joined(RUNTIME, rows - database.count(RUNTIME))
        for name in parts:
            del database.tables[f"strobe {name}"]  # no events of their own

    def referenced(self, table: str, column: str, numbers: list[int]) -> Mapping[int, object] | None:
        """Return texts and call chains by their numbers."""
        refers = self.tables.database.tables[table].references.get(column, "")
        if refers == "StringIds" or column in TEXT_NUMBERS:
            return self.tables.texts.of(numbers)
        if column == "callchainId" and not refers.endswith("CALLCHAINS"):
            refers = "OSRT_CALLCHAINS" if table == "OSRT_API" else "CUDA_CALLCHAINS"
        if refers.endswith("CALLCHAINS"):
            return self.chains(refers, [number for number in numbers if number])
        return None

    def pid(self, key: int) -> int:
        """Return the process's number: the lower part of its key."""
        return key & 0xFFFFFF

    def chains(self, table: str, numbers: list[int]) -> dict[int, str | None]:
        """Return call chains as texts, a line each frame, outermost first.

        Of a frame its function and module are kept. Its address would make every chain a text of its own: the number of
        frames whose address was left out is counted.
        """
        columns = self.tables.database.tables[table].columns if table in self.tables.database.tables else {}
        wanted = [each if each in columns else "NULL" for each in ("id", "stackDepth", "symbol", "module")]
        if not numbers or "id" not in columns or "symbol" not in columns:
            return {}
        keyed = self.tables.database.keyed(table, "id", [each for each in wanted[1:] if each in columns])
        found: dict[int, list[tuple[int, int, int]]] = {}
        for cells in self.tables.database.looked_up(keyed, "id", wanted, numbers):
            number, depth, symbol, module = (cell if isinstance(cell, int) else NONE for cell in cells)
            found.setdefault(number, []).append((depth, symbol, module))
        self.tables.counters["frame_addresses_left_out"] += sum(map(len, found.values()))
        texts = self.tables.texts.of(
            {each for frames_of in found.values() for frame in frames_of for each in frame[1:]}
        )

        def line(symbol: int, module: int) -> str:
            where = f" ({texts[module]})" if texts.get(module) else ""
            return f"{texts.get(symbol) or '<unknown>'}{where}".replace("\n", " ")

        return {
            number: "\n".join(line(symbol, module) for _, symbol, module in sorted(frames_of, reverse=True))
            for number, frames_of in found.items()
        }

    # Processes and locations

    def process_keys(self, batch: Batch) -> Whole:
        """Return the process of each row: the number above its thread's, or NONE.

        A global id is VM (bits 48 to 55), process (24 to 47), thread (0 to 23).
        """
        given = [ids for ids in map(batch.integers, ("globalPid", "globalTid")) if ids is not None]
        keys = np.full(batch.count, NONE, dtype=np.int64)
        for ids in reversed(given):
            sound = (ids != NONE) & ((ids >> 24 & 0xFFFFFF) != 0)
            keys = np.where(sound, ids >> 24, keys)
        return keys

    def threads(self, part: Batch) -> Whole | None:
        """Return the global id of the thread of each row."""
        return part.integers("globalTid")

    def thread_name(self, thread: int) -> tuple[str, int]:
        """Return the name of a thread, and its number: the lower part of its global id."""
        tid = thread & 0xFFFFFF
        return self.thread_names.get(thread) or f"thread {tid}", tid

    def process_of(self, global_tid: int) -> ImportProcess:
        """Return the process of a thread."""
        return self.tables.process(global_tid >> 24 if global_tid >> 24 & 0xFFFFFF else self.tables.default_key)
