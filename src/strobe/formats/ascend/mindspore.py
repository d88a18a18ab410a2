"""What MindSpore 1 and 2.0 left in the folder `profiler`, a file of each kind for each device.

Kernels with times are in `output_timeline_data_*.txt`, without it sums of them in `aicore_intermediate_*_detail.csv` or
`_type.csv`; their types and shapes are in `framework_raw_*.csv`. Steps and their parts are in `step_trace_raw_*.csv`,
whose times count 10 ns each. The queues of the data pipeline have readings without a clock: they begin with what else
there is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import PurePosixPath

import numpy as np

from strobe.formats.ascend.first_bytes import MINDSPORE_FILES, NAMES, mindspore_kind
from strobe.formats.ascend.records import COLLECTIVES, LAYOUTS, STEPS, TASKS, Records
from strobe.formats.ascend.tables import microseconds
from strobe.formats.reading.csv_input import csv_rows
from strobe.formats.reading.import_process import NO_PATH, ImportProcess
from strobe.formats.reading.json_input import fields, items, read_json, text
from strobe.formats.reading.row_tables import Row, row_database
from strobe.formats.reading.sqlite_input import NONE
from strobe.formats.reading.text_input import first_cells
from strobe.model.losses import LEFT_OUT, RECORDS_LEFT_OUT
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_PARTS = (
    ("iteration_interval", "start_point", "fp_point"),
    ("fp_and_bp", "fp_point", "bp_point"),
    ("tail", "bp_point", "end_point"),
)
_COUNT_NS = 10
_LONGEST_MS = 1 << 20
_START = "_start_point"
_REDUCTION = re.compile(rf"stream_(?P<stream>\d{{1,9}})_(?P<name>.+){_START}")


def read_mindspore(source: ImportSource, target: ImportTarget, kind: str) -> Imported:
    """Import a file with the others of its device. Raises ValueError if a file of JSON is none."""
    files, device = _of_device(source, kind)
    counters = Counter[str]()

    def rows_of(wanted: str) -> Iterator[Mapping[str, str]]:
        found = files.get(wanted)
        return iter(()) if found is None else csv_rows(found, lambda: counters.update(unreadable_rows=1))

    with row_database(LAYOUTS, _rows(rows_of, device, counters)) as database:
        records = Records(source, target, database)
        tables = records.tables
        process = tables.process(tables.default_key)
        if "kernels" not in files:
            for row in rows_of("sums" if "sums" in files else "types"):
                _add_sum(process, device, row)
        first = next(database.query(f'SELECT min("start") FROM (SELECT "start" FROM "{TASKS}" UNION ALL '
                                    f'SELECT "start" FROM "{STEPS}")'), (0,))[0]  # fmt: skip
        begin_ns = first if isinstance(first, int) else 0
        if "pipeline" in files:
            for row in rows_of("pipeline"):
                sizes: list[object] = [
                    size for size in row.get("output_queue_size", "").strip("[] ").split(",") if size
                ]
                queue = f"{row.get('op_type')} {row.get('op_id')}"
                _add_readings(process, queue, begin_ns, sizes, row.get("sample_interval"))
        elif "queues" in files:
            body = read_json(files["queues"])
            for operator in map(fields, items(body.get("op_info"))):
                sizes = items(fields(fields(operator.get("metrics")).get("output_queue")).get("size"))
                queue = f"{text(operator.get('op_type'))} {operator.get('op_id')}"
                _add_readings(process, queue, begin_ns, sizes, body.get("sampling_interval"))
        tables.counters.update(counters)
        return records.read({})


def _of_device(source: ImportSource, kind: str) -> tuple[dict[str, ImportSource], int]:
    """Return the files of the device that a file is of, by kind, and its number; others are not looked for."""
    pattern = re.escape(MINDSPORE_FILES[kind][0]).replace(r"\{\}", r"(\d{1,9})")
    own = re.fullmatch(pattern, PurePosixPath(source.name.replace(":", "/")).name)
    if own is None:
        return {kind: source}, 0
    others = {each: source.beside(name.format(own[1])) for each, (name, _) in MINDSPORE_FILES.items() if each != kind}
    files = {each: found for each, found in others.items() if found is not None and _is(each, found)} | {kind: source}
    if "kernels" in files:
        for name in ("ascend_timeline_display", "timeline_display"):
            source.beside(f"{name}_{own[1]}.json")  # the same kernels
    return files, int(own[1])


def _is(kind: str, source: ImportSource) -> bool:
    """Return whether a file is what its name has it for."""
    head = next(iter(source.chunks()), b"")
    return kind == "operators" or mindspore_kind(first_cells(head), head) == kind


def _rows(rows_of: Callable[[str], Iterator[Mapping[str, str]]], device: int, counters: Counter[str]) -> Iterator[Row]:
    operators = {_name(row): row for row in rows_of("operators")}

    def task(name: str, kind: str, start: int | None, duration: int | None, stream: str) -> Row:
        known = operators.get(name, {})
        return TASKS, {
            "name": name,
            "kind": kind,
            "operator": known.get("kernel_type") or known.get("op_type"),
            "shapes": _shapes(known.get("op_info", "")),
            "blocks": _whole(known.get("block_dim")),
            "deviceId": device,
            "streamId": _whole(stream),
            "start": start,
            "end": None if start is None or duration is None else start + duration,
        }

    for row in rows_of("kernels"):
        start, duration = (
            microseconds(f"{row[name].strip()}e3", counters) for name in ("start_time(ms)", "duration(ms)")
        )
        yield task(row["op_name"].strip(), "AI_CORE", start, duration, row["stream_id"])
    for row in rows_of("ai cpu"):
        start, end = (microseconds(row[name], counters) for name in ("run_start", "run_end"))
        duration = None if start is None or end is None else end - start
        yield task(row.get("kernel_type") or row.get("op_type") or "", "AI_CPU", start, duration, "")
    for row in rows_of("steps"):
        if row["step_num"] == "-":  # the means of the others
            for what in (RECORDS_LEFT_OUT, f"{LEFT_OUT}mean of steps"):
                counters[what] += 1
            continue
        at = {name: None if (n := _whole(cell)) is None else n * _COUNT_NS for name, cell in row.items()}
        yield STEPS, {"name": f"step {row['step_num']}", "start": at["start_point"], "end": at["end_point"]}
        for part, start_point, end_point in _PARTS:
            if at[start_point] != at[end_point]:
                yield STEPS, {"name": part, "start": at[start_point], "end": at[end_point]}
        for column in row:
            found = _REDUCTION.fullmatch(column)
            if found is not None and row[column].strip():
                place = {"deviceId": device, "streamId": int(found["stream"]), "start": at[column]}
                yield (
                    COLLECTIVES,
                    {**place, "name": found["name"], "end": at.get(f"{column.removesuffix(_START)}_end_point")},
                )


def _name(row: Mapping[str, str]) -> str:
    """Return the name of an operator with its scopes."""
    return next((cell for column, cell in row.items() if column in NAMES), "")


def _whole(cell: str | None) -> int | None:
    digits = (cell or "").strip()
    return int(digits) if digits.isdecimal() and len(digits) < 18 else None


def _shapes(described: str) -> str | None:
    """Return the shapes of inputs as newer versions write them: `8,3;3`."""
    try:
        operands = json.loads(described or "{}")
    except (ValueError, RecursionError):
        return None
    shapes = [fields(value).get("shape") for key, value in fields(operands).items() if key.startswith("input_")]
    texts = (",".join(map(str, each)) if isinstance(each, list) else str(each) for each in shapes)
    return ";".join(texts) or None


def _add_sum(process: ImportProcess, device: int, row: Mapping[str, str]) -> None:
    """Add the sum of a kernel's executions (of which the file has the mean), or of those of a type."""
    count, kernel = row.get("execution_frequency", "").strip(), _name(row)
    ns = _exact_ns(row.get("total_time") or row.get("execution_time"))
    if ns is None or not count.isdecimal() or len(count) > 9:
        process.left_out("unreadable_rows")
        return
    total = round(ns * int(count) if kernel else ns)
    region = process.region(
        kernel or row.get("kernel_type") or row.get("op_type") or "", "accelerator", "kernel", "AI_CORE"
    )
    process.out.totals(process.stream(device, NONE), process.out.path(NO_PATH, region), int(count), total, total, 0, 0)
    process.taken()


def _exact_ns(cell: str | None) -> Fraction | None:
    """Return milliseconds as nanoseconds; None for anything but a number of a sound size."""
    try:
        exact = Decimal((cell or "x").strip())
    except InvalidOperation:
        return None
    sound = exact.is_finite() and (exact == 0 or -30 < exact.adjusted() < 9)
    return Fraction(exact) * 1_000_000 if sound else None


def _add_readings(
    process: ImportProcess, queue: str, begin_ns: int, sizes: Sequence[object], interval_ms: object
) -> None:
    """Add the lengths of a queue: one reading for each interval."""
    apart = _whole(str(interval_ms))
    numbers = [_whole(str(size)) for size in sizes]
    known = [each for each in numbers if each is not None]
    if not known or apart is None or apart >= _LONGEST_MS or len(known) != len(numbers):
        process.left_out("unreadable_rows" if known or numbers else f"{LEFT_OUT}operators without a queue")
        return
    times = begin_ns + np.arange(len(known), dtype=np.int64) * (apart * 1_000_000)
    process.samples(f"queue of {queue}", "", times, np.array(known, dtype=np.float64))
    process.taken()
