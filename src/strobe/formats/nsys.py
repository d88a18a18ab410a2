"""NVIDIA Nsight Systems: the SQLite files that `nsys export --type sqlite` writes, schema 2.x to 3.x."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from strobe.model.emit_nvtx import of_emit_nvtx
from strobe.model.kinds import mpi_role
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.store.import_process import Cells, ImportProcess, present
from strobe.store.import_switches import Switches
from strobe.store.import_tables import Region, TableImport, TableKind, there
from strobe.store.nsys_tables import (
    KINDS,
    MEMORY_KINDS,
    NVTX_CATEGORIES,
    NVTX_DOMAIN,
    NVTX_PUSH_POP,
    NVTX_START_END,
    NVTX_THREADS,
    OF_MESSAGE,
    PARADIGMS,
    PAYLOADS,
    RUNTIME,
    TEXT_NUMBERS,
    THREAD_STATES,
    named,
)
from strobe.store.sqlite_input import MAGIC, NONE, Batch, SqliteInput, Texts, Whole, combinations, factor

# No table but StringIds is always there, and columns come and go with versions: whatever is read is asked for first.
# What no line here knows is kept all the same: tables with a start and an end become spans, those with one time become
# marks, the others become properties; columns without a place become arguments.

_CHAIN_BATCH = 4096  # samples whose call chains, of some dozens of frames each, are in memory


def sniff(head: bytes) -> bool:
    """Say whether it is a SQLite file with the table of texts that every export begins with."""
    return head.startswith(MAGIC) and b"StringIds" in head


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import every table of an export.

    Times are the file's own: nanoseconds since the session began; `base_ns` is when that was. A thread's calls and push
    ranges share its location; start/end ranges, times on a processor, waits on GPU work and the profiler's own overhead
    have locations beside it, because they do not nest into calls. Raises ValueError where it is no database.
    """
    database = SqliteInput(source.local_path())
    try:
        if "StringIds" not in database.tables:
            raise ValueError("it has no table StringIds")
        return _Reader(source, target, database).read()
    finally:
        database.close()


