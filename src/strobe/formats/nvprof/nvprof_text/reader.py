"""Reads what nvprof printed."""

from __future__ import annotations

import csv
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from strobe.formats.nvprof.nvprof_text.first_bytes import HEADER_BYTES
from strobe.formats.reading.database_tables import as_json_text
from strobe.formats.reading.import_process import NO_PATH, Cells, ImportProcess, finish_all, present
from strobe.formats.reading.nvprof_cpu_profile import BANNER, CpuProfile
from strobe.formats.reading.profile_import import ROOT, ProfileProcess, Weight
from strobe.formats.reading.sqlite_input import BATCH_ROWS, NONE, Whole
from strobe.formats.reading.text_input import lines_of
from strobe.gpu.measured_metrics import keep_by_kernel
from strobe.gpu.nvidia.ncu import KernelMetric
from strobe.gpu.nvidia.nvprof_metrics import MetricTables, is_header
from strobe.model.kinds import role_of_cuda_call
from strobe.model.losses import RECORDS_LEFT_OUT
from strobe.model.plugins import Imported, ImportSource, ImportTarget
from strobe.model.schema import TABLES

# In CSV the units have a row of their own; in text they follow each number.
_BANNER = re.compile(r"==(\d+|=*)== ?(.*)")
_PROFILING = re.compile(r"NVPROF is profiling process (\d+), command: (.*)")
_NUMBER = re.compile(r"(-?)(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2}))?\s*([A-Za-z]+(?:/s)?)?")
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_GAP = re.compile(r"\s{2,}|\t")
_COPY = re.compile(r"\[(CUDA|Unified Memory) [Mm]em(cpy|set)\s*(\w*)\]")
_WITH_CORRELATION = re.compile(r"(.*\S) \[(\d{1,18})\]")
# Of a launch the kernel is told with it: `cudaLaunchKernel (void add(int) [101])`.
_LAUNCH = re.compile(r"(cu\w+) \((.*\S) \[(\d{1,18})\]\)")
# Of unified memory: `Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name`, and below them
# `Total CPU Page faults: 49`.
_UNIFIED_COLUMNS = 7
_UNIFIED_ON_HOST = re.compile(r"Total (CPU Page faults|CPU thrashes): (\d{1,18})")
_OF_UNIFIED = {
    "host to device": "Memcpy HtoD",
    "device to host": "Memcpy DtoH",
    "device to device": "Memcpy DtoD",
    "gpu page fault groups": "GPU page faults",
    "cpu page faults": "CPU page faults",
}
_MOVED = Weight("bytes moved", "bytes")
_RATES = {f"{unit}/s": scale for unit, scale in _SIZES.items()}
_NOTHING = ("", "-")
_ACTIVITIES = "GPU activities"
_PLACES: dict[str, Literal["thread", "stream"]] = {_ACTIVITIES: "stream", "API calls": "thread"}
_MOST_SHAPES = 1 << 15
_UNITS = {"", "%", *_TIMES, *_SIZES, *_RATES}
_MOST_MESSAGES = 100
_LONGEST_MESSAGE = 1 << 10
_SAME = {
    "Regs": "Registers Per Thread",
    "SSMem": "Static SMem",
    "DSMem": "Dynamic SMem",
    "Correlation ID": "Correlation_ID",
}
_WHOLE_COLUMNS = {
    **{f"{what} {axis}": f"{what.lower()}_{axis.lower()}" for what in ("Grid", "Block") for axis in "XYZ"},
    "Registers Per Thread": "registers_per_thread",
    "Context": "context",
    "Stream": "stream",
    "Correlation_ID": "correlation",
}
_SIZE_COLUMNS = {"Static SMem": "static_shared_bytes", "Dynamic SMem": "dynamic_shared_bytes", "Size": "size_bytes"}
_COLUMNS_OF = {name: {column.name for column in TABLES[name]} for name in ("kernel_spans", "copy_spans", "call_spans")}


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import printed traces and summaries, of as many processes as the file has.

    Times and durations are exact to the printed digits. Sizes are integers: nvprof prints KB of 1024 bytes, rounded; if
    that is a fraction of a byte, the nearest integer is taken, and counted. A summary has no times: it becomes totals,
    not spans; its averages and percentages follow from them. Page faults on the host have a moment alone: they are rows
    of the table `marks`. Raises ValueError if a line is absurdly long.
    """
    return _Printed(source, target).read()


@dataclass(frozen=True)
class _Shape:
    """The cells of rows that differ only in their times and correlations, as most rows of a trace do."""

    name: str
    table: str
    location: int
    region: int  # 0 for marks
    cells: Mapping[str, int]  # by column of the table
    rest: str  # cells without a column, as JSON
    rounded: int  # cells with fractions


class _Rows:
    """Events of one process that wait for a full batch."""

    def __init__(self, process: ImportProcess, command: str) -> None:
        self.process, self.command = process, command
        self._tables: dict[str, list[tuple[_Shape, int, int, int]]] = {}
        self._marks: list[tuple[int, int, str, str]] = []

    def span(self, shape: _Shape, start: int, duration: int, correlation: int) -> None:
        rows = self._tables.setdefault(shape.table, [])
        rows.append((shape, start, start + duration, correlation))
        if len(rows) >= BATCH_ROWS:
            self._write(shape.table, self._tables.pop(shape.table))

    def mark(self, shape: _Shape, time: int) -> None:
        self._marks.append((shape.location, time, shape.name, shape.rest or "{}"))
        if len(self._marks) >= BATCH_ROWS:
            self._write_marks()

    def flush(self) -> None:
        for table, rows in self._tables.items():
            self._write(table, rows)
        self._tables.clear()
        self._write_marks()

    def _write(self, table: str, rows: list[tuple[_Shape, int, int, int]]) -> None:
        given, start, end, correlation = zip(*rows, strict=True)
        numbers: dict[int, int] = {}
        codes = np.array([numbers.setdefault(id(shape), len(numbers)) for shape in given], dtype=np.int64)
        shapes = list({id(shape): shape for shape in given}.values())

        def column(values: Iterable[int]) -> Whole:
            return np.array(list(values), dtype=np.int64)[codes]

        names = _COLUMNS_OF.get(table, set()) & {name for shape in shapes for name in shape.cells}
        side: dict[str, Cells] = {
            name: present(column(shape.cells.get(name, NONE) for shape in shapes)) for name in sorted(names)
        }
        if table:
            side["correlation"] = present(np.array(correlation, dtype=np.int64))
        rest = column(self.process.text(shape.rest) if shape.rest else NONE for shape in shapes)
        added = self.process.spans(
            column(shape.location for shape in shapes).astype(np.uint32),
            np.array(start, dtype=np.int64),
            np.array(end, dtype=np.int64),
            column(shape.region for shape in shapes).astype(np.uint32),
            {table: side} if table else {},
            [("columns", present(rest))] if (rest != NONE).any() else [],
        )
        self._count(added, len(rows))

    def _count(self, added: int, of: int) -> None:
        self.process.taken(added)
        self.process.count(RECORDS_LEFT_OUT, of - added)

    def _write_marks(self) -> None:
        if not self._marks:
            return
        location, time, name, rest = zip(*self._marks, strict=True)
        names, arguments = (
            np.array([self.process.text(text) for text in texts], dtype=np.int64) for texts in (name, rest)
        )
        places, times = np.array(location, dtype=np.uint32), np.array(time, dtype=np.int64)
        self._count(self.process.marks(places, times, names, "nvprof", arguments), len(self._marks))
        self._marks.clear()


class _Printed:
    """A printed trace, read line by line."""

    def __init__(self, source: ImportSource, target: ImportTarget) -> None:
        self._source, self._target = source, target
        self._counters: Counter[str] = Counter()
        self._rows: dict[int, _Rows] = {}
        self._commands: dict[int, str] = {}
        self._pid = 0
        self._columns: list[str] | None = None
        self._units: list[str] = []
        self._as_csv = self._units_follow = False
        self._type = ""  # of the rows of a summary
        self._noting = False
        self._shapes: dict[tuple[object, ...], _Shape] = {}
        self._devices: dict[str, str] = {}
        self._messages: list[str] = []
        self._metrics: dict[int, MetricTables] = {}
        self._in_metrics = False
        self._cpu: CpuProfile | None = None
        self._profiles: dict[int, ProfileProcess] = {}
        self._kernels: set[tuple[int, str]] = set()  # with a time, by process

    def read(self) -> Imported:
        for line in lines_of(self._source):
            self._line(self._decoded(line))
        self._end_cpu_profile()
        for profile in self._profiles.values():
            profile.flush()
        self._finish_metrics()
        if not self._rows:
            self._of_process()
        for rows in self._rows.values():
            rows.flush()
        names = [{"id": int(number), "name": name} for number, name in self._devices.items()]
        imported = finish_all(
            {pid: rows.process for pid, rows in self._rows.items()},
            self._source,
            lambda pid: self._rows[pid].command,
            counters=self._counters,
            properties={"deviceProperties": names, "messages": self._messages},
        )
        # Starts count from when the profiler began, which is where its trace begins.
        return replace(imported, first_ns=min(imported.first_ns, 0))

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            self._counters["texts_not_utf8"] += 1
            return line.decode("utf-8", "replace").rstrip("\r")

    def _line(self, line: str) -> None:
        banner = _BANNER.match(line)
        self._in_metrics = self._in_metrics and not banner and bool(line.strip())
        if self._cpu and (banner or not line.strip()):
            self._end_cpu_profile()
        if self._cpu:
            self._understood(line, self._cpu.add(line))
        elif self._in_metrics:
            self._understood(line, self._metrics[self._pid].add(line))
        elif is_header(line):
            self._in_metrics, self._columns, self._noting = True, None, False
            self._metrics.setdefault(self._pid, MetricTables()).begin(line)
        elif banner:
            self._banner(int(banner[1]) if banner[1].isdigit() else self._pid, banner[2])
        elif _header(line):
            self._as_csv = "," in line
            cells = _csv_cells(line) if self._as_csv else _GAP.split(line.strip())
            self._columns = [_SAME.get(cell.rstrip("*"), cell.rstrip("*")) for cell in cells]
            self._units, self._units_follow = [], self._as_csv
            self._noting = False
        elif not line.strip():
            self._columns = self._columns if self._as_csv else None  # notes about the columns follow
            self._noting = False
        elif self._columns is not None:
            self._row(line, self._columns)
        elif self._noting:
            self._note(line)
            self._unified(line)

    def _banner(self, pid: int, text: str) -> None:
        self._pid = pid
        profiling = _PROFILING.match(text)
        if cpu := BANNER.match(text):
            self._columns, self._noting = None, False
            self._cpu = CpuProfile(self._profile(), cpu[1], lambda cell: self._scaled(cell, "", _TIMES))
        elif profiling:
            self._commands[int(profiling[1])] = profiling[2]
        elif text.startswith("API calls"):  # of nvprof before CUDA 9, whose summaries have no column for that
            self._type = "API calls"
        elif text.startswith("Profiling result"):
            self._type = _ACTIVITIES
        elif not text.startswith(("Profiling application", "Generated")):
            self._note(text)
            self._columns = None
            self._noting = text.endswith(":")  # a table without times and durations: kept as it is

    def _note(self, text: str) -> None:
        if len(self._messages) < _MOST_MESSAGES:
            self._messages.append(text[:_LONGEST_MESSAGE])
        else:
            self._counters["rows_left_out"] += 1

    def _unified(self, line: str) -> None:
        """Add a row of the summary of unified memory: what it counts, with its size and time where they are known."""
        cells = _csv_cells(line)[1:] if line.startswith('"') else _GAP.split(line.strip())
        if found := _UNIFIED_ON_HOST.fullmatch(line.strip()):
            kind, count, size, time = found[1], found[2], "", ""
        elif len(cells) != _UNIFIED_COLUMNS or cells[0] == "Count":
            return
        elif not re.fullmatch(r"\d{1,18}", cells[0]):
            self._left_out()
            return
        else:
            count, *_, size, time, kind = cells
            self._of_process().process.taken()
        profile = self._profile()
        location = profile.core.location("unified memory", "unified memory", 0, "task")
        name = _OF_UNIFIED.get(kind.lower(), kind)
        role = "copy" if name.startswith("Memcpy") else "other"
        path = profile.path(ROOT, profile.core.region(f"[Unified Memory {name}]", "cuda", role))
        total = self._scaled(time, "", _TIMES) or 0
        profile.totals(location, path, int(count), total, total)
        if (moved := self._scaled(size, "", _SIZES)) is not None:
            profile.path_metric(location, path, _MOVED, float(moved), float(moved))

    def _profile(self) -> ProfileProcess:
        """Return the part of the process that has no time axis."""
        if self._pid not in self._profiles:
            process = self._of_process().process
            self._profiles[self._pid] = ProfileProcess(self._source, self._target, process)
        return self._profiles[self._pid]

    def _row(self, line: str, columns: list[str]) -> None:
        cells = _csv_cells(line) if self._as_csv else _text_cells(line, columns)
        if self._units_follow:
            self._units_follow = False
            if _UNITS.issuperset(cells):
                self._units = cells
                return
        if len(cells) != len(columns):
            self._left_out()
            return
        if "Calls" in columns:
            self._total(*self._row_by_column(columns, cells))
        else:
            self._event(columns, cells)

    def _understood(self, line: str, understood: bool) -> None:
        if line.strip() == "...":  # rows that nvprof left out
            self._counters["unreadable_rows"] += 1
        elif not understood:
            self._left_out()

    def _left_out(self) -> None:
        """Count a row that cannot be read."""
        self._counters["unreadable_rows"] += 1
        self._counters[RECORDS_LEFT_OUT] += 1

    def _row_by_column(self, columns: list[str], cells: list[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the cells of a row that are not empty, and the units, by column."""
        row = {column: cell for column, cell in zip(columns, cells, strict=True) if cell not in _NOTHING}
        return row, dict(zip(columns, self._units, strict=False))

    def _total(self, row: Mapping[str, str], units: Mapping[str, str]) -> None:
        total = self._scaled(row.get("Time", ""), units.get("Time", ""), _TIMES)
        calls = row.get("Calls", "")
        if total is None or "Name" not in row or not re.fullmatch(r"\d{1,18}", calls):
            self._left_out()
            return
        self._type = row.get("Type", self._type).rstrip(":")
        process, name = self._of_process().process, row["Name"]
        if self._type == _ACTIVITIES:
            role = "copy" if _COPY.fullmatch(name) else "kernel"
            self._kernels.add((self._pid, name))
        else:
            role = role_of_cuda_call(name) if self._type == "API calls" else "other"
        kind: Literal["thread", "stream", "task"] = _PLACES.get(self._type, "task")
        location = process.location(self._type, self._type, 0, kind)
        least, most = (self._scaled(row.get(column, ""), units.get(column, ""), _TIMES) for column in ("Min", "Max"))
        paradigm = "openacc" if self._type.startswith("OpenACC") else "cuda"
        path = process.out.path(NO_PATH, process.region(name, paradigm, role))
        process.out.totals(location, path, int(calls), total, total, least, most)
        process.taken()

    def _end_cpu_profile(self) -> None:
        if self._cpu:
            self._cpu.save()
            self._cpu = None

    def _finish_metrics(self) -> None:
        """Keep metrics beside the trace, where `kernels` finds them; kernels without a time are counted."""
        kept: list[KernelMetric] = []
        for pid, tables in self._metrics.items():
            self._pid, found = pid, tables.metrics()
            kept += found
            launches: dict[str, int] = {}
            for each in found:
                launches[each.kernel] = max(launches.get(each.kernel, 0), each.launches)
            process = self._of_process().process
            process.taken(tables.rows)
            for kernel, count in launches.items():
                if (self._pid, kernel) not in self._kernels:
                    location = process.location(_ACTIVITIES, _ACTIVITIES, 0, "stream")
                    path = process.out.path(NO_PATH, process.region(kernel, "cuda", "kernel"))
                    process.out.totals(location, path, count, 0, 0)
                    process.count("kernels_without_time")
        if kept:
            keep_by_kernel(self._target.folder, kept)

    def _event(self, columns: list[str], cells: list[str]) -> None:
        times: list[int | None] = []
        for column in ("Start", "Duration"):
            place = columns.index(column) if column in columns else -1
            unit = self._units[place] if 0 <= place < len(self._units) else ""
            times.append(self._scaled(cells[place], unit, _TIMES) if place >= 0 else None)
            if place >= 0:
                cells[place] = ""
        start, duration = times
        correlation, launched = "", ""
        if "Name" in columns:
            place = columns.index("Name")
            if found := _LAUNCH.fullmatch(cells[place]):
                cells[place], launched, correlation = found.groups()
            elif "Correlation_ID" not in columns and (found := _WITH_CORRELATION.fullmatch(cells[place])):
                cells[place], correlation = found.groups()
        if "Correlation_ID" in columns:
            place = columns.index("Correlation_ID")
            correlation, cells[place] = cells[place], ""
        key = (self._pid, duration is None, launched, *self._units, *cells)
        shape = self._shapes.get(key)
        if shape is None:
            row, units = self._row_by_column(columns, cells)
            if launched:
                row["Kernel"] = launched
            if "Name" not in row:
                self._left_out()
                return
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.clear()
            shape = self._shapes[key] = self._shape(row, units, moment=duration is None)
        if start is None:
            self._left_out()
            return
        self._counters["sizes_rounded"] += shape.rounded
        rows = self._of_process()
        if duration is None:  # page faults on the host happen at a moment
            rows.mark(shape, start)
        else:
            number = int(correlation) if correlation.isdecimal() and len(correlation) < 19 else NONE
            rows.span(shape, start, duration, number)

    def _shape(self, row: dict[str, str], units: Mapping[str, str], *, moment: bool) -> _Shape:
        process, name = self._of_process().process, row["Name"]
        cells: dict[str, int] = {}
        sources: dict[str, str] = {}  # column of a side table -> column of nvprof's that it is from
        before, self._counters["sizes_rounded"] = self._counters["sizes_rounded"], 0
        for what in ("grid", "block"):
            column = f"{what.capitalize()} Size"
            sides = re.fullmatch(r"\((\d{1,18}) (\d{1,18}) (\d{1,18})\)", row.get(column, ""))
            for axis, side in zip("xyz", sides.groups() if sides else (), strict=False):
                cells[f"{what}_{axis}"], sources[f"{what}_{axis}"] = int(side), column
        for column, to in _WHOLE_COLUMNS.items():
            if re.fullmatch(r"\d{1,18}", row.get(column, "")):
                cells[to], sources[to] = int(row[column]), column
        for column, to in _SIZE_COLUMNS.items():
            size = self._scaled(row.get(column, ""), units.get(column, ""), _SIZES)
            if size is not None:
                cells[to], sources[to] = size, column
        device = re.fullmatch(r"(.*) \((\d{1,9})\)", row.get("Device", ""))
        if device:
            cells["device"], sources["device"] = int(device[2]), "Device"
            self._devices.setdefault(device[2], device[1])
        copy = _COPY.fullmatch(name)
        if copy:
            self._copy(process, copy, row, units, cells, sources)
            table, role = "copy_spans", "copy"
        elif "grid_x" in cells:
            if {"static_shared_bytes", "dynamic_shared_bytes"} <= cells.keys():
                cells["shared_memory_bytes"] = cells["static_shared_bytes"] + cells["dynamic_shared_bytes"]
            table, role = "kernel_spans", "kernel"
            self._kernels.add((self._pid, name))
        elif "Device" in row or name.startswith("["):
            table, role = "", "other"
        else:
            table, role = "call_spans", role_of_cuda_call(name)
        placed = {"Name", *(sources[to] for to in sources if to in _COLUMNS_OF.get(table, ()))}
        rest = {column: cell for column, cell in row.items() if column not in placed}
        location = self._location(process, cells, name)
        region = 0 if moment else process.region(name, "cuda", role)
        rounded, self._counters["sizes_rounded"] = self._counters["sizes_rounded"], before
        return _Shape(name, table, location, region, cells, as_json_text(rest) if rest else "", rounded)

    def _copy(
        self,
        process: ImportProcess,
        copy: re.Match[str],
        row: Mapping[str, str],
        units: Mapping[str, str],
        cells: dict[str, int],
        sources: dict[str, str],
    ) -> None:
        unified = copy[1] == "Unified Memory"
        if copy[2] == "cpy":
            cells["copy_kind"] = process.text(f"{'Unified ' if unified else ''}{copy[3]}")
        if unified and "size_bytes" not in cells:
            size = self._scaled(row.get("Unified Memory", ""), units.get("Unified Memory", ""), _SIZES)
            if size is not None:
                cells["size_bytes"], sources["size_bytes"] = size, "Unified Memory"
        address = re.fullmatch(r"0x([0-9a-f]{1,15})", row.get("Virtual Address", ""))
        if address:
            cells["address"], sources["address"] = int(address[1], 16), "Virtual Address"
        for column, to in (("SrcMemType", "source_kind"), ("DstMemType", "destination_kind")):
            if column in row:
                cells[to], sources[to] = process.text(row[column]), column
        # GB of 2^30 bytes, as everywhere in nvprof; the column's are of 10^9.
        rate = _fraction(row.get("Throughput", ""), units.get("Throughput", ""), _RATES)
        if rate is not None:
            above, below = rate
            bits = struct.unpack("<q", struct.pack("<d", above / (below * 10**9)))[0]
            cells["bandwidth_gb_s"], sources["bandwidth_gb_s"] = bits, "Throughput"

    def _location(self, process: ImportProcess, cells: Mapping[str, int], name: str) -> int:
        device = cells.get("device", NONE)
        if "stream" in cells:
            return process.stream(device, cells["stream"], cells.get("context", NONE))
        if device != NONE:
            return process.location(("memory", device), f"GPU {device} unified memory", 0, "task", device)
        if name.startswith("[Unified"):
            return process.location("memory", "unified memory", 0, "task")
        return process.location("calls", "calls", 0, "thread")  # their thread is unknown

    def _of_process(self) -> _Rows:
        if self._pid not in self._rows:
            command = self._commands.get(self._pid, f"process {self._pid}")
            self._rows[self._pid] = _Rows(ImportProcess(self._target, self._pid), command)
        return self._rows[self._pid]

    def _scaled(self, cell: str, unit: str, scales: Mapping[str, int]) -> int | None:
        """Return a cell as an integer in the unit whose scale is 1; fractions are rounded to even and counted."""
        number = _fraction(cell, unit, scales)
        if number is None:
            return None
        above, below = number
        value, left = divmod(above, below)
        if left:
            self._counters["sizes_rounded" if scales is _SIZES else "times_rounded"] += 1
            value += 2 * left > below or (2 * left == below and value % 2 == 1)
        return value if abs(value) < 2**62 else None


