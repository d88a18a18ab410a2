"""Databases of Ascend profilers: tables of CANN, whose texts and words for numbers are in tables of their own."""

from __future__ import annotations

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
from strobe.formats.reading.sqlite_input import SqliteInput
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
_NO_ID = 0xFFFFFFFF  # of a connection, or of a model


def read_database(source: ImportSource, target: ImportTarget, database: SqliteInput) -> Imported:
    """Import a database. Raises ValueError if it has none of the tables with events."""
    if not any(name in database.tables for name, _ in _TEXTS.values()):
        raise ValueError("it has no table with events")
    tables = _Tables(database)
    for table in LAYOUTS:
        statement = tables.select(table)
        if statement:
            database.derive(table, statement, LAYOUTS[table])
    records = Records(source, target, database)
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
    for name in database.tables:
        if name not in (*read, *_FACTS, *LAYOUTS, "COMMUNICATION_TASK_INFO") and not name.startswith("ENUM_"):
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