class _Reader:
    """One export: what its tables mean, and how they refer to each other. It is the dialect of its TableImport."""

    placing = frozenset(("start", "end", "timestamp", "globalPid", "globalTid"))

    def __init__(self, source: ImportSource, target: ImportTarget, database: SqliteInput) -> None:
        self._tables = TableImport(source, target, database, Texts(database, "StringIds", "id", "value"), self)
        named = _numbers(database.pairs("ThreadNames", "globalTid", "nameId"))
        texts = self._tables.texts.of(named.values())
        self._thread_names = {thread: texts[name] for thread, name in named.items()}
        ranks = _numbers(database.pairs("MPI_RANKS", "globalPid", "rank"))
        self._ranks = {process >> 24: rank for process, rank in ranks.items()}
        self._domains: dict[tuple[int, int], str] = {}
        self._categories: dict[tuple[int, int, int], str] = {}
        self._nvtx_definitions()
        first = self._keys_of((RUNTIME, "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS"))
        self._tables.default_key = next(first, 0)

    def read(self) -> Imported:
        handled = {"StringIds", "PROCESSES", "ThreadNames", "MPI_RANKS", "NVTX_EVENTS", "SCHED_EVENTS"}
        for kind in KINDS:
            self._tables.spans(kind)
            handled.add(kind.table)
        self._messages()
        self._nvtx()
        self._scheduling()
        self._samples()
        self._gpu_metrics()
        self._allocations()
        handled |= {"COMPOSITE_EVENTS", "GPU_METRICS", "CUDA_GPU_MEMORY_USAGE_EVENTS"}
        properties: dict[str, object] = {}
        for name, table in self._tables.database.tables.items():
            columns = table.columns
            if name in handled or name.startswith("ENUM_") or name.endswith("CALLCHAINS") or name == "UnwindMethodType":
                continue
            if "start" in columns and "end" in columns:
                self._tables.spans(self._other_kind(name))
            elif "start" in columns or "timestamp" in columns:
                self._marks(name, "start" if "start" in columns else "timestamp")
            else:
                self._tables.property(properties, name)
        return self._finished(properties)

    # Rows and what they mean

    def said(self, table: str, column: str, numbers: list[int]) -> Mapping[int, object] | None:
        """Return texts and call chains by their numbers."""
        refers = self._tables.database.tables[table].references.get(column, "")
        if refers == "StringIds" or column in TEXT_NUMBERS:
            return self._tables.texts.of(numbers)
        if column == "callchainId" and not refers.endswith("CALLCHAINS"):
            refers = "OSRT_CALLCHAINS" if table == "OSRT_API" else "CUDA_CALLCHAINS"
        if refers.endswith("CALLCHAINS"):
            return self._chains(refers, [number for number in numbers if number])
        return None

    def pid(self, key: int) -> int:
        """Return the process's number: the lower part of its key."""
        return key & 0xFFFFFF

    def _chains(self, table: str, numbers: list[int]) -> dict[int, str | None]:
        """Return call chains as texts, a line each frame, outermost first.

        Of a frame its function and module are kept. Its address would make every chain a text of its own: the number of
        frames whose address was left out is counted.
        """
        columns = self._tables.database.tables[table].columns if table in self._tables.database.tables else {}
        frames = [each for each in ("symbol", "module", "stackDepth") if each in columns]
        if not numbers or "id" not in columns or "symbol" not in frames:
            return {}
        keyed = self._tables.database.keyed(table, "id", frames)
        found: dict[int, list[tuple[int, int, int]]] = {}
        for at in range(0, len(numbers), 500):
            part = numbers[at : at + 500]
            query = (
                f"SELECT id, {'stackDepth' if 'stackDepth' in frames else '0'}, symbol, "
                f"{'module' if 'module' in frames else 'NULL'} FROM {keyed} WHERE id IN ({', '.join('?' * len(part))})"
            )
            for cells in self._tables.database.query(query, part):
                number, depth, symbol, module = (cell if isinstance(cell, int) else NONE for cell in cells)
                found.setdefault(number, []).append((depth, symbol, module))
        self._tables.counters["frame_addresses_left_out"] += sum(map(len, found.values()))
        texts = self._tables.texts.of(
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
            for batch in self._tables.database.batches(table, ("globalTid", "globalPid"), rows=64):
                yield from (int(key) for key in self.process_keys(batch) if key != NONE)
                break

    def process_keys(self, batch: Batch) -> Whole:
        """Return which process each row is of: the number above its thread's, or NONE where it is of none.

        A global id is VM (bits 48 to 55), process (24 to 47), thread (0 to 23).
        """
        given = [ids for ids in map(batch.integers, ("globalPid", "globalTid")) if ids is not None]
        keys = np.full(batch.count, NONE, dtype=np.int64)
        for ids in reversed(given):
            sound = (ids != NONE) & ((ids >> 24 & 0xFFFFFF) != 0)
            keys = np.where(sound, ids >> 24, keys)
        return keys

    def locations(self, process: ImportProcess, part: Batch, row: str) -> npt.NDArray[np.uint32]:
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
        if global_tid == NONE:
            return process.location(("row", row), row or "unknown thread", 0, "task")
        tid = global_tid & 0xFFFFFF
        name = self._thread_names.get(global_tid) or f"thread {tid}"
        return process.location(("thread", global_tid, row), f"{name} {row}".rstrip(), tid, "task" if row else "thread")

    def _process_of(self, global_tid: int) -> ImportProcess:
        return self._tables.process(global_tid >> 24 if global_tid >> 24 & 0xFFFFFF else self._tables.default_key)

    # Spans

    def _other_kind(self, table: str) -> TableKind:
        """Return how a table that we do not know becomes spans: named by its texts if it has some, else by itself."""
        columns = self._tables.database.tables[table].columns
        names = tuple(each for each in ("nameId", "textId", "name", "text") if each in columns)[:1]
        title = table.lower().replace("_", " ")
        paradigm = next((each for start, each in PARADIGMS if table.startswith(start)), "other")
        # Calls have names and nest into each other; whatever else has a start and an end gets a place of its own.
        if names:
            return TableKind(table, names, named(paradigm, "other", title))
        return TableKind(table, (), lambda _: (title, paradigm, "other", ""), row=title)

    # NVTX

    def _nvtx_definitions(self) -> None:
        """Read what ranges refer to: domains, categories, names of threads."""
        table = self._tables.database.tables.get("NVTX_EVENTS")
        if table is None or "eventType" not in table.columns or "globalTid" not in table.columns:
            return
        columns = [
            each if each in table.columns else "NULL"
            for each in ("eventType", "globalTid", "domainId", "category", "text", "textId")
        ]
        kinds = ", ".join(map(str, (*NVTX_CATEGORIES, *NVTX_THREADS, NVTX_DOMAIN)))
        query = f"SELECT {', '.join(columns)} FROM NVTX_EVENTS WHERE eventType IN ({kinds})"
        for kind, thread, domain, category, text, text_id in self._tables.database.query(query):
            if text is None and isinstance(text_id, int):
                text = self._tables.texts.of([text_id])[text_id]
            if not isinstance(thread, int) or text is None:
                continue
            process, within = thread >> 24, domain if isinstance(domain, int) else 0
            if kind == NVTX_DOMAIN:
                self._domains[process, within] = str(text)
            elif kind in NVTX_THREADS:
                self._thread_names[thread] = str(text)
                rank = re.fullmatch(r"MPI Rank (\d{1,9})", str(text))
                if rank:
                    self._ranks.setdefault(process, int(rank[1]))
            elif isinstance(category, int):
                self._categories[process, within, category] = str(text)

    def _nvtx(self) -> None:
        for batch in self._tables.batches("NVTX_EVENTS"):
            event = batch.integers("eventType")
            if event is None:
                self._tables.counters["events_without_time"] += batch.count
                continue
            push_pop, start_end = np.isin(event, NVTX_PUSH_POP), np.isin(event, NVTX_START_END)
            defines = np.isin(event, (*NVTX_CATEGORIES, *NVTX_THREADS, NVTX_DOMAIN))
            # Start/end ranges need not nest, nor end on the thread that began them.
            for chosen, row in ((push_pop, ""), (start_end, "ranges")):
                if chosen.any():
                    for process, part in self._tables.by_process(batch if chosen.all() else batch.where(chosen)):
                        self._ranges(process, part, row)
            rest = ~(push_pop | start_end | defines)
            if rest.any():
                for process, part in self._tables.by_process(batch.where(rest)):
                    self._tables.instants(process, part, "NVTX_EVENTS", "start", ("text", "textId"), "nvtx")

    def _ranges(self, process: ImportProcess, part: Batch, row: str) -> None:
        absent = np.full(part.count, NONE, dtype=np.int64)
        text, text_id = part.coded.get("text", absent), part.integers("textId")
        text_id = absent if text_id is None else text_id
        thread = part.integers("globalTid")
        thread = absent if thread is None else thread
        domain, category = part.integers("domainId"), part.integers("category")
        domain = np.zeros(part.count, dtype=np.int64) if domain is None else np.where(domain == NONE, 0, domain)
        category = absent if category is None else category
        first, codes = combinations([text, text_id, domain, thread >> 24])
        by_number = self._tables.texts.of({int(text_id[i]) for i in first if text_id[i] != NONE})
        regions, operators = [], []
        for i in first:
            said = by_number.get(int(text_id[i])) if text[i] == NONE else str(part.words["text"][int(text[i])])
            within = self._domains.get((int(thread[i]) >> 24, int(domain[i])), "")
            name, operator = of_emit_nvtx(said or "<unnamed range>")
            regions.append(process.region(*_range_region(name, within, operator)))
            operators.append(operator)
        tables: dict[str, dict[str, Cells]] = {}
        side: dict[str, Cells] = {}
        # Categories are numbers of a domain of a process.
        if (category != NONE).any():
            of, places = combinations([thread >> 24, domain, category])
            names = {
                place: self._categories.get(
                    (int(thread[i]) >> 24, int(domain[i]), int(category[i])), str(int(category[i]))
                )
                for place, i in enumerate(of)
                if category[i] != NONE
            }
            side["category"] = process.words(places, names)
        for column, to in (("color", "color"), ("rangeId", "range_id")):
            values = part.integers(column)
            if values is not None and (values != NONE).any():
                side[to] = present(values)
        ended_by = part.integers("endGlobalTid")
        if ended_by is not None:
            other = np.where((ended_by == thread) | (ended_by == NONE), NONE, ended_by & 0xFFFFFF)
            if (other != NONE).any():
                side["end_thread_id"] = present(other)
        side.update(self._payloads(process, part))
        for column in ("jsonText", "jsonTextId"):
            given = part.coded.get(column, part.whole.get(column))
            if given is not None and (given != NONE).any():
                meanings = self._tables.meanings("NVTX_EVENTS", part, column, factor(given)[0], {})
                found = process.words(given, {k: None if v is None else str(v) for k, v in meanings.items()})
                side["json"] = _either(side["json"], found) if "json" in side else found
        if side:
            tables["range_spans"] = side
        if any(operators):
            tables["operator_spans"] = _operator_cells(process, operators, codes)
        arguments: list[tuple[str, Cells]] = []
        known = {"start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId", "category"}
        known |= {"color", "rangeId", "jsonText", "jsonTextId", *PAYLOADS}
        kind = TableKind("NVTX_EVENTS", (), named("nvtx", "range"))
        for column in (*part.whole, *part.coded):
            given = part.whole[column] if column in part.whole else part.coded[column]
            if column not in known and (given != NONE).any():
                arguments.append((column, self._tables.as_json(process, part, kind, column, given)))
        start, end = part.integers("start"), part.integers("end")
        process.spans(
            self.locations(process, part, row),
            absent if start is None else start,
            absent if end is None else end,
            np.array(regions, dtype=np.uint32)[codes],
            tables,
            arguments,
        )

    def _payloads(self, process: ImportProcess, part: Batch) -> dict[str, Cells]:
        """Return the numbers that ranges carry as decimal texts, and their types."""
        numbers = np.zeros(part.count, dtype=np.int64)
        types = np.zeros(part.count, dtype=np.int64)
        there = np.zeros(part.count, dtype=np.uint8)
        for column in PAYLOADS:
            codes = part.whole.get(column, part.coded.get(column))
            if codes is None or not (codes != NONE).any():
                continue
            mask = 2**64 - 1 if column == "uint64Value" else -1
            said = {
                int(code): str(part.words[column][int(code)] if column in part.coded else int(code) & mask)
                for code in factor(codes)[0]
                if code != NONE
            }
            values, valid = process.words(codes, said)
            has = np.ones(part.count, dtype=bool) if valid is None else valid.astype(bool)
            numbers, types = np.where(has, values, numbers), np.where(has, process.text(column[:-5]), types)
            there = there | has.astype(np.uint8)
        return {"payload": (numbers, there), "payload_type": (types, there)} if there.any() else {}

    # What is no call

    def _messages(self) -> None:
        """Add the messages whose moment is known: sends when they are called, receives when they have returned.

        A receive that does not wait (MPI_Irecv) is complete at some later call, which is not told: see its span.
        """
        for batch in self._tables.batches("MPI_P2P_EVENTS"):
            start, end, named = batch.integers("start"), batch.integers("end"), batch.integers("textId")
            if start is None or end is None or named is None:
                continue
            unique, places = factor(named)
            names = [str(self._tables.texts.of([number])[number] or "") for number in unique.tolist()]
            sends = np.array([bool(re.fullmatch(r"MPI_I?[bsr]?send", each, re.IGNORECASE)) for each in names])[places]
            receives = np.array([bool(re.fullmatch(r"MPI_M?recv", each, re.IGNORECASE)) for each in names])[places]
            for chosen, time, direction in ((sends, start, "send"), (receives, end, "receive")):
                if not chosen.any():
                    continue
                batch.whole["moment"] = time
                for process, part in self._tables.by_process(batch.where(chosen)):
                    word = np.full(part.count, process.text(direction), dtype=np.int64)
                    cells: dict[str, Cells] = {"time_ns": (part.whole["moment"], None), "direction": (word, None)}
                    for column, to in OF_MESSAGE.items():
                        values = part.integers(column)
                        if values is not None:
                            cells[to] = present(values)
                    communicator = part.integers("commHandle")
                    if communicator is not None:
                        said = {number: str(number) for number in factor(communicator)[0].tolist()}
                        cells["communicator"] = process.words(communicator, said)
                    process.rows("messages", self.locations(process, part, ""), cells)

    def _scheduling(self) -> None:
        table = self._tables.database.tables.get("SCHED_EVENTS")
        if table is None or self._tables.stopped or not {"start", "globalTid", "isSchedIn"} <= table.columns.keys():
            return
        also = [str(each) for each in ("cpu", "threadState", "threadBlock") if each in table.columns]
        words = {each: self._tables.enumeration(table.references.get(each, "")) for each in also}
        words["threadState"] = words.get("threadState") or THREAD_STATES
        switches = Switches(
            lambda thread: (process := self._process_of(thread), self.thread(process, thread, "scheduling"))
        )
        query = (
            f"SELECT globalTid, start, isSchedIn, {', '.join(also) or 'NULL'} FROM SCHED_EVENTS "
            "WHERE typeof(globalTid) = 'integer' AND typeof(start) = 'integer' ORDER BY globalTid, start, rowid"
        )
        for thread, start, switched_in, *cells in self._tables.database.query(query):
            told = {
                name: words[name].get(cell, cell) if isinstance(cell, int) else cell
                for name, cell in zip(also, cells, strict=False)
                if cell is not None
            }
            switches.add(int(str(thread)), int(str(start)), told, switched_in=bool(switched_in))
        switches.finish()

    def _samples(self) -> None:
        """Add the call stacks that the sampler saw."""
        columns = ("id", "start", "cpu", "threadState", "globalTid", "cpuCycles")
        for batch in self._tables.batches("COMPOSITE_EVENTS", columns, rows=_CHAIN_BATCH):
            for process, part in self._tables.by_process(batch):
                number, time = part.integers("id"), part.integers("start")
                if time is None:
                    continue
                cells: dict[str, Cells] = {"time_ns": (time, None)}
                if number is not None:
                    chains = self._chains("SAMPLING_CALLCHAINS", [int(each) for each in number])
                    cells["call_stack"] = process.words(number, chains)
                state = part.integers("threadState")
                if state is not None:
                    told = self._tables.database.tables["COMPOSITE_EVENTS"].references.get("threadState", "")
                    words = self._tables.enumeration(told) or THREAD_STATES
                    names = {int(each): words.get(int(each), str(int(each))) for each in factor(state)[0]}
                    cells["state"] = process.words(state, names)
                for column, to in (("cpu", "cpu"), ("cpuCycles", "weight")):
                    values = part.integers(column)
                    if values is not None:
                        cells[to] = present(values)
                process.rows("samples", self.locations(process, part, ""), cells)

    def _gpu_metrics(self) -> None:
        """Add GPU metrics: named by TARGET_INFO_GPU_METRICS; the last byte of a type is the number of the GPU."""
        names: dict[tuple[int, int], str] = {}
        for batch in self._tables.database.batches("TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName")):
            type_id, metric_id = batch.integers("typeId"), batch.integers("metricId")
            if type_id is None or metric_id is None or "metricName" not in batch.coded:
                break
            for kind, metric, code in zip(type_id, metric_id, batch.coded["metricName"], strict=True):
                if code != NONE:
                    names[int(kind), int(metric)] = str(batch.words["metricName"][int(code)])
        for batch in self._tables.batches("GPU_METRICS"):
            time, value = batch.integers("timestamp"), batch.reals("value")
            type_id, metric_id = batch.integers("typeId"), batch.integers("metricId")
            if time is None or value is None or type_id is None or metric_id is None:
                self._tables.counters["events_without_time"] += batch.count
                continue
            process = self._tables.process(self._tables.default_key)
            first, codes = combinations([type_id, metric_id])
            for place, i in enumerate(first):
                kind, metric = int(type_id[i]), int(metric_id[i])
                full = f"GPU {kind & 0xFF}: {names.get((kind, metric), f'metric {metric}')}"
                found = re.fullmatch(r"(.*\S)\s*\[(.*)\]", full)
                chosen = (codes == place) & ~np.isnan(value)
                self._tables.counters["unreadable_values"] += int(((codes == place) & np.isnan(value)).sum())
                name, unit = (found[1], found[2]) if found else (full, "")
                process.samples(name, unit, time[chosen], value[chosen])

    def _allocations(self) -> None:
        """Add allocations of GPU memory: one location a GPU, because their thread is not told."""
        for batch in self._tables.batches("CUDA_GPU_MEMORY_USAGE_EVENTS"):
            for process, part in self._tables.by_process(batch):
                time, size = part.integers("start"), part.integers("bytes")
                if time is None or size is None:
                    continue
                operation, device = part.integers("memoryOperationType"), part.integers("deviceId")
                freed = np.zeros(part.count, dtype=bool) if operation is None else operation == 1
                cells: dict[str, Cells] = {
                    "time_ns": (time, None),
                    "size_bytes": present(np.where(freed & (size != NONE), -size, size)),
                    "device_type": (np.ones(part.count, dtype=np.int64), None),
                }
                whole = {"address": "address", "contextId": "context", "correlationId": "correlation"}
                for column, to in {**whole, "deviceId": "device", "pc": "program_counter"}.items():
                    values = part.integers(column)
                    if values is not None:
                        cells[to] = present(values)
                table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
                for column, to, words in (("memKind", "memory_kind", MEMORY_KINDS), ("name", "name", {})):
                    codes = part.whole.get(column, part.coded.get(column))
                    if codes is not None:
                        meanings = self._tables.meanings(table, part, column, factor(codes)[0], words)
                        said = {key: None if value is None else str(value) for key, value in meanings.items()}
                        cells[to] = process.words(codes, said)
                devices, places = factor(np.zeros(part.count, dtype=np.int64) if device is None else device)
                made = [
                    process.location(("memory", int(each)), f"GPU {each} memory", 0, "task", int(each))
                    for each in devices
                ]
                process.rows("allocations", np.array(made, dtype=np.uint32)[places], cells)

    def _marks(self, table: str, time: str) -> None:
        columns = self._tables.database.tables[table].columns
        names = tuple(each for each in ("nameId", "textId", "name", "text") if each in columns)[:1]
        for batch in self._tables.batches(table):
            for process, part in self._tables.by_process(batch):
                self._tables.instants(process, part, table, time, names, table.lower().replace("_", " "))

    # About the file

    def _finished(self, properties: dict[str, object]) -> Imported:
        database = self._tables.database
        names = database.pairs("PROCESSES", "globalPid", "name")
        began = database.pairs("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "utcEpochNs")
        return self._tables.finish(
            lambda key: str(names.get(key << 24, f"process {self.pid(key)}")),
            properties=properties,
            base_ns=next(iter(began), None),
            host=self._host(),
            ranks=self._ranks,
        )

    def _host(self) -> str:
        for batch in self._tables.database.batches("TARGET_INFO_SYSTEM_ENV", ("name", "value")):
            if {"name", "value"} <= batch.coded.keys():
                for name, value in zip(batch.coded["name"].tolist(), batch.coded["value"].tolist(), strict=True):
                    if NONE not in (name, value) and batch.words["name"][name] == "Hostname":
                        return str(batch.words["value"][value])
        return ""


def _operator_cells(
    process: ImportProcess, operators: list[dict[str, str]], codes: npt.NDArray[np.int64]
) -> dict[str, Cells]:
    cells: dict[str, Cells] = {}
    for column in ("sequence_number", "record_function_id"):
        values = np.array([int(each.get(column, NONE)) for each in operators], dtype=np.int64)
        cells[column] = present(values[codes])
    for column, key in (("shapes", "shapes"), ("concrete_inputs", "inputs")):
        cells[column] = process.words(codes, {place: each.get(key) for place, each in enumerate(operators)})
    return cells


def _range_region(name: str, domain: str, operator: dict[str, str]) -> Region:
    if domain == "MPI" and name.startswith("MPI_"):
        return name, "mpi", mpi_role(name), domain
    if domain == "NCCL" and name.startswith("nccl"):
        return name, "nvtx", "collective" if not re.match(r"nccl(Group|Comm)", name) else "range", domain
    if operator:
        return name, "torch", "operator" if "::" in name else "range", domain
    return name, "nvtx", "range", domain


def _numbers(found: dict[int, object]) -> dict[int, int]:
    return {key: value for key, value in found.items() if isinstance(value, int)}


def _either(one: Cells, other: Cells) -> Cells:
    """Return a column with the cells of one, and of the other where it has none."""
    has = there(one).astype(bool)
    return np.where(has, one[0], other[0]), (there(one) | there(other)).astype(np.uint8)


FORMAT = Format(
    "nsys",
    "Nsight Systems SQLite (nsys export --type sqlite)",
    suffixes=(".sqlite", ".db"),
    sniff=sniff,
    read=read,
)
