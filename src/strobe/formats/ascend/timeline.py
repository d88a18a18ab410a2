"""Timelines of Ascend profilers (trace_view.json, msprof_*.json), with what the CSV file of the same tasks adds.

Their events lie in layers, each a process of Chrome's format with a name: Python or MindSpore, CANN, Ascend Hardware,
Communication. All are one process here, and calls of CANN lie below the operators of their thread. Not kept: the layer
Overlap Analysis, which sums up the others.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal

import numpy as np

from strobe.formats.ascend.records import (
    CALLS,
    COLLECTIVES,
    FILLED,
    LAYOUTS,
    MARKS,
    OPERATORS,
    OTHERS,
    PLANES,
    TASKS,
    Records,
    as_json,
)
from strobe.formats.ascend.tables import microseconds, tasks_of
from strobe.formats.reading.database_tables import TableImport
from strobe.formats.reading.import_process import present
from strobe.formats.reading.json_input import exact_number, fields, objects_in, text
from strobe.formats.reading.row_tables import Row, row_database
from strobe.formats.reading.sqlite_input import SqliteInput
from strobe.model.losses import LEFT_OUT, RECORDS_LEFT_OUT, RECORDS_TAKEN, RECORDS_UNKNOWN, UNKNOWN
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_EVENTS, _DETAILS, _FLOWS, _READINGS = "strobe events", "strobe details", "strobe flows", "strobe readings"
_LAYERS, _THREADS, _LABELS = "strobe layers", "strobe threads", "strobe labels"
_DEVICES, _MATCHED = "strobe devices", "strobe matched"
# From the names of arguments, in small letters, to our columns.
_NUMBERS = {
    "connection_id": "correlationId",
    "stream id": "streamId",
    "task id": "task",
    "sequence number": "sequence",
    "fwd thread id": "forward",
}
_WORDS = {"task type": "kind", "level": "layer", "input dims": "shapes", "input type": "dtypes"}
_EVENT = {"pid": "INTEGER", "threadId": "INTEGER", "start": "INTEGER", "name": "TEXT"}
_LAYOUTS = {
    _EVENTS: {
        **_EVENT,
        **dict.fromkeys(("end", *_NUMBERS.values()), "INTEGER"),
        **dict.fromkeys(("category", *_WORDS.values(), "more"), "TEXT"),
    },
    _DETAILS: LAYOUTS[TASKS],
    _FLOWS: {**_EVENT, "flow": "INTEGER", **dict.fromkeys(("flow_name", "phase", "category"), "TEXT")},
    _READINGS: {**_EVENT, "value": "REAL"},
    MARKS: LAYOUTS[MARKS],
    _LAYERS: {"pid": "INTEGER", "name": "TEXT"},
    _LABELS: {"pid": "INTEGER", "name": "TEXT"},
    _THREADS: {"pid": "INTEGER", "tid": "INTEGER", "name": "TEXT"},
}
_DESCRIPTIONS = {
    "process_name": (_LAYERS, "name"),
    "process_labels": (_LABELS, "labels"),
    "thread_name": (_THREADS, "name"),
}
_HARDWARE, _SUMMED = "Ascend Hardware", "Overlap Analysis"
_COMMUNICATION, _FRAMEWORKS = ("Communication", "HCCL"), ("Python", "MindSpore")
_CANN = ("CANN", "AscendCL", "Runtime")
_FARTHEST_NS = 1000  # that two files of one task are apart: older ones have fewer decimals
_NO_ID = 0xFFFFFFFF
_LONGEST_KIND = 60
_DEVICE = re.compile(r"NPU ?(\d{1,9})")
_WHOLE = re.compile(r"-?\d{1,18}")


def read_timeline(
    source: ImportSource, target: ImportTarget, details: ImportSource | None, rank: int | None = None
) -> Imported:
    """Import a timeline and the CSV file of its tasks. Raises ValueError if it is not a list of events."""
    counters: Counter[str] = Counter()
    with row_database(_LAYOUTS, _rows(source, details, counters)) as database:
        layers = database.pairs(_LAYERS, "pid", "name")
        matched = _derive(database, layers)
        origins = {**dict.fromkeys((TASKS, COLLECTIVES, CALLS, OPERATORS, PLANES, OTHERS), _EVENTS), FILLED: _DETAILS}
        records = Records(source, target, database, origins)
        tables = records.tables
        tables.counters.update(counters)
        tables.taken[_DETAILS] += matched
        tables.default_key = min((pid for pid, name in layers.items() if name in _FRAMEWORKS), default=0)
        tables.left_out(_EVENTS, _SUMMED, _number(database, _selected("count(*)", (_SUMMED,))))
        _read_flows(tables)
        _read_readings(tables)
        return records.read({}, rank=rank)


def _rows(source: ImportSource, details: ImportSource | None, counters: Counter[str]) -> Iterator[Row]:
    def cut_off() -> None:
        counters["truncated"] = 1

    for _, row in tasks_of(details, counters) if details is not None else ():
        yield _DETAILS, row
    for event in objects_in(source, "", cut_off):
        phase, arguments = event.get("ph"), fields(event.get("args"))
        if phase == "M":
            yield from _described(event, arguments, counters)
            continue
        start = microseconds(event.get("ts"), counters)
        cells: dict[str, object] = {
            "pid": _whole(event.get("pid")),
            "threadId": _whole(event.get("tid")),
            "start": start,
            "name": text(event.get("name")),
            "category": text(event.get("cat")) or None,
        }
        if phase == "X":
            duration = microseconds(event.get("dur"), counters)
            end = None if start is None or duration is None else start + duration
            yield _EVENTS, {**cells, **_placed(arguments), "end": end}
        elif phase in ("s", "t", "f"):
            flow = _whole(event.get("id"))
            name = text(event.get("id")) if flow is None else None
            yield _FLOWS, {**cells, "flow": flow, "flow_name": name, "phase": phase}
        elif phase == "C":
            for key, value in arguments.items():
                number = exact_number(value)
                reading = None if number is None else float(number)
                yield _READINGS, {**cells, "name": f"{cells['name']} {key}", "value": reading}
        elif phase in ("i", "I"):
            yield MARKS, {**cells, "end": start}
        else:
            for what in ("unknown_records", RECORDS_UNKNOWN, f"{UNKNOWN}phase {text(phase)}"[:_LONGEST_KIND]):
                counters[what] += 1


def _described(event: Mapping[str, object], arguments: Mapping[str, object], counters: Counter[str]) -> Iterator[Row]:
    """Return what a metadata event has about a process or thread."""
    what = text(event.get("name"))
    if what not in _DESCRIPTIONS:
        for kind in (RECORDS_LEFT_OUT, (LEFT_OUT + what)[:_LONGEST_KIND]):
            counters[kind] += 1
        return
    counters[RECORDS_TAKEN] += 1
    table, key = _DESCRIPTIONS[what]
    yield table, {"pid": _whole(event.get("pid")), "tid": _whole(event.get("tid")), "name": text(arguments.get(key))}


def _placed(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of an event by our columns; those without one as a list of pairs."""
    cells: dict[str, object] = {}
    more = []
    for key, value in arguments.items():
        column, word = _NUMBERS.get(key.lower()), _WORDS.get(key.lower())
        number = _whole(value)
        if column is not None and number is not None:
            cells[column] = None if number == _NO_ID else number
        elif word is not None and isinstance(value, str):
            cells[word] = as_json(value) if word in ("shapes", "dtypes") else value
        else:
            more.append((key, value))
    return {**cells, "more": json.dumps(more, default=_plain) if more else None}


