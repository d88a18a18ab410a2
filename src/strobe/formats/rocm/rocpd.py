"""rocpd, the database of rocprofv3: schema 3. Its tables end in the number of the run; a merged file has several runs.

The views of the file are not used: they are statements of its author.
"""

from __future__ import annotations

from collections.abc import Mapping

from strobe.formats.reading.sqlite_input import SqliteInput
from strobe.formats.rocm.layouts import (
    ALLOCATIONS,
    CALLS,
    COPIES,
    KERNELS,
    LAYOUTS,
    MARKS,
    PROCESS_RANGES,
    RANGES,
    READINGS,
)
from strobe.formats.rocm.records import Records
from strobe.model.plugins import Imported, ImportSource, ImportTarget

# The tables with the rows of ours.
_ORIGINS = {
    KERNELS: "kernel_dispatch",
    COPIES: "memory_copy",
    ALLOCATIONS: "memory_allocate",
    **dict.fromkeys((CALLS, RANGES, PROCESS_RANGES), "region"),
    MARKS: "sample",
}
_MESSAGE = "CASE WHEN json_valid(e.extdata) THEN json_extract(e.extdata, '$.message') END"
_IS_MARKER = "c.string LIKE '%MARKER%'"
_MOST_ARGUMENTS = 64  # of a call
_PROCESS_RANGE = "n.string LIKE 'roctxProcessRange%'"


def read_rocpd(source: ImportSource, target: ImportTarget, database: SqliteInput) -> Imported:
    """Import a database. Raises ValueError if it has none of the tables with records."""
    runs = [name.removeprefix("rocpd_event") for name in database.tables if name.startswith("rocpd_event")]
    if not runs:
        raise ValueError("it has no table rocpd_event")
    for table, layout in LAYOUTS.items():
        selected = [statement for run in runs if (statement := _Run(database, run).select(table))]
        if selected:
            database.derive(table, " UNION ALL ".join(selected), layout)
    records = Records(
        source, target, database, {table: [f"rocpd_{of}{run}" for run in runs] for table, of in _ORIGINS.items()}
    )
    arguments = sum(database.count(table) for run in runs if (table := f"rocpd_arg{run}") in database.tables)
    records.tables.counters["call_arguments_not_kept"] += arguments - _arguments_of_calls(database)
    properties: dict[str, object] = {}
    for run in runs:
        records.tables.property(properties, f"rocpd_metadata{run}")
    first = runs[0]
    command, host = (
        str(next(iter(database.pairs(f"rocpd_info_{table}{first}", "id", column).values()), None) or "")
        for table, column in (("process", "command"), ("node", "hostname"))
    )
    agents = database.pairs(f"rocpd_info_agent{first}", "id", "product_name")
    named = {str(number): name for number, name in agents.items() if isinstance(name, str)}
    properties |= {"command": command, "agents": named}
    return records.read(command, properties, host)


def _arguments_of_calls(database: SqliteInput) -> int:
    statement = f'SELECT json_array_length(arguments) FROM "{CALLS}" WHERE arguments IS NOT NULL'
    found = database.query(statement) if CALLS in database.tables else iter(())
    return sum(number for (number,) in found if isinstance(number, int))


