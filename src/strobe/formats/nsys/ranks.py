"""The ranks of the processes of an Nsight Systems export, which has them in several places or nowhere."""

from __future__ import annotations

import re

from strobe.formats.nsys.export import Export

# What launchers set for each rank; of several, the first is as near to MPI as can be.
_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID", "RANK")
_GPU_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")


def ranks_of(export: Export) -> dict[int, int]:
    """Return the ranks of processes by their keys, by the first of these that the file has.

    MPI's own ranks (nsys names the main thread of each rank after it); the environment of the program, where only one
    process used MPI or a GPU; else the order of several processes that used MPI, or that used a GPU of their own each
    (counted as `ranks_by_order`).
    """
    found = _of_mpi(export)
    if found:
        return found
    calls_mpi = {
        key
        for table in export.tables.database.tables
        if re.fullmatch(r"MPI_\w+_EVENTS", table)
        for key, _ in _used(export, table, "globalTid", "0")
    }
    devices: dict[int, set[int]] = {}
    for table in _GPU_TABLES:
        for key, device in _used(export, table, "globalPid", "deviceId"):
            devices.setdefault(key, set()).add(device)
    working = calls_mpi or devices.keys()
    of_environment = _of_environment(export)
    if len(working) == 1 and of_environment is not None:
        return dict.fromkeys(working, of_environment)
    order = sorted(calls_mpi)
    if not order and all(len(used) == 1 for used in devices.values()):
        own = {min(used): key for key, used in devices.items()}
        order = [own[device] for device in sorted(own)] if len(own) == len(devices) else []
    if len(order) < 2:
        return {}
    export.tables.counters["ranks_by_order"] += len(order)
    return {key: rank for rank, key in enumerate(order)}


def _of_mpi(export: Export) -> dict[int, int]:
    found: dict[int, int] = {}
    for column in ("globalPid", "globalTid"):  # by version
        for number, rank in export.tables.database.pairs("MPI_RANKS", column, "rank").items():
            if isinstance(rank, int) and 0 <= rank < 1 << 31:
                found.setdefault(number >> 24, rank)
    for thread, name in export.thread_names.items():
        rank_name = re.fullmatch(r"MPI Rank (\d{1,9})", name or "")
        if rank_name:
            found.setdefault(thread >> 24, int(rank_name[1]))
    return found


def _used(export: Export, table: str, process: str, value: str) -> set[tuple[int, int]]:
    """Return the keys of the processes in a table, with a column of theirs."""
    columns = export.tables.database.tables[table].columns if table in export.tables.database.tables else {}
    if process not in columns or not (value in columns or value.isdecimal()):
        return set()
    rows = export.tables.database.query(f"SELECT DISTINCT {process} >> 24, {value} FROM {table}")
    return {(key, cell) for key, cell in rows if isinstance(key, int) and isinstance(cell, int)}


def _of_environment(export: Export) -> int | None:
    """Return the rank in the environment that nsys gave the program; it is kept as `NAME="value"`."""
    columns = getattr(export.tables.database.tables.get("META_DATA_CAPTURE"), "columns", {})
    if not {"name", "value"} <= columns.keys():
        return None
    query = "SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT_VARIABLE'"
    found: dict[str, int] = {}
    for (value,) in export.tables.database.query(query):
        variable = re.fullmatch(r'(\w+)="?(\d{1,9})"?', str(value))
        if variable:
            found[variable[1]] = int(variable[2])
    return next((found[name] for name in _VARIABLES if name in found), None)
