"""A part of a run as a trace folder of its own: what `strobe cut` writes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.model.block_parts import copy_joined
from strobe.model.kinds import LOCATION_KINDS
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.trace.after_run import symbols
from strobe.trace.archive import process_files
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.derived.anonymise import rewrite as rewrite_names
from strobe.trace.derived.new_folder import new_folder, write_job
from strobe.trace.processes.process_part import PartReader, exported_loops
from strobe.trace.trace import Trace

if TYPE_CHECKING:
    from strobe.trace.processes.process_reader import ProcessReader

_BUFFER_BYTES = 64 << 20
_TYPES = {"float64": 1, "string": 2}  # CellType of native/kernels/reading/table_chunks.h; everything else is an integer
# What has no time goes with statistics: it cannot be divided.
_TIMED = [name for name in EVENT_TABLES if any(column.name == "time_ns" for column in TABLES[name])]
# A reader finds the first itself, and the others are found again in what is written.
_NOT_COUNTED = {
    *("estimated_cost_ns", "spans_cut", "steps_cut", "missing_steps", "ids_not_compared"),
    *("orphan_kernels", "orphan_copies", "orphan_launches"),
    *("duplicate_correlation_ids", "duplicate_operator_ids", "duplicate_flow_ids"),
}
_Columns = list[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.uint8] | None]]


def cut(trace: Trace, folder: Path, *, anonymise: bool = False) -> list[str]:
    """Write a trace (a part: `Trace.part`) as a folder; return sentences about what it lacks.

    Processes that are in it from begin to end are copied with everything: statistics of folded steps, records of
    iterations, flow graphs. Of the others, spans that reach over an edge end there (`spans_cut` in the quality table),
    and steps that were folded are left out. The trace's zero becomes the begin of the part.
    `anonymise`: see `trace/derived/anonymise.py`. Raises TraceError if the folder exists.
    """
    notes: list[str] = []
    beside: dict[str, dict[str, object]] = {}
    with new_folder(folder) as work:
        for process, reader in enumerate(trace.readers):
            name = f"process-{process + 1}"
            files = trace.files[process]
            written = isinstance(reader, PartReader) or files.rings is not None
            if written:
                if left := _left_out(reader):
                    notes.append(f"{left} rows of statistics of folded steps are left out: they cannot be divided")
                _write(trace, process, reader, work / f"{name}.blocks")
                offset = 0
            else:
                copy_joined(files.blocks, work / f"{name}.blocks")
                offset = trace.zero_ns - trace.zero_of(process)
                if process in trace.gpus and anonymise:
                    notes.append("metrics of GPUs are left out: they name machines and GPUs")
                elif process in trace.gpus:  # those of parts are among the metrics that are written
                    shutil.copyfile(trace.gpus[process].path, work / trace.gpus[process].path.name)
            note = trace.job.processes.get(files.blocks.stem, {})
            # What is written anew is on the trace's axis already.
            noted = ("clock", "clock_error_ns", *(() if written else ("clock_points",)))
            clock = {key: note[key] for key in noted if key in note}
            beside[name] = {"rank": process_rows(trace)[process].rank, "clock_offset_ns": offset, **clock}
        _write_job(trace, work, beside)
        if anonymise:
            rewrite_names(work)
        else:
            _copy_beside(trace, work)
    return notes


def _copy_beside(trace: Trace, work: Path) -> None:
    """Copy the files beside the processes: names of C functions, and notes about processes that were not recorded."""
    if not trace.path.is_dir():
        return
    for name in (symbols.FILE, "notes.txt"):
        if (trace.path / name).is_file():
            shutil.copyfile(trace.path / name, work / name)
    # Processes outside of the part are not missing in it.
    left_out = {files.pid for files in process_files(trace.path)} - {files.pid for files in trace.files}
    for path in trace.path.glob("started-*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        others = [line for line in lines if not any(b'"pid": %d,' % pid in line for pid in left_out)]
        (work / path.name).write_bytes(b"".join(others))


def _left_out(reader: ProcessReader | PartReader) -> int:
    if isinstance(reader, PartReader):
        return reader.quality().get("statistics_left_out", 0)
    return len(reader.statistics()["count"])


def _write_job(trace: Trace, work: Path, beside: Mapping[str, object]) -> None:
    begin = min((process.started_ns for process in process_rows(trace)), default=0)
    job = trace.job
    written = {
        "command": list(job.command),
        "working_directory": job.working_directory,
        "host": job.host,
        "zero_ns": trace.zero_ns + begin,
        "started_unix_ns": job.started_unix_ns + begin if job.started_unix_ns else 0,
        "ended": dict(job.ended),
        "settings": dict(job.settings),
        "imported": {**job.imported, "stamp": None, "processes": beside},
    }
    write_job(work, written)


def _write(trace: Trace, process: int, reader: ProcessReader | PartReader, path: Path) -> None:
    """Write one process, as an import does; its times are those of the trace's clock."""
    from strobe import native

    out = native.ImportedProcess(str(path), _BUFFER_BYTES)
    regions = np.zeros(len(trace.regions), dtype=np.uint32)
    known = trace.definitions.region_maps[process]
    for local, name, paradigm, role, file, line, module in reader.regions():
        regions[known[local]] = out.region(name, paradigm, role, file, line, module)
    tables = {
        name: out.table(name, [(c.name, _TYPES.get(c.type, 0)) for c in _columns(name)], name in SPAN_TABLES)
        for name in (*SPAN_TABLES, *_TIMED)
    }
    places: dict[int, int] = {}
    for row in location_rows(trace):
        if row.process != process:
            continue
        location, device = row.location, -1 if row.device is None else row.device
        places[location] = at = out.location(row.name, row.thread_id % 2**64, LOCATION_KINDS.index(row.kind), device)
        spans = trace.span_arrays(location)
        count = len(spans["row"])
        details = list(_details(trace, location, tables, out, count))
        where = np.full(count, at, dtype=np.uint32)
        starts = np.ascontiguousarray(spans["start_ns"] + trace.zero_ns)
        durations = np.ascontiguousarray(spans["duration_ns"])
        cut_off = np.ascontiguousarray(~spans["complete"]).view(np.uint8)
        out.spans(where, starts, durations, regions[spans["region"]], details, cut_off)
        for name in _TIMED:
            for batch in trace.side_batches(name, location):
                cells = _cells(name, batch, out, trace.zero_ns)
                out.rows(tables[name], np.full(batch.num_rows, at, dtype=np.uint32), cells)
    for metric in reader.metrics():
        measured = trace.location_of(process, metric["location"])
        number = out.metric(metric["name"], metric["unit"], 0xFFFFFFFF if measured is None else places[measured])
        times = np.asarray(metric["time_ns"], dtype=np.int64) + trace.zero_ns - trace.zero_of(process)
        out.samples(number, times, np.ascontiguousarray(metric["value"], dtype=np.float64))
    for what, value in reader.quality().items():
        if value and what not in _NOT_COUNTED:
            out.count(what, value)
    facts = reader.process()
    description = {key: facts.get(key) for key in ("argv", "host", "python", "main")}
    if loops := exported_loops(reader):
        description["source_loops"] = loops
    note = {key: facts[key] for key in ("rank", "ranks") if facts.get(key) is not None}
    out.finish(
        facts["pid"],
        facts["parent_pid"],
        json.dumps(description),
        json.dumps(note) if note else "",
        facts["end_state"] if facts["end_state"] in ("closed", "exited", "lost") else "lost",
    )