def _fraction(cell: str, unit: str, scales: Mapping[str, int]) -> tuple[int, int] | None:
    """Return a cell in the unit whose scale is 1, as an exact fraction; None if it is not a number with a unit.

    `unit` is for cells without one.
    """
    found = _NUMBER.fullmatch(cell)
    if not found:
        return None
    sign, whole, part, exponent, own = found.groups()
    scale = scales.get(own or unit)
    if scale is None:
        return None
    part = part or ""
    above, below = int(whole + part) * scale, 10 ** len(part)
    if exponent:
        power = int(exponent)
        above, below = (above * 10**power, below) if power >= 0 else (above, below * 10**-power)
    return (-above if sign else above), below


def _header(line: str) -> bool:
    return bool(HEADER_BYTES.match(line.encode("utf-8", "replace")))


def _text_cells(line: str, columns: list[str]) -> list[str]:
    """Return the cells of a line, which two spaces or more part; only the last, a name, may hold some itself."""
    cells = _GAP.split(line.strip(), maxsplit=len(columns) - 1)
    if columns[0] == "Type" and re.fullmatch(r"[\d.]+%", cells[0]):  # the same type as above
        return ["", *_GAP.split(line.strip(), maxsplit=len(columns) - 2)]
    return cells


def _csv_cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
