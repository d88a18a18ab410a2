"""Rows of Nsight Systems exports that are not spans: messages, switches, samples, readings, allocations, and marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from strobe.formats.nsys.export import Export
from strobe.formats.nsys.tables import MEMORY_KINDS, OF_MESSAGE, THREAD_STATES
from strobe.formats.reading.database_tables import as_json_text
from strobe.formats.reading.import_process import Cells, ImportProcess, present
from strobe.formats.reading.sqlite_input import BATCH_ROWS, NONE, combinations, factor

_CHAIN_BATCH = 4096  # samples whose call chains, of some dozens of frames each, are in memory


def read_messages(export: Export) -> None:
    """Add the messages whose moment is known: sends when they are called, receives when they have returned.

    A receive that does not wait (MPI_Irecv) is complete at some later, unknown call: see its span.
    """
    for batch in export.tables.batches("MPI_P2P_EVENTS"):
        start, end, named = batch.integers("start"), batch.integers("end"), batch.integers("textId")
        if start is None or end is None or named is None:
            continue
        unique, places = factor(named)
        names = [str(export.tables.texts.of([number])[number] or "") for number in unique.tolist()]
        sends = np.array([bool(re.fullmatch(r"MPI_I?[bsr]?send", each, re.IGNORECASE)) for each in names])[places]
        receives = np.array([bool(re.fullmatch(r"MPI_M?recv", each, re.IGNORECASE)) for each in names])[places]
        for chosen, time, direction in ((sends, start, "send"), (receives, end, "receive")):
            if not chosen.any():
                continue
            batch.whole["moment"] = time
            for process, part in export.tables.by_process(batch.where(chosen)):
                word = np.full(part.count, process.text(direction), dtype=np.int64)
                cells: dict[str, Cells] = {"time_ns": (part.whole["moment"], None), "direction": (word, None)}
                for column, to in OF_MESSAGE.items():
                    values = part.integers(column)
                    if values is not None:
                        cells[to] = present(values)
                communicator = part.integers("commHandle")
                if communicator is not None:
                    names_of = {number: str(number) for number in factor(communicator)[0].tolist()}
                    cells["communicator"] = process.words(communicator, names_of)
                process.rows("messages", export.locations(process, part, ""), cells)


@dataclass(frozen=True)
class _Switch:
    thread: int
    time_ns: int
    state: Mapping[str, object]


class _Switches:
    """Makes a span of each switch to a processor and the next switch away from it.

    A switch without its other half becomes a mark: the recording began or ended in between, or lost one. `place`
    returns the process and location of the spans of a thread.
    """

    def __init__(self, place: Callable[[int], tuple[ImportProcess, int]]) -> None:
        self._place = place
        self._waiting: _Switch | None = None
        self._spans: dict[ImportProcess, list[tuple[int, int, int, int, int]]] = {}
        self._marks: dict[ImportProcess, list[tuple[int, int, int, int]]] = {}
        self._rows = 0

    def add(self, thread: int, time_ns: int, state: Mapping[str, object], *, switched_in: bool) -> None:
        """Add a switch; those of a thread come one after the other, in order of time."""
        before, self._waiting = self._waiting, None
        now = _Switch(thread, time_ns, state)
        if before is not None and (before.thread != thread or switched_in):
            self._mark(before, "switched in")
            before = None
        if switched_in:
            self._waiting = now
        elif before is None:
            self._mark(now, "switched out")
        else:
            process, location = self._place(thread)
            region = process.region("on a processor", "other", "other")
            text = process.text(as_json_text({**before.state, **state}))  # the switch away has the reason
            self._spans.setdefault(process, []).append((location, before.time_ns, time_ns, region, text))
            self._more()

    def finish(self) -> None:
        """Write the waiting rows."""
        if self._waiting is not None:
            self._mark(self._waiting, "switched in")
        self._flush()

    def _mark(self, switch: _Switch, name: str) -> None:
        process, location = self._place(switch.thread)
        text = process.text(as_json_text(dict(switch.state)))
        self._marks.setdefault(process, []).append((location, switch.time_ns, process.text(name), text))
        self._more()

    def _more(self) -> None:
        self._rows += 1
        if self._rows >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        for process, rows in self._spans.items():
            location, start, end, region, text = np.array(rows, dtype=np.int64).T
            process.spans(
                location.astype(np.uint32), start, end, region.astype(np.uint32), arguments=[("switch", (text, None))]
            )
        for process, marks in self._marks.items():
            location, time, name, state = np.array(marks, dtype=np.int64).T
            process.marks(location.astype(np.uint32), time, name, "scheduling", state)
        self._spans.clear()
        self._marks.clear()
        self._rows = 0


def read_scheduling(export: Export) -> None:
    """Add when threads were on a processor."""
    table = export.tables.database.tables.get("SCHED_EVENTS")
    if table is None or export.tables.stopped or not {"start", "globalTid", "isSchedIn"} <= table.columns.keys():
        return
    also = [str(each) for each in ("cpu", "threadState", "threadBlock") if each in table.columns]
    words = {each: export.tables.enumeration(table.references.get(each, "")) for each in also}
    words["threadState"] = words.get("threadState") or THREAD_STATES
    switches = _Switches(
        lambda thread: (process := export.process_of(thread), export.thread(process, thread, "scheduling"))
    )
    query = (
        f"SELECT globalTid, start, isSchedIn, {', '.join(also) or 'NULL'} FROM SCHED_EVENTS "
        "WHERE typeof(globalTid) = 'integer' AND typeof(start) = 'integer' ORDER BY globalTid, start, rowid"
    )
    for thread, start, switched_in, *cells in export.tables.database.query(query):
        state = {
            name: words[name].get(cell, cell) if isinstance(cell, int) else cell
            for name, cell in zip(also, cells, strict=False)
            if cell is not None
        }
        assert isinstance(thread, int)
        assert isinstance(start, int)
        switches.add(thread, start, state, switched_in=bool(switched_in))
    switches.finish()


def read_samples(export: Export) -> None:
    """Add the call stacks that the sampler saw."""
    columns = ("id", "start", "cpu", "threadState", "globalTid", "cpuCycles")
    for batch in export.tables.batches("COMPOSITE_EVENTS", columns, rows=_CHAIN_BATCH):
        for process, part in export.tables.by_process(batch):
            number, time = part.integers("id"), part.integers("start")
            if time is None:
                continue
            cells: dict[str, Cells] = {"time_ns": (time, None)}
            if number is not None:
                chains = export.chains("SAMPLING_CALLCHAINS", [int(each) for each in number])
                cells["call_stack"] = process.words(number, chains)
            state = part.integers("threadState")
            if state is not None:
                kinds = export.tables.database.tables["COMPOSITE_EVENTS"].references.get("threadState", "")
                words = export.tables.enumeration(kinds) or THREAD_STATES
                names = {int(each): words.get(int(each), str(int(each))) for each in factor(state)[0]}
                cells["state"] = process.words(state, names)
            for column, to in (("cpu", "cpu"), ("cpuCycles", "weight")):
                values = part.integers(column)
                if values is not None:
                    cells[to] = present(values)
            process.rows("samples", export.locations(process, part, ""), cells)


def read_gpu_metrics(export: Export) -> None:
    """Add GPU metrics: named by TARGET_INFO_GPU_METRICS; the last byte of a type is the number of the GPU."""
    names: dict[tuple[int, int], str] = {}
    for batch in export.tables.database.batches("TARGET_INFO_GPU_METRICS", ("typeId", "metricId", "metricName")):
        type_id, metric_id = batch.integers("typeId"), batch.integers("metricId")
        if type_id is None or metric_id is None or "metricName" not in batch.coded:
            break
        for kind, metric, code in zip(type_id, metric_id, batch.coded["metricName"], strict=True):
            if code != NONE:
                names[int(kind), int(metric)] = str(batch.words["metricName"][int(code)])
    for batch in export.tables.batches("GPU_METRICS"):
        time, value = batch.integers("timestamp"), batch.reals("value")
        type_id, metric_id = batch.integers("typeId"), batch.integers("metricId")
        if time is None or value is None or type_id is None or metric_id is None:
            export.tables.counters["events_without_time"] += batch.count
            continue
        process = export.tables.process(export.tables.default_key)
        first, codes = combinations([type_id, metric_id])
        for place, i in enumerate(first):
            kind, metric = int(type_id[i]), int(metric_id[i])
            full = f"GPU {kind & 0xFF}: {names.get((kind, metric), f'metric {metric}')}"
            found = re.fullmatch(r"(.*\S)\s*\[(.*)\]", full)
            chosen = (codes == place) & ~np.isnan(value)
            export.tables.counters["unreadable_values"] += int(((codes == place) & np.isnan(value)).sum())
            name, unit = (found[1], found[2]) if found else (full, "")
            process.samples(name, unit, time[chosen], value[chosen])


def read_allocations(export: Export) -> None:
    """Add allocations of GPU memory: one location a GPU, because their thread is not known."""
    for batch in export.tables.batches("CUDA_GPU_MEMORY_USAGE_EVENTS"):
        for process, part in export.tables.by_process(batch):
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
                if column in part.columns:
                    cells[to] = export.tables.texts_of(process, part, table, column, words)
            devices, places = factor(np.zeros(part.count, dtype=np.int64) if device is None else device)
            made = [
                process.location(("memory", int(each)), f"GPU {each} memory", 0, "task", int(each)) for each in devices
            ]
            process.rows("allocations", np.array(made, dtype=np.uint32)[places], cells)


def read_marks(export: Export, table: str, time: str) -> None:
    """Add the rows of a table with one time, in column `time`, as marks."""
    columns = export.tables.database.tables[table].columns
    names = tuple(each for each in ("nameId", "textId", "name", "text") if each in columns)[:1]
    for batch in export.tables.batches(table):
        for process, part in export.tables.by_process(batch):
            export.tables.instants(process, part, table, time, names, table.lower().replace("_", " "))