def _columns(name: str) -> list[Any]:
    # Call paths have other numbers in the new file.
    return [column for column in TABLES[name] if column.name not in ("location", "row", "call_path")]


def _details(
    trace: Trace, location: int, tables: Mapping[str, int], out: Any, count: int
) -> Iterator[tuple[int, _Columns]]:
    """Rows of span tables as columns beside the spans. Where spans have several rows of a table, as several tables."""
    for name in SPAN_TABLES:
        batches = list(trace.side_batches(name, location))
        if not batches:
            continue
        table = pa.concat_tables(batches)
        row = table.column("row").to_numpy()
        cells = _cells(name, table, out, 0)
        # How many rows of the same span came before.
        first = np.concatenate([[True], row[1:] != row[:-1]]) if len(row) else np.empty(0, dtype=bool)
        nth = np.arange(len(row)) - np.maximum.accumulate(np.where(first, np.arange(len(row)), 0))
        for n in range(int(nth.max(initial=-1)) + 1):
            at = nth == n
            columns: _Columns = []
            for number, values, valid in cells:
                wide, there = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint8)
                wide[row[at]], there[row[at]] = values[at], 1 if valid is None else valid[at]
                columns.append((number, wide, there))
            yield tables[name], columns


def _cells(name: str, table: pa.Table, out: Any, shift_ns: int) -> _Columns:
    """Columns as the block file has them: texts by number, reals by their bits."""
    cells: _Columns = []
    for number, column in enumerate(_columns(name)):
        values = table.column(column.name).combine_chunks()
        if values.null_count == len(values):
            continue
        valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.uint8)
        if column.type == "string":
            packed = values.dictionary_encode()
            ids = np.array([out.text(each) for each in packed.dictionary.to_pylist()], dtype=np.int64)
            plain = ids[packed.indices.fill_null(0).to_numpy()]
        elif column.type == "float64":
            plain = values.fill_null(0.0).to_numpy().view(np.int64)
        else:
            plain = values.fill_null(0).to_numpy().astype(np.int64)
            if column.name == "time_ns":
                plain = plain + shift_ns
        cells.append((number, np.ascontiguousarray(plain), valid))
    return cells