class _Run:
    """The tables of one run, as statements that select the columns of `LAYOUTS`."""

    def __init__(self, database: SqliteInput, run: str) -> None:
        self._database, self._tables, self._run = database, database.tables, run

    def select(self, table: str) -> str:
        """Return the statement that makes rows of our table; empty if the run lacks the table that they are in."""
        event = self._join("event", "e", "r.event_id") + self._join("string", "c", "e.category_id")
        call = {"correlationId": "e.stack_id"}
        if table in (KERNELS, READINGS):
            sizes = {
                **{f"block{axis}": f"r.workgroup_size_{axis.lower()}" for axis in "XYZ"},
                # The file counts work-items.
                **{
                    f"grid{axis}": f"(r.grid_size_{axis.lower()} + r.workgroup_size_{axis.lower()} - 1)"
                    f" / nullif(r.workgroup_size_{axis.lower()}, 0)"
                    for axis in "XYZ"
                },
                "lds": "r.group_segment_size",
                "scratch": "r.private_segment_size",
                "dispatch": "r.dispatch_id",
                "vgpr": "k.arch_vgpr_count",
                "agpr": "k.accum_vgpr_count",
                "sgpr": "k.sgpr_count",
                "deviceId": _gpu("a"),
                "name": "coalesce(k.display_name, k.kernel_name)",
            }
            joins = event + self._join("info_kernel_symbol", "k", "r.kernel_id") + self._agent("kernel_dispatch", "a")
            if table == KERNELS:
                return self._spans(table, "kernel_dispatch", {**call, **sizes}, joins)
            if f"rocpd_pmc_event{self._run}" not in self._tables:
                return ""
            # A counter has a row for each of its instances.
            joins += self._join("pmc_event", "v", "r.event_id", "event_id") + self._join("info_pmc", "i", "v.pmc_id")
            value = {"counter": "i.name", "value": "sum(v.value)"}
            where = "v.value IS NOT NULL GROUP BY r.id, i.name"
            return self._spans(table, "kernel_dispatch", {**call, **sizes, **value}, joins, where)
        if table == COPIES:
            ends = {"source": _device("s"), "destination": _device("d"), "bytes": "r.size", "direction": "n.string"}
            joins = self._join("info_agent", "s", "r.src_agent_id") + self._join("info_agent", "d", "r.dst_agent_id")
            joins += self._join("string", "n", "r.name_id")
            return self._spans(table, "memory_copy", {**call, **ends}, event + joins)
        if table == ALLOCATIONS:
            what = {"address": "r.address", "bytes": "r.size", "level": "r.level", "device": _device("a")}
            what["free"] = "r.type IN ('FREE', 'RECLAIM')"
            return self._spans(table, "memory_allocate", {**call, **what}, event + self._agent("memory_allocate", "a"))
        if table in (CALLS, RANGES, PROCESS_RANGES):
            where = {
                CALLS: f"ifnull(NOT {_IS_MARKER}, 1)",
                RANGES: f"{_IS_MARKER} AND NOT {_PROCESS_RANGE}",
                PROCESS_RANGES: f"{_IS_MARKER} AND {_PROCESS_RANGE}",
            }[table]
            name = "n.string" if table == CALLS else f"ifnull({_MESSAGE}, n.string)"
            event += self._join("string", "n", "r.name_id")
            cells = {**call, "domain": "c.string", "name": name, "arguments": self._arguments()}
            return self._spans(table, "region", cells, event, where)
        if table == MARKS:
            time = {"start": "r.timestamp", "end": "r.timestamp", "name": f"ifnull({_MESSAGE}, c.string)"}
            return self._spans(table, "sample", time, event, track=True)
        return ""

    def _spans(
        self, table: str, of: str, cells: Mapping[str, str], joins: str, where: str = "1", *, track: bool = False
    ) -> str:
        found = self._tables.get(f"rocpd_{of}{self._run}")
        if found is None:
            return ""
        # Some versions keep times and places in tables of their own.
        track = track or "track_id" in found.columns
        at = "t" if track else "r"
        cells = {
            "processId": "p.pid",
            "threadId": "h.tid",
            "start": 'r."start"',
            "end": 'r."end"',
            "streamId": f"{at}.stream_id",
            "queue": f"{at}.queue_id",
            **({"start": "f.value", "end": "u.value"} if "start_id" in found.columns else {}),
            **cells,
        }
        if track:
            joins = self._join("track", "t", "r.track_id") + joins
        if "start_id" in found.columns:
            joins += self._join("timestamp", "f", "r.start_id") + self._join("timestamp", "u", "r.end_id")
        joins += self._join("info_process", "p", f"{at}.pid") + self._join("info_thread", "h", f"{at}.tid")
        selected = ", ".join(cells.get(column, "NULL") for column in LAYOUTS[table])
        return f'SELECT {selected} FROM "{found.name}" r {joins} WHERE {where}'

    def _arguments(self) -> str:
        table = f"rocpd_arg{self._run}"
        if table not in self._tables:
            return "NULL"
        found = self._database.keyed(table, "event_id", ("name", "value"))
        of_call = f"SELECT name, value FROM {found} WHERE event_id = r.event_id ORDER BY rowid LIMIT {_MOST_ARGUMENTS}"
        return f"(SELECT nullif(json_group_array(json_array(name, value)), '[]') FROM ({of_call}))"

    def _agent(self, of: str, alias: str) -> str:
        found = self._tables.get(f"rocpd_{of}{self._run}")
        at = "t" if found is not None and "track_id" in found.columns else "r"
        return self._join("info_agent", alias, f"{at}.agent_id")

    def _join(self, table: str, alias: str, key: str, of: str = "id") -> str:
        return f' LEFT JOIN "rocpd_{table}{self._run}" {alias} ON {alias}.{of} = {key}'


def _gpu(agent: str) -> str:
    """Return the number of a GPU among those of the node."""
    return f"CASE WHEN {agent}.type = 'GPU' THEN {agent}.type_index END"


def _device(agent: str) -> str:
    return f"CASE {agent}.type WHEN 'GPU' THEN {agent}.type_index WHEN 'CPU' THEN -1 END"
