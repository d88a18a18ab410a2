"""RPD, the database of rocmProfileData (`.rpd`, schemas 1 to 3): calls and ranges of threads, and what GPUs did.

What ran on a GPU has the number of its call as correlation; all kernels of a graph have that of the graph's launch.
Streams have addresses only: what a GPU did lies on its queues. Readings of the monitor are metrics of the process.
Not kept: call stacks, addresses of copies, and the tables that other tools add.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from strobe.formats.reading.sqlite_input import Batch, SqliteInput, combinations
from strobe.formats.rocm.layouts import CALLS, COPIES, KERNELS, LAYOUTS, MARKS, RANGES
from strobe.formats.rocm.records import Records
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_API, _OPERATION, _MONITOR = "rocpd_api", "rocpd_op", "rocpd_monitor"
_UNITS = {"sclk": "MHz", "mclk": "MHz"}
_SPAN = {"processId": "a.pid", "threadId": "a.tid"}


def is_rpd(database: SqliteInput) -> bool:
    """Return whether a database has the tables of RPD."""
    return {_API, _OPERATION, "rocpd_string"} <= database.tables.keys()


def read_rpd(source: ImportSource, target: ImportTarget, database: SqliteInput) -> Imported:
    """Import a database."""
    strings = database.keyed("rocpd_string", "id", ("string",))
    for table, statement in {**_of_calls(database, strings), **_of_operations(database, strings)}.items():
        database.derive(table, statement, LAYOUTS[table])
    origins = {table: [_OPERATION] if table in (KERNELS, COPIES) else [_API] for table in LAYOUTS}
    records = Records(source, target, database, origins)
    records.tables.choose_default_key((CALLS, RANGES, KERNELS), ("processId",))
    _read_monitor(records)
    properties: dict[str, object] = {}
    records.tables.property(properties, "rocpd_metadata")
    return records.read("", properties)


def _of_calls(database: SqliteInput, strings: str) -> dict[str, str]:
    """Return the statements for what threads did: a range has its name as argument."""
    # Before schema 3 all texts were in one table.
    has_own = "rocpd_ustring" in database.tables
    arguments = database.keyed("rocpd_ustring", "id", ("string",)) if has_own else strings
    rows = f'FROM "{_API}" a LEFT JOIN {strings} n ON n.id = a.apiName_id'
    rows += f" LEFT JOIN {arguments} w ON w.id = a.args_id"
    domain = "NULL"
    if "domain_id" in database.tables[_API].columns:
        domain, rows = "d.string", f"{rows} LEFT JOIN {strings} d ON d.id = a.domain_id"
    span = {**_SPAN, "start": 'a."start"', "end": 'a."end"'}
    pairs = "CASE WHEN w.string <> '' THEN json_array(json_array('arguments', w.string)) END"
    call = {**span, "correlationId": "a.id", "domain": domain, "name": "n.string", "arguments": pairs}
    marker = "n.string = 'UserMarker'"
    return {
        CALLS: _select(CALLS, call, f"{rows} WHERE ifnull(NOT {marker}, 1)"),
        RANGES: _select(RANGES, {**span, "name": "w.string"}, f'{rows} WHERE {marker} AND a."end" > a."start"'),
        MARKS: _select(MARKS, {**span, "name": "w.string"}, f'{rows} WHERE {marker} AND NOT a."end" > a."start"'),
    }


def _of_operations(database: SqliteInput, strings: str) -> dict[str, str]:
    """Return the statements for what GPUs did."""
    calls = database.keyed(_API, "id", ("pid", "tid", "apiName_id"))
    call = "NULL"
    if "rocpd_api_ops" in database.tables:
        links = database.keyed("rocpd_api_ops", "op_id", ("api_id",))
        call = f"(SELECT api_id FROM {links} WHERE op_id = o.id LIMIT 1)"
    rows = f'FROM "{_OPERATION}" o LEFT JOIN {strings} t ON t.id = o.opType_id LEFT JOIN {calls} a ON a.id = {call}'
    work = {**_SPAN, "start": 'o."start"', "end": 'o."end"', "queue": "o.queueId", "correlationId": "a.id"}
    kernel = {**work, "deviceId": "o.gpuId", "name": "coalesce(nullif(b.string, ''), t.string)"}
    kernels = f"{rows} LEFT JOIN {strings} b ON b.id = o.description_id"
    copy = {
        **work,
        "source": "CASE WHEN t.string LIKE 'CopyHost%' THEN -1 ELSE o.gpuId END",
        "destination": "CASE WHEN t.string LIKE '%ToHost%' THEN -1 ELSE o.gpuId END",
        "direction": "upper(replace(substr(t.string, 5), 'To', '_TO_'))",
    }
    copies = rows
    if "rocpd_kernelapi" in database.tables:
        sizes = [f"{of}{axis}" for of in ("grid", "workgroup") for axis in "XYZ"]
        launches = database.keyed("rocpd_kernelapi", "api_ptr_id", (*sizes, "groupSegmentSize", "privateSegmentSize"))
        kernels += f" LEFT JOIN {launches} k ON k.api_ptr_id = a.id LEFT JOIN {strings} n ON n.id = a.apiName_id"
        kernel |= {"lds": "k.groupSegmentSize", "scratch": "k.privateSegmentSize"}
        for axis in "XYZ":
            grid, block = f"k.grid{axis}", f"k.workgroup{axis}"
            # These calls get work-items, the others blocks.
            blocks = f"CASE WHEN n.string LIKE 'hipExtModule%' THEN ({grid} + {block} - 1) / nullif({block}, 0)"
            kernel |= {f"grid{axis}": f"{blocks} ELSE {grid} END", f"block{axis}": block}
    if "rocpd_copyapi" in database.tables:
        copies += f" LEFT JOIN {database.keyed('rocpd_copyapi', 'api_ptr_id', ('size',))} k ON k.api_ptr_id = a.id"
        copy["bytes"] = "nullif(k.size, '')"
    is_copy = "ifnull(t.string LIKE 'Copy%', 0)"
    return {
        KERNELS: _select(KERNELS, kernel, f"{kernels} WHERE NOT {is_copy} AND ifnull(t.string, '') <> 'Barrier'"),
        COPIES: _select(COPIES, copy, f"{copies} WHERE {is_copy}"),
    }


def _select(table: str, cells: Mapping[str, str], rows: str) -> str:
    return f"SELECT {', '.join(cells.get(column, 'NULL') for column in LAYOUTS[table])} {rows}"


def _read_monitor(records: Records) -> None:
    """Add what was read of GPUs from time to time: clocks, temperatures, power. A value holds from its start on."""
    tables = records.tables
    for batch in tables.batches(_MONITOR):
        numbers = np.array([*map(_number, batch.words.get("value", [])), np.nan])
        for process, part in tables.by_process(batch):
            values = numbers[np.maximum(part.cells("value"), -1)]
            sound = np.isfinite(values)
            tables.counters["unreadable_values"] += int((~sound).sum())
            devices = part.integers_or("deviceId")
            first, group = combinations([part.cells("deviceType"), devices, part.cells("monitorType")])
            for number, row in enumerate(first.tolist()):
                mine = sound & (group == number)
                kind, what = _word(part, "deviceType", row), _word(part, "monitorType", row)
                name, starts = f"{kind} {int(devices[row])} {what}", part.integers_or("start")
                tables.taken[_MONITOR] += process.samples(name, _UNITS.get(what, ""), starts[mine], values[mine])


def _word(part: Batch, column: str, row: int) -> str:
    code = int(part.cells(column)[row])
    return str(part.words[column][code]) if column in part.words and code >= 0 else "unnamed"


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")
