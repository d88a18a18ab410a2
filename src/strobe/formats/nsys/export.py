"""One Nsight Systems export: the numbering of its processes and threads, and the meaning of the numbers in cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from strobe.formats.nsys.tables import RUNTIME, TEXT_NUMBERS
from strobe.formats.reading.database_tables import TableImport
from strobe.formats.reading.import_process import ImportProcess
from strobe.formats.reading.sqlite_input import NONE, Batch, SqliteInput, Texts, Whole, factor
from strobe.model.plugins import ImportSource, ImportTarget


class Export:
    """The dialect of the export's `tables`. `thread_names` are by global id, `ranks` by the key of a process."""

    placing = frozenset(("start", "end", "timestamp", "globalPid", "globalTid"))

    def __init__(self, source: ImportSource, target: ImportTarget, database: SqliteInput) -> None:
        self.tables = TableImport(source, target, database, Texts(database, "StringIds", "id", "value"), self)
        named = _numbers(database.pairs("ThreadNames", "globalTid", "nameId"))
        texts = self.tables.texts.of(named.values())
        self.thread_names = {thread: texts[name] for thread, name in named.items()}
        ranks = _numbers(database.pairs("MPI_RANKS", "globalPid", "rank"))
        self.ranks = {process >> 24: rank for process, rank in ranks.items()}
        first = self._keys_of((RUNTIME, "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS"))
        self.tables.default_key = next(first, 0)

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
        frames = [each for each in ("symbol", "module", "stackDepth") if each in columns]
        if not numbers or "id" not in columns or "symbol" not in frames:
            return {}
        keyed = self.tables.database.keyed(table, "id", frames)
        found: dict[int, list[tuple[int, int, int]]] = {}
        for at in range(0, len(numbers), 500):
            part = numbers[at : at + 500]
            query = (
                f"SELECT id, {'stackDepth' if 'stackDepth' in frames else '0'}, symbol, "
                f"{'module' if 'module' in frames else 'NULL'} FROM {keyed} WHERE id IN ({', '.join('?' * len(part))})"
            )
            for cells in self.tables.database.query(query, part):
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

    def _keys_of(self, tables: tuple[str, ...]) -> Iterator[int]:
        for table in tables:
            for batch in self.tables.database.batches(table, ("globalTid", "globalPid"), rows=64):
                yield from (int(key) for key in self.process_keys(batch) if key != NONE)
                break

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

    def locations(self, process: ImportProcess, part: Batch, row: str) -> npt.NDArray[np.uint32]:
        """Return the location of each row: its stream, or its thread; with `row`, one of that name beside it."""
        on_stream = process.streams(part, row)
        thread = part.integers("globalTid")
        if on_stream is not None:
            return on_stream
        if thread is not None:
            threads, codes = factor(thread)
            made = [self.thread(process, int(each), row) for each in threads]
        else:
            made, codes = [process.location(("row", row), row, 0, "task")], np.zeros(part.count, dtype=np.int64)
        return np.array(made, dtype=np.uint32)[codes]

    def thread(self, process: ImportProcess, global_tid: int, row: str = "") -> int:
        """Return the location of a thread; with `row`, one of that name beside it."""
        if global_tid == NONE:
            return process.location(("row", row), row or "unknown thread", 0, "task")
        tid = global_tid & 0xFFFFFF
        name = self.thread_names.get(global_tid) or f"thread {tid}"
        return process.location(("thread", global_tid, row), f"{name} {row}".rstrip(), tid, "task" if row else "thread")

    def process_of(self, global_tid: int) -> ImportProcess:
        """Return the process of a thread."""
        return self.tables.process(global_tid >> 24 if global_tid >> 24 & 0xFFFFFF else self.tables.default_key)


def _numbers(found: dict[int, object]) -> dict[int, int]:
    return {key: value for key, value in found.items() if isinstance(value, int)}
