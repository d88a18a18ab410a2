"""CSV files of Ascend profilers: kernels with their times, sums by type of operator, and what steps consist of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from strobe.formats.ascend.records import LAYOUTS, TASKS, Records
from strobe.formats.reading.csv_input import csv_rows
from strobe.formats.reading.profile_import import ROOT, Function, ProfileProcess, Weight
from strobe.formats.reading.row_tables import Row, row_database
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_COLUMNS = {
    "name": ("Name", "Op Name"),
    "operator": ("Type", "OP Type"),
    "kind": ("Accelerator Core", "Task Type"),
    "shapes": ("Input Shapes",),
    "dtypes": ("Input Data Types",),
    "outputs": ("Output Shapes",),
    "state": ("OP State",),
}
_NUMBERS = {
    "deviceId": ("Device_id",),
    "streamId": ("Stream ID",),
    "task": ("Task ID",),
    "blocks": ("Block Dim", "Block Num"),
}
_TIMES = ("Start Time(us)", "Task Start Time(us)", "Task Start Time"), ("Duration(us)", "Task Duration(us)")
_PARTS = ("Computing", "Communication(Not Overlapped)", "Free")  # of a step; the others overlap them
_LARGEST = 1 << 62
_USUAL = re.compile(r"(\d{1,15})(?:\.(\d{1,3}))?", re.ASCII)


def read_kernels(source: ImportSource, target: ImportTarget) -> Imported:
    """Import the tasks of NPUs. Metrics of cores are counted as columns that are not kept."""
    counters = {"unreadable_rows": 0, "columns_not_kept": 0, "times_rounded": 0}
    rows = ((table, {**cells, "deviceId": cells["deviceId"] or 0}) for table, cells in tasks_of(source, counters))
    with row_database(LAYOUTS, rows) as database:
        records = Records(source, target, database)
        records.tables.counters.update(counters)
        return records.read({})


def tasks_of(source: ImportSource, counters: MutableMapping[str, int]) -> Iterator[Row]:
    """Return the tasks in a CSV file as rows of `LAYOUTS`."""

    def broken() -> None:
        counters["unreadable_rows"] = counters.get("unreadable_rows", 0) + 1

    known = {name for names in (*_COLUMNS.values(), *_NUMBERS.values(), *_TIMES) for name in names}
    for row in csv_rows(source, broken):
        counters["columns_not_kept"] = sum(name not in known for name in row)
        start, duration = (microseconds(_first(row, names), counters) for names in _TIMES)
        cells: dict[str, object] = {key: _first(row, names) for key, names in _COLUMNS.items()}
        cells |= {key: int(text) if (text := _first(row, names) or "").isdecimal() and len(text) < 19 else None
                  for key, names in _NUMBERS.items()}  # fmt: skip
        yield TASKS, {**cells, "start": start, "end": None if start is None or duration is None else start + duration}


def _first(row: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the cell of the first of some columns that the file has; None for one that is empty."""
    cell = next((row[name] for name in names if name in row), "").strip().strip('"')
    return None if cell in ("", "N/A") else cell


def microseconds(cell: object, counters: MutableMapping[str, int]) -> int | None:
    """Return microseconds as nanoseconds, None for what is no number of a sound size."""
    usual = _USUAL.fullmatch(str(cell))
    if usual is not None:
        return int(usual[1] + (usual[2] or "").ljust(3, "0"))
    try:
        exact = Decimal("x" if cell is None else str(cell))
    except InvalidOperation:
        return None
    if not exact.is_finite() or not -30 < exact.adjusted() < 16:
        return 0 if exact == 0 else None
    ns = Fraction(exact) * 1000
    counters["times_rounded"] = counters.get("times_rounded", 0) + (ns.denominator != 1)
    return round(ns)


def read_statistic(source: ImportSource, target: ImportTarget) -> Imported:
    """Import sums by type of operator: each is a root of a profile."""
    process = ProfileProcess(source, target)
    ignored: dict[str, int] = {}
    for row in csv_rows(source, lambda: process.core.count("unreadable_rows")):
        time, count = microseconds(_first(row, ("Total Time(us)",)), ignored), _first(row, ("Count",)) or ""
        if time is None or not count.isdecimal() or len(count) > 18:
            process.core.count("unreadable_rows")
            continue
        core = _first(row, ("Core Type",)) or ""
        location = process.core.location(("core", core), core or "NPU", 0, "task")
        function = Function(_first(row, ("OP Type",)) or "<unnamed operator>", module=core)
        process.totals(
            *(location, process.path(ROOT, process.region(function, paradigm="accelerator", role="kernel"))),
            *(int(count), time, time),
        )
    return process.finish({})


def read_step_trace(source: ImportSource, target: ImportTarget) -> Imported:
    """Import what steps consist of: a root for each, and below it the parts that add up to it."""
    process = ProfileProcess(source, target)
    ignored: dict[str, int] = {}
    for row in csv_rows(source, lambda: process.core.count("unreadable_rows")):
        times = {
            name: microseconds(_first(row, (name,)), ignored)
            for name in row
            if name not in ("Step", "Type", "Index", "Device_id")
        }
        parts = {name: times.get(name) for name in _PARTS}
        if any(time is None or not 0 <= time < _LARGEST for time in parts.values()):
            process.core.count("unreadable_rows")
            continue
        place = " ".join(filter(None, (row.get("Type"), row.get("Index")))) or f"NPU {row.get('Device_id') or 0}"
        location = process.core.location(("place", place), place, 0, "task")
        step = process.path(
            ROOT, process.region(Function(f"step {row.get('Step') or ''}".rstrip()), paradigm="other", role="range")
        )
        process.totals(location, step, 1, sum(time or 0 for time in parts.values()), 0)
        for name, time in parts.items():
            below = process.path(step, process.region(Function(name), paradigm="other", role="other"))
            process.totals(location, below, 1, time or 0, time or 0)
        for name, time in times.items():
            if name not in parts and time:
                process.path_metric(location, step, Weight(name, "ns"), None, float(time))
    return process.finish({})
