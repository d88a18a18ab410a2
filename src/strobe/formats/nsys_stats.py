"""What `nsys stats` prints, and `nsys profile --stats=true`: sums and traces, as text among other lines, and as CSV.

Sums are by name, with the shortest and longest time; averages follow from them. The traces of GPUs and of CUDA's calls
are spans. Sums of bytes, and sums that are there twice, are not kept; the database that nsys exports has everything.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from strobe.formats.reading.database_tables import SpanTable, TableImport, named_by
from strobe.formats.reading.import_process import NO_PATH, ImportProcess
from strobe.formats.reading.profile_import import NANOSECONDS, clean
from strobe.formats.reading.row_tables import PlainDialect, Row, row_database
from strobe.formats.reading.sqlite_input import NONE, Texts
from strobe.formats.reading.text_input import lines_of
from strobe.model.kinds import role_of_cuda_call
from strobe.model.losses import RECORDS_LEFT_OUT
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

# Headings of sums, and of traces, in the first bytes.
_SUMS = re.compile(rb'(?m)^[ "]*Time ?\(%\)"?[, ] *"?Total Time(?: \(\w+\))?"?[, ]')
_TRACE = re.compile(rb'(?m)^[ "]*Start \(\w+\)"?[, ] *"?(?:End \(\w+\)"?[, ] *"?)?Duration \(\w+\)"?[, ]')
_RULE = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*")
_UNIT = re.compile(r"(.+) \((ns|us|ms|s)(?:ec)?\)")
_NUMBER = re.compile(r"\d[\d,]{0,24}(?:\.\d{1,9})?")
_SPACES = re.compile(r"\s{2,}")
_LARGEST = 1 << 62
_CUDA = re.compile(r"cu(?:da)?[A-Z]\w*")
_NAMES = ("Name", "Operation", "Range")
_KERNELS, _COPIES, _CALLS = "nsys kernels", "nsys copies", "nsys calls"
_SPAN = {"start": "INTEGER", "end": "INTEGER", "correlationId": "INTEGER"}
_ON_GPU = {**_SPAN, **dict.fromkeys(("deviceId", "contextId", "streamId"), "INTEGER")}
_SIZES = {f"{of}{axis}": f"{to}_{axis.lower()}" for of, to in (("Grd", "grid"), ("Blk", "block")) for axis in "XYZ"}
_SIZES["Reg/Trd"] = "registers_per_thread"
_LAYOUTS = {
    _KERNELS: {**_ON_GPU, **dict.fromkeys(_SIZES, "INTEGER"), "name": "TEXT"},
    _COPIES: {**_ON_GPU, "Bytes (MB)": "TEXT", "name": "TEXT"},
    _CALLS: {**_SPAN, "processId": "INTEGER", "threadId": "INTEGER", "name": "TEXT"},
}
_OF_GPU = {"correlationId": "correlation", "deviceId": "device", "streamId": "stream"}
_KINDS = (
    SpanTable(_KERNELS, ("name",), named_by("name", "cuda", "kernel"), "kernel_spans", {**_OF_GPU, **_SIZES}),
    SpanTable(_COPIES, ("name",), named_by("name", "cuda", "copy"), "copy_spans", _OF_GPU),
    SpanTable(
        _CALLS,
        ("name",),
        lambda values: (str(values["name"]), "cuda", role_of_cuda_call(str(values["name"])), ""),
        "call_spans",
        {"correlationId": "correlation"},
    ),
)


def sniff(head: bytes) -> bool:
    """Return whether a line has the heading of one of its tables."""
    return _SUMS.search(head) is not None or _TRACE.search(head) is not None


@dataclass
class _Sum:
    calls: int = 0
    total_ns: int = 0
    least_ns: int | None = None
    most_ns: int | None = None


class _Sums:
    """Sums by what they are of and by name. The first table of a kind counts: others split the same differently."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], _Sum] = {}
        self._table_of: dict[tuple[str, str], int] = {}

    def add(self, table: int, kind: tuple[str, str], name: str, row: _Sum) -> bool:
        """Return whether it counts."""
        if self._table_of.setdefault(kind, table) != table:
            return False
        sums = self.found.setdefault((*kind, name), _Sum())
        sums.calls, sums.total_ns = sums.calls + row.calls, sums.total_ns + row.total_ns
        for ends, mine, chosen in (("least_ns", row.least_ns, min), ("most_ns", row.most_ns, max)):
            before = getattr(sums, ends)
            setattr(sums, ends, mine if before is None else before if mine is None else chosen(before, mine))
        return True


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import all tables of a file."""
    sums, counters = _Sums(), Counter[str]()
    with row_database(_LAYOUTS, _rows(source, sums, counters)) as database:
        tables = TableImport(source, target, database, Texts(database, "", "", ""), PlainDialect())
        tables.choose_default_key((_CALLS,), ("processId",))
        for kind in _KINDS:
            tables.made_of(kind.table, (kind.table,))
            tables.spans(kind)
        process = tables.process(tables.default_key)
        for (paradigm, role, name), each in sums.found.items():
            _add(process, paradigm, role, name, each)
        tables.counters.update(counters)
        return tables.finish(lambda key: source.name, properties={"profiler": "nsys stats"})


def _add(process: ImportProcess, paradigm: str, role: str, name: str, sums: _Sum) -> None:
    on_gpu = role in ("kernel", "copy")
    location = process.stream(NONE, NONE) if on_gpu else process.location(paradigm, f"{paradigm} {role}s", 0)
    path = process.out.path(NO_PATH, process.region(name, paradigm, role))
    process.out.totals(location, path, sums.calls, sums.total_ns, sums.total_ns, sums.least_ns, sums.most_ns)


def _rows(source: ImportSource, sums: _Sums, counters: Counter[str]) -> Iterator[Row]:
    """Yield the rows of traces; add up those of sums."""
    columns: list[str] = []
    table, is_csv = 0, False
    for raw in lines_of(source, lambda: counters.update(unreadable_rows=1)):
        line = clean(raw.decode("utf-8-sig", "replace").rstrip("\r").replace("\0", ""))
        if not line.strip():
            columns = []
            continue
        if heading := _heading(line):
            (columns, is_csv), table = heading, table + 1
        elif columns and not _RULE.fullmatch(line):
            cells = _cells(line, len(columns), is_csv=is_csv)
            if len(cells) != len(columns):
                columns = []  # other lines follow
                continue
            yield from _row(table, dict(zip(columns, cells, strict=True)), sums, counters)


def _cells(line: str, count: int, *, is_csv: bool) -> list[str]:
    if not is_csv:
        # What is last may have spaces, and numbers have none.
        return [each.strip() for each in _SPACES.split(line.strip(), max(count - 1, 0))]
    try:
        return [each.strip() for each in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _heading(line: str) -> tuple[list[str], bool] | None:
    """Return the columns that a line names, and whether it is CSV; None for other lines."""
    if "Total" not in line and "Start (" not in line:  # most lines of a long trace
        return None
    found = ((_cells(line, 0, is_csv=is_csv), is_csv) for is_csv in (False, True))
    return next((each for each in found if _is_heading(each[0])), None)


def _is_heading(cells: list[str]) -> bool:
    bare = {_bare(each) for each in cells}
    sums = "Total Time" in bare or any(each == "Total" or each.startswith("Total (") for each in cells)
    return not bare.isdisjoint(_NAMES) and (sums or {"Start", "Duration"} <= bare)


def _bare(column: str) -> str:
    found = _UNIT.fullmatch(column)
    return found[1] if found else column


def _row(table: int, row: Mapping[str, str], sums: _Sums, counters: Counter[str]) -> Iterator[Row]:
    name = next((row[each] for each in _NAMES if row.get(each)), "")
    if any(_bare(each) == "Start" for each in row):
        start, duration = _ns(row, "Start"), _ns(row, "Duration")
        if not name or start is None or duration is None:
            _left_out(counters, "unreadable_rows")
        elif "Strm" in row or "CorrId" in row:
            sized = {column: _whole(row.get(column)) for column in _SIZES}
            device = re.search(r"\((\d{1,9})\)$", row.get("Device", ""))
            cells: dict[str, object] = {"start": start, "end": start + duration, "name": name, **sized}
            cells |= {"correlationId": _whole(row.get("CorrId")), "deviceId": int(device[1]) if device else None}
            cells |= {"contextId": _whole(row.get("Ctx")), "streamId": _whole(row.get("Strm"))}
            cells["Bytes (MB)"] = row.get("Bytes (MB)") or None
            yield _COPIES if name.startswith("[CUDA mem") else _KERNELS, cells
        elif _CUDA.fullmatch(name):
            place = {to: _whole(row.get(of, row.get(of.upper()))) for to, of in _PLACES.items()}
            correlation = _whole(row.get("CorrID"))
            yield _CALLS, {"start": start, "end": start + duration, "name": name, "correlationId": correlation, **place}
        else:
            _left_out(counters, "rows_left_out")
        return
    calls = next((_whole(row[each]) for each in ("Instances", "Num Calls", "Count", "Operations") if each in row), None)
    total = _ns(row, "Total Time")
    if not any(_bare(each) == "Total Time" for each in row):
        _left_out(counters, "metrics_not_kept")  # sums of bytes
    elif not name or calls is None or total is None:
        _left_out(counters, "unreadable_rows")
    else:
        ends = (next((_ns(row, each) for each in names if _ns(row, each) is not None), None) for names in _ENDS)
        counts = sums.add(table, _kind(row, name), name, _Sum(calls, total, *ends))
        counters["records_taken"] += counts
        if not counts:
            _left_out(counters, "repeated_rows")


_ENDS = (("Min", "Minimum"), ("Max", "Maximum"))
_PLACES = {"processId": "Pid", "threadId": "Tid"}


def _kind(row: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the paradigm and the role of what a row is the sum of."""
    if "Range" in row:
        return "nvtx", "range"
    if name.startswith("[CUDA mem"):
        return "cuda", "copy"
    if "Num Calls" not in row:
        return "cuda", "kernel"
    return ("cuda", role_of_cuda_call(name)) if _CUDA.fullmatch(name) else ("other", "function")


def _left_out(counters: Counter[str], why: str) -> None:
    counters[why] += 1
    counters[RECORDS_LEFT_OUT] += 1


def _ns(row: Mapping[str, str], name: str) -> int | None:
    """Return the time in a column, whatever its unit; None where it has none."""
    for column, cell in row.items():
        if _bare(column) == name and _NUMBER.fullmatch(cell):
            unit = _UNIT.fullmatch(column)
            ns = round(Decimal(cell.replace(",", "")) * int(NANOSECONDS[unit[2] if unit else "ns"]))
            return ns if ns < _LARGEST else None
    return None


def _whole(cell: str | None) -> int | None:
    digits = (cell or "").replace(",", "")
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


FORMAT = Format(
    "nsys_stats",
    "nsys stats: sums and traces, as text and CSV",
    suffixes=(".csv", ".txt", ".log"),
    sniff=sniff,
    read=read,
)
