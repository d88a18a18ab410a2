"""Databases of Ascend profilers: tables of CANN, whose texts and words for numbers are in tables of their own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from strobe.formats.ascend.records import (
    CALLS,
    COLLECTIVES,
    LAYOUTS,
    MARKS,
    OPERATORS,
    RANGES,
    STEPS,
    TASKS,
    Records,
    as_json,
)
from strobe.formats.reading.database_tables import TableImport
from strobe.formats.reading.sqlite_input import NONE, Batch, SqliteInput, SqliteTable, combinations
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_FACTS = ("META_DATA", "NPU_INFO", "HOST_INFO", "SESSION_TIME_INFO", "RANK_DEVICE_MAP")
# By our table: the table that its rows are in, and the columns that hold numbers of texts or of words.
_TEXTS = {
    TASKS: ("TASK", ()),
    COLLECTIVES: ("COMMUNICATION_OP", ("opName", "opType", "groupName", "algType")),
    CALLS: ("CANN_API", ("name",)),
    OPERATORS: ("PYTORCH_API", ("name", "inputShapes", "inputDtypes")),
    RANGES: ("MSTX_EVENTS", ("message",)),
    STEPS: ("STEP_TIME", ()),
}
# Of readings: their times, and columns that tell what they are of, beside those whose names end in Id.
_TIMES, _KEYS = ("timestampNs", "timestamp"), ("type", "component", "mode", "streamPtr")
_NO_ID = 0xFFFFFFFF  # of a connection, or of a model


def read_database(source: ImportSource, target: ImportTarget, database: SqliteInput) -> Imported:
    """Import a database. Raises ValueError if it has none of the tables with events."""
    if not any(name in database.tables for name, _ in _TEXTS.values()):
        raise ValueError("it has no table with events")
    tables = _Tables(database)
    origins = {**{table: of for table, (of, _) in _TEXTS.items()}, MARKS: _TEXTS[RANGES][0]}
    for table in origins:
        statement = tables.select(table)
        if statement:
            database.derive(table, statement, LAYOUTS[table])
    records = Records(source, target, database, origins)
    properties: dict[str, object] = {}
    for name in _FACTS:
        if name in database.tables:
            records.tables.property(properties, name)
    read = {name for name, _ in _TEXTS.values()} | {
        "STRING_IDS",
        "CONNECTION_IDS",
        "PYTORCH_CALLCHAINS",
        "COMPUTE_TASK_INFO",
    }
    records.tables.choose_default_key((CALLS, OPERATORS, TASKS), ("processId",))
    for name, found in list(database.tables.items()):
        if name in (*read, *_FACTS, *LAYOUTS, "COMMUNICATION_TASK_INFO") or name.startswith("ENUM_"):
            continue
        if not _read_readings(records.tables, found):
            records.tables.counters["rows_left_out"] += database.count(name)
    ranks = (
        [row[0] for row in database.query("SELECT rankId FROM RANK_DEVICE_MAP")]
        if "RANK_DEVICE_MAP" in database.tables
        else []
    )
    rank = ranks[0] if len(ranks) == 1 and isinstance(ranks[0], int) and ranks[0] >= 0 else None
    host = (
        next(iter(database.query("SELECT hostName FROM HOST_INFO")), ("",))[0] if "HOST_INFO" in database.tables else ""
    )
    return records.read(properties, host=str(host or ""), rank=rank)


def _read_readings(tables: TableImport, table: SqliteTable) -> bool:
    """Import a table of readings: the columns of numbers, for each combination of those that tell what they are of.

    Returns whether it is one.
    """
    time = next((each for each in _TIMES if each in table.columns), None)
    if time is None:
        return False
    keys = [each for each in table.columns if each.endswith("Id") or each in _KEYS]
    columns = [each for each in table.columns if each not in (*keys, *_TIMES)]
    strings = tables.database.pairs("STRING_IDS", "id", "value") if "type" in keys or "component" in keys else {}
    for batch in tables.batches(table.name):
        for process, part in tables.by_process(batch):
            first, group = combinations([part.cells(key) for key in keys] or [np.zeros(part.count, dtype=np.int64)])
            taken = np.zeros(part.count, dtype=bool)
            for column in columns:
                values = part.reals(column)
                if values is None:
                    continue
                for number, row in enumerate(first.tolist()):
                    mine = (group == number) & ~np.isnan(values) & (part.integers_or(time) != NONE)
                    of = " ".join(_shown(part, key, row, strings) for key in keys)
                    process.samples(f"{table.name} {column} ({of})", "", part.integers_or(time)[mine], values[mine])
                    taken |= mine
            tables.taken[table.name] += int(taken.sum())
    return True


def _shown(part: Batch, key: str, row: int, strings: Mapping[int, object]) -> str:
    cell = int(part.cells(key)[row])
    value = part.words[key][cell] if key in part.coded and cell != NONE else cell
    if key in ("type", "component") and isinstance(value, int):
        value = strings.get(value, value)
    return f"{key.removesuffix('Id')} {'none' if cell == NONE else value}"


class _Tables:
    """The tables of a file, as statements that select the columns of `LAYOUTS`."""

    def __init__(self, database: SqliteInput) -> None:
        self._tables = database.tables
        database.function("strobe_json", as_json)

    def select(self, table: str) -> str:
        """Return the statement that makes rows of our table; empty if the file lacks the table that they are in."""
        of, texts = _TEXTS[RANGES if table == MARKS else table]
        if of not in self._tables:
            return ""
        joins = [f'LEFT JOIN STRING_IDS s_{name} ON s_{name}.id = r."{name}"' for name in texts if self._has(of, name)]
        where = ""
        cells = {
            "start": "r.startNs",
            "end": "r.endNs",
            **{
                ours: f"nullif({cell}, {_NO_ID})"
                for ours, theirs in _PLAIN.items()
                if (cell := self._cell(of, theirs)) != "NULL"
            },
        }
        if self._has(of, "globalTid"):
            cells |= {"processId": "r.globalTid >> 32", "threadId": "r.globalTid & 0xffffffff"}
        if table == TASKS:
            cells["kind"], cells["name"] = "t.value", "t.value"
            joins.append("LEFT JOIN STRING_IDS t ON t.id = r.taskType")
            for info, alias in (("COMPUTE_TASK_INFO", "c"), ("COMMUNICATION_TASK_INFO", "m")):
                if info in self._tables:
                    joins.append(f"LEFT JOIN {info} {alias} ON {alias}.globalTaskId = r.globalTaskId")
            computes = "COMPUTE_TASK_INFO" in self._tables
            names = [f"(SELECT value FROM STRING_IDS WHERE id = {alias}.name)"
                     for alias, info in (("c", "COMPUTE_TASK_INFO"), ("m", "COMMUNICATION_TASK_INFO"))
                     if self._has(info, "name")]  # fmt: skip
            cells["name"] = f"coalesce({', '.join((*names, 't.value', 'NULL'))})"
            for ours, theirs in _OF_COMPUTATION.items() if computes else ():
                if self._has("COMPUTE_TASK_INFO", theirs):
                    word = f"(SELECT value FROM STRING_IDS WHERE id = c.{theirs})"
                    cells[ours] = f"coalesce({word}, t.value)" if ours == "kind" else word
            for theirs in ("blockDim", "blockNum"):
                if self._has("COMPUTE_TASK_INFO", theirs):
                    cells["blocks"] = f"c.{theirs}"
        elif table == COLLECTIVES:
            cells |= {"name": "s_opName.value", "collective": "s_opType.value", "team": "s_groupName.value"}
            cells["algorithm"] = "s_algType.value" if self._has(of, "algType") else "NULL"
            cells["dtype"] = self._word(of, "dataType", "ENUM_HCCL_DATA_TYPE")
        elif table == CALLS:
            cells |= {"name": "s_name.value", "layer": self._word(of, "type", "ENUM_API_TYPE")}
        elif table == OPERATORS:
            cells |= {"name": "s_name.value", "kind": self._word(of, "type", "ENUM_API_TYPE")}
            for ours, theirs in (("shapes", "inputShapes"), ("dtypes", "inputDtypes")):
                if self._has(of, theirs):
                    cells[ours] = f"CASE WHEN s_{theirs}.value <> '' THEN strobe_json(s_{theirs}.value) END"
        elif table in (RANGES, MARKS):
            cells["name"] = "s_message.value"
            where = f"WHERE r.endNs {'=' if table == MARKS else '<>'} r.startNs"
        elif table == STEPS:
            cells["name"] = "'ProfilerStep#' || r.id"
            # PyTorch marks its steps itself.
            if "PYTORCH_API" in self._tables:
                where = (
                    "WHERE NOT EXISTS (SELECT 1 FROM PYTORCH_API p JOIN STRING_IDS s ON s.id = p.name "
                    "WHERE s.value LIKE 'ProfilerStep#%')"
                )
        selected = ", ".join(cells.get(column, "NULL") for column in LAYOUTS[table])
        return f"SELECT {selected} FROM {of} r {' '.join(joins)} {where}"

    def _has(self, table: str, column: str) -> bool:
        return table in self._tables and column in self._tables[table].columns

    def _cell(self, table: str, column: str) -> str:
        return f'r."{column}"' if self._has(table, column) else "NULL"

    def _word(self, table: str, column: str, words: str) -> str:
        known = words in self._tables and self._has(table, column)
        return f'(SELECT name FROM {words} w WHERE w.id = r."{column}")' if known else "NULL"


_PLAIN = {
    "deviceId": "deviceId",
    "streamId": "streamId",
    "correlationId": "connectionId",
    "processId": "globalPid",
    "task": "globalTaskId",
    "elements": "count",
    "sequence": "sequenceNumber",
    "forward": "fwdThreadId",
}
_OF_COMPUTATION = {
    "kind": "taskType",
    "operator": "opType",
    "shapes": "inputShapes",
    "dtypes": "inputDataTypes",
    "outputs": "outputShapes",
    "state": "opState",
}
