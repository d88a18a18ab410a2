"""Rows of Nsight Systems exports that are not spans: messages, switches, samples, readings, allocations, and marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from strobe.formats.nsys.export import Export
from strobe.formats.nsys.tables import MEMORY_KINDS, OF_MESSAGE, THREAD_STATES
from strobe.formats.reading.database_tables import as_json_text
from strobe.formats.reading.import_process import Cells, ImportProcess, present, present_columns
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
                cells |= present_columns(part, OF_MESSAGE)
                communicator = part.integers("commHandle")
                if communicator is not None:
                    names_of = {number: str(number) for number in factor(communicator)[0].tolist()}
                    cells["communicator"] = process.words(communicator, names_of)
                process.rows("messages", export.tables.locations(process, part), cells)


class _Switch(NamedTuple):
    thread: int
    time_ns: int
    switched_in: bool
    state: dict[str, object]


def _on_processors(switches: Iterable[_Switch]) -> Iterator[tuple[int, int, int, dict[str, object], str]]:
    """Yield thread, start, end and state of each switch to a processor and the next switch away from it, and "".

    Switches of a thread come one after the other, in order of time. One without its other half is yielded with what it
    is in words: the recording began or ended in between, or lost one.
    """
    waiting: _Switch | None = None
    for each in switches:
        if waiting is not None and (waiting.thread != each.thread or each.switched_in):
            yield waiting.thread, waiting.time_ns, waiting.time_ns, waiting.state, "switched in"
            waiting = None
        if each.switched_in:
            waiting = each
        elif waiting is None:
            yield each.thread, each.time_ns, each.time_ns, each.state, "switched out"
        else:
            reason = waiting.state | each.state  # the switch away has it
            yield each.thread, waiting.time_ns, each.time_ns, reason, ""
            waiting = None
    if waiting is not None:
        yield waiting.thread, waiting.time_ns, waiting.time_ns, waiting.state, "switched in"


def _switches(export: Export) -> Iterator[_Switch]:
    table = export.tables.database.tables.get("SCHED_EVENTS")
    if table is None or export.tables.stopped or not {"start", "globalTid", "isSchedIn"} <= table.columns.keys():
        return
    also = [str(each) for each in ("cpu", "threadState", "threadBlock") if each in table.columns]
    words = {each: export.tables.enumeration(table.references.get(each, "")) for each in also}
    words["threadState"] = words.get("threadState") or THREAD_STATES
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
        yield _Switch(thread, start, bool(switched_in), state)


def read_scheduling(export: Export) -> None:
    """Add when threads were on a processor; halves of that become marks."""
    spans: dict[ImportProcess, list[tuple[int, int, int, int, int]]] = {}
    marks: dict[ImportProcess, list[tuple[int, int, int, int]]] = {}

    def flush() -> None:
        for process, rows in spans.items():
            location, start, end, region, text = np.array(rows, dtype=np.int64).T
            places, regions = location.astype(np.uint32), region.astype(np.uint32)
            added = process.spans(places, start, end, regions, arguments=[("switch", (text, None))])
            export.tables.taken["SCHED_EVENTS"] += 2 * added
        for process, halves in marks.items():
            location, time, name, text = np.array(halves, dtype=np.int64).T
            added = process.marks(location.astype(np.uint32), time, name, "scheduling", text)
            export.tables.taken["SCHED_EVENTS"] += added
        spans.clear()
        marks.clear()

    for number, (thread, start, end, state, half) in enumerate(_on_processors(_switches(export)), start=1):
        process = export.process_of(thread)
        location = export.tables.thread(process, thread, "scheduling")
        text = process.text(as_json_text(state))
        if half:
            marks.setdefault(process, []).append((location, start, process.text(half), text))
        else:
            region = process.region("on a processor", "other", "other")
            spans.setdefault(process, []).append((location, start, end, region, text))
        if number % BATCH_ROWS == 0:
            flush()
    flush()


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
            cells |= present_columns(part, {"cpu": "cpu", "cpuCycles": "weight"})
            export.tables.taken["COMPOSITE_EVENTS"] += process.rows(
                "samples", export.tables.locations(process, part), cells
            )


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
    for batch in export.tables.batches("GPU_METRICS", ("timestamp", "typeId", "metricId", "value")):
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
            name, opened, unit = full.removesuffix("]").rpartition("[") if full.endswith("]") else (full, "", "")
            chosen = (codes == place) & ~np.isnan(value)
            export.tables.counters["unreadable_values"] += int(((codes == place) & np.isnan(value)).sum())
            name, unit = (name.rstrip(), unit) if opened else (full, "")
            export.tables.taken["GPU_METRICS"] += process.samples(name, unit, time[chosen], value[chosen])


def read_allocations(export: Export) -> None:
    """Add allocations of GPU memory: one location a GPU, because their thread is not known."""
    of_process = ("start", "globalPid", "deviceId", "contextId", "correlationId")
    columns = (*of_process, "address", "pc", "bytes", "memKind", "memoryOperationType", "name")
    for batch in export.tables.batches("CUDA_GPU_MEMORY_USAGE_EVENTS", columns):
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
            cells |= present_columns(part, {**whole, "deviceId": "device", "pc": "program_counter"})
            table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
            for column, to, words in (("memKind", "memory_kind", MEMORY_KINDS), ("name", "name", {})):
                if column in part.columns:
                    cells[to] = export.tables.texts_of(process, part, table, column, words)
            devices, places = factor(np.zeros(part.count, dtype=np.int64) if device is None else device)
            made = [
                process.location(("memory", int(each)), f"GPU {each} memory", 0, "task", int(each)) for each in devices
            ]
            export.tables.taken[table] += process.rows("allocations", np.array(made, dtype=np.uint32)[places], cells)