def _plain(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else str(value)


def _whole(value: object) -> int | None:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def _selected(cells: str, layers: tuple[str, ...], *, but: bool = False, joins: str = "", where: str = "1") -> str:
    """Return the statement that selects cells of the events in some layers; `but`: in all others."""
    names = ", ".join(f"'{name}'" for name in layers)
    of_pid = f'(SELECT pid, min(name) AS name FROM "{_LAYERS}" GROUP BY pid) l ON l.pid = r.pid'
    chosen = f"ifnull(l.name, '') {'NOT ' if but else ''}IN ({names})"
    return f'SELECT {cells} FROM "{_EVENTS}" r LEFT JOIN {of_pid} {joins} WHERE {chosen} AND {where}'


def _derive(database: SqliteInput, layers: Mapping[int, object]) -> int:
    """Make the tables of `LAYOUTS` of events by their layers; return how many rows of the CSV file belong to events."""
    _derive_devices(database, layers)
    on_npu = (_HARDWARE, *_COMMUNICATION)
    by_start = database.keyed(_DETAILS, "start", ("name",))  # its rows are numbered as those of the table
    # The plus and CROSS keep SQLite from looking up names, of which there are few.
    near = f"n.start BETWEEN r.start - {_FARTHEST_NS} AND r.start + {_FARTHEST_NS} AND +n.name = r.name"
    database.derive(
        _MATCHED,
        _selected(
            "r.rowid, n.rowid, min(abs(n.start - r.start))",
            on_npu,
            joins=f"CROSS JOIN {by_start} n ON {near}",
            where="1 GROUP BY r.rowid",
        ),
        {"event": "INTEGER PRIMARY KEY", "detail": "INTEGER", "apart": "INTEGER"},
    )
    joins = (
        f'LEFT JOIN "{_MATCHED}" m ON m.event = r.rowid LEFT JOIN "{_DETAILS}" d ON d.rowid = m.detail '
        f'LEFT JOIN "{_DEVICES}" p ON p.pid = r.pid '
        f'LEFT JOIN (SELECT pid, tid, min(name) AS name FROM "{_THREADS}" GROUP BY pid, tid) t '
        "ON t.pid = r.pid AND t.tid = r.threadId"
    )
    event = {key: f'r."{key}"' for key in _LAYOUTS[_EVENTS]}
    device = {"deviceId": "coalesce(d.deviceId, p.device, 0)", "threadId": "NULL"}
    of_detail = {key: f"d.{key}" for key in ("blocks", "operator", "shapes", "dtypes", "outputs", "state")}
    task = {**event, **of_detail, **device, "kind": "ifnull(d.kind, r.kind)", "task": "ifnull(r.task, d.task)"}
    task["streamId"] = plane = "coalesce(r.streamId, r.threadId)"
    kinds = (
        "CASE r.category WHEN 'cpu_op' THEN 'op' WHEN 'user_annotation' THEN 'trace' ELSE ifnull(r.category, 'op') END"
    )
    collective = {**event, **device, "streamId": "NULL", "collective": "d.operator"}
    is_plane = "ifnull(t.name, '') LIKE 'Plane%'"
    named = (_SUMMED, *on_npu, *_CANN, *_FRAMEWORKS)
    for table, given, statement in (
        (TASKS, task, {"layers": (_HARDWARE,)}),
        (COLLECTIVES, collective, {"layers": _COMMUNICATION, "where": f"NOT {is_plane}"}),
        (PLANES, {**event, **device, "streamId": plane}, {"layers": _COMMUNICATION, "where": is_plane}),
        (CALLS, event, {"layers": _CANN}),
        (OPERATORS, {**event, "kind": kinds}, {"layers": _FRAMEWORKS}),
        (OTHERS, {**event, "layer": "ifnull(l.name, '')"}, {"layers": named, "but": True}),
    ):
        selected = ", ".join(given.get(column, "NULL") for column in LAYOUTS[table])
        database.derive(table, _selected(selected, joins=joins, **statement), LAYOUTS[table])
    matched = f'SELECT detail FROM "{_MATCHED}"'
    filled = {key: f'"{key}"' for key in LAYOUTS[FILLED]}
    filled["deviceId"] = f'coalesce(deviceId, (SELECT min(device) FROM "{_DEVICES}"), 0)'
    cells = ", ".join(filled.values())
    database.derive(FILLED, f'SELECT {cells} FROM "{_DETAILS}" WHERE rowid NOT IN ({matched})', LAYOUTS[FILLED])
    return _number(database, f"SELECT count(DISTINCT detail) FROM ({matched})")


def _derive_devices(database: SqliteInput, layers: Mapping[int, object]) -> None:
    """Number the NPUs: by their labels if these have a number, else in order of their processes."""
    labels = database.pairs(_LABELS, "pid", "name")
    hardware = sorted(pid for pid, name in layers.items() if name == _HARDWARE)
    devices = {pid: number for number, pid in enumerate(hardware)}
    devices |= {pid: int(found[1]) for pid, name in labels.items() if (found := _DEVICE.fullmatch(str(name)))}
    if len(hardware) == 1:
        devices |= {pid: devices[hardware[0]] for pid, name in layers.items() if name in _COMMUNICATION}
    rows = ", ".join(f"({pid}, {device})" for pid, device in devices.items()) or "(NULL, NULL)"
    database.derive(_DEVICES, f"VALUES {rows}", {"pid": "INTEGER", "device": "INTEGER"})


def _number(database: SqliteInput, statement: str) -> int:
    found = next(database.query(statement), (0,))[0]
    return found if isinstance(found, int) else 0


def _read_flows(tables: TableImport) -> None:
    for batch in tables.batches(_FLOWS):
        for process, part in tables.by_process(batch):
            cells = {key: tables.texts_of(process, part, _FLOWS, key) for key in _LAYOUTS[_FLOWS] if key in part.coded}
            cells |= {"time_ns": (part.integers_or("start"), None), "flow": present(part.integers_or("flow"))}
            tables.taken[_FLOWS] += process.rows("flows", tables.locations(process, part), cells)


def _read_readings(tables: TableImport) -> None:
    for batch in tables.batches(_READINGS):
        for process, part in tables.by_process(batch):
            values, names = part.reals("value"), part.cells("name")
            if values is None:
                continue
            for code in np.unique(names).tolist():
                mine = (names == code) & ~np.isnan(values)
                name, times = str(part.words["name"][code]), part.integers_or("start")[mine]
                tables.taken[_READINGS] += process.samples(name, "", times, values[mine])
