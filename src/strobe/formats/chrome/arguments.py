"""Rows of side tables as arguments of Chrome's events: Kineto's names if it has them, else `table.column`.

`native/formats/chrome/chrome_categories.h` is the same list for reading.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.tables.lazy_pyarrow import pa

# Columns of side tables, and their names in Kineto.
_GPU_KEYS = {
    "correlation": "correlation",
    "external_id": "External id",
    "device": "device",
    "context": "context",
    "stream": "stream",
}
_KEYS: Mapping[str, Mapping[str, str]] = {
    "kernel_spans": {
        **_GPU_KEYS,
        "registers_per_thread": "registers per thread",
        "shared_memory_bytes": "shared memory",
        "queued_ns": "queued",
        "blocks_per_sm": "blocks per SM",
        "warps_per_sm": "warps per SM",
        "occupancy_percent": "est. achieved occupancy %",
        "graph": "graph id",
        "graph_node": "graph node id",
        "priority": "priority",
    },
    "copy_spans": {
        **_GPU_KEYS,
        "size_bytes": "bytes",
        "bandwidth_gb_s": "memory bandwidth (GB/s)",
        "graph": "graph id",
        "graph_node": "graph node id",
    },
    "sync_spans": {
        **_GPU_KEYS,
        "sync_kind": "cuda_sync_kind",
        "wait_on_stream": "wait_on_stream",
        "wait_on_correlation": "wait_on_cuda_event_record_corr_id",
        "wait_on_event": "wait_on_cuda_event_id",
    },
    "call_spans": {"correlation": "correlation", "external_id": "External id", "callback_id": "cbid"},
    "operator_spans": {
        "external_id": "External id",
        "record_function_id": "Record function id",
        "event_index": "Ev Idx",
        "sequence_number": "Sequence number",
        "forward_thread": "Fwd thread id",
        "shapes": "Input Dims",
        "types": "Input type",
        "strides": "Input Strides",
        "concrete_inputs": "Concrete Inputs",
        "module_hierarchy": "Module Hierarchy",
        "call_stack": "Call stack",
    },
    "python_spans": {
        "python_id": "Python id",
        "python_parent_id": "Python parent id",
        "python_module_id": "Python module id",
    },
    "collective_spans": {
        "collective": "Collective name",
        "dtype": "dtype",
        "in_elements": "In msg nelems",
        "out_elements": "Out msg nelems",
        "group_size": "Group size",
        "group": "Process Group Name",
        "group_description": "Process Group Description",
        "group_ranks": "Process Group Ranks",
        "in_split": "In split size",
        "out_split": "Out split size",
        "rank": "Rank",
        "first_rank": "Global rank start",
        "rank_stride": "Global rank stride",
        "sequence": "Seq",
        "communicator": "Comms Id",
        "source_rank": "Src Rank",
        "destination_rank": "Dst Rank",
    },
}
_ALLOCATION_KEYS = {
    "address": "Addr",
    "size_bytes": "Bytes",
    "total_allocated_bytes": "Total Allocated",
    "total_reserved_bytes": "Total Reserved",
    "device_type": "Device Type",
    "device": "Device Id",
    "event_index": "Ev Idx",
}
# The category that a row of a table asks for, in order, and the tables that categories are read into.
CATEGORY_OF_TABLE = {
    "kernel_spans": "kernel",
    "copy_spans": "gpu_memcpy",
    "sync_spans": "cuda_sync",
    "call_spans": "cuda_runtime",
    "operator_spans": "cpu_op",
    "python_spans": "python_function",
}
TABLE_OF_CATEGORY = {
    **{category: table for table, category in CATEGORY_OF_TABLE.items()},
    "gpu_memset": "copy_spans",
    "cuda_driver": "call_spans",
    "overhead": "call_spans",
    "user_annotation": "operator_spans",
    "gpu_user_annotation": "operator_spans",
}


_COLLECTIVES, _ARGUMENTS = "collective_spans", "arguments"
# The categories whose events may carry the arguments of collectives: those on GPUs, of PyTorch, and of MPI.
_WITH_COLLECTIVES = frozenset(
    ("cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation", "mpi")
)
# Names of our arguments: `table.column`, and `table.` where another row of the table begins.
_OWN_NAMES = frozenset(
    f"{name}.{column}" for name in (*SPAN_TABLES, *EVENT_TABLES) for column in ("", *(c.name for c in TABLES[name]))
)
_SIDES = {f"{side}_{axis}": side for side in ("grid", "block") for axis in "xyz"}
_DEEPEST = 64  # levels of nested values that the importer keeps


class SpanArguments:
    """The arguments of a batch of spans as JSON. `of`: by the rows of spans; `table`: which one gives the category."""

    def __init__(self) -> None:
        self.of: dict[int, list[str]] = {}
        self.table: dict[int, str] = {}
        self._last: dict[str, int] = {}

    def add(self, name: str, batch: pa.Table, category_of: Callable[[int], str]) -> None:
        """Add rows of a table; those of collectives and arguments last, because they need the spans' categories."""
        rows = batch.column("row").to_pylist()
        if name == _ARGUMENTS:
            self._add_arguments(rows, batch, category_of)
            return
        own: list[list[str]] = []  # by row of the table
        kinetos: list[bool] = []  # whether it has Kineto's names
        further = []  # of spans that have several rows
        last = self._last.get(name, -1)
        for row in rows:
            cells = self.of.setdefault(row, [])
            if row == last:
                cells = [f'"{name}.": null']
                further.append((row, cells))
                kinetos.append(False)
            elif name in CATEGORY_OF_TABLE:
                kinetos.append(self.table.setdefault(row, name) == name)
            else:
                kinetos.append(name == _COLLECTIVES and category_of(row) in _WITH_COLLECTIVES)
            own.append(cells)
            last = row
        self._last[name] = last
        known = _KEYS.get(name, {})
        for column in TABLES[name][2:]:
            if name == "kernel_spans" and column.name in _SIDES:
                continue
            values = batch.column(column.name)
            if values.null_count < len(values):
                full = f'"{name}.{column.name}": '
                head = f'"{known[column.name]}": ' if column.name in known else full
                shown = _shown(values.type, lists=name != _COLLECTIVES)
                for cells, value, kineto in zip(own, values.to_pylist(), kinetos, strict=True):
                    if value is not None:
                        cells.append((head if kineto else full) + shown(value))
        for side in ("grid", "block") if name == "kernel_spans" else ():
            sides = [batch.column(f"{side}_{axis}").to_pylist() for axis in "xyz"]
            for cells, kineto, *three in zip(own, kinetos, *sides, strict=True):
                if kineto and None not in three:
                    cells.append(f'"{side}": [{three[0]}, {three[1]}, {three[2]}]')
                else:
                    by_axis = zip("xyz", three, strict=True)
                    cells.extend(f'"{name}.{side}_{axis}": {n}' for axis, n in by_axis if n is not None)
        for row, cells in further:
            self.of[row] += cells

    def _add_arguments(self, rows: Sequence[int], batch: pa.Table, category_of: Callable[[int], str]) -> None:
        """Add arguments under their own names; those that would be read as something else go into a list."""
        as_they_are: dict[int, list[str]] = {}
        for row, key, value in zip(
            rows, batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
        ):
            if key is None or value is None or not is_kept(value) or _has_a_column(key, category_of(row)):
                as_they_are.setdefault(row, []).append(f"[{as_json(key)}, {as_json(value)}]")
            else:
                self.of.setdefault(row, []).append(f"{as_json(key)}: {value}")
        for row, pairs in as_they_are.items():
            self.of.setdefault(row, []).append(f'"{_ARGUMENTS}": [{", ".join(pairs)}]')


def event_arguments(name: str, row: Mapping[str, Any]) -> str:
    """Return all of a row that has a time of its own, as the arguments of an event."""
    without = ("location", "time_ns", "call_path")  # the last one is a number that only the trace itself knows
    cells = ((column, row[column.name]) for column in TABLES[name] if column.name not in without)
    shown = {"string": as_json, "float64": as_real}
    members = [f'"{name}.{c.name}": {shown.get(c.type, str)(value)}' for c, value in cells if value is not None]
    return f"{{{', '.join(members)}}}" if members else f'{{"{name}.": null}}'


def allocation_arguments(row: Mapping[str, Any]) -> str:
    """Return an allocation as Kineto's arguments, and as ours for the rest."""
    columns = [column for column in TABLES["allocations"] if column.name not in ("location", "time_ns")]
    columns.sort(key=lambda column: column.name not in _ALLOCATION_KEYS)  # Kineto's first
    keys = (_ALLOCATION_KEYS.get(column.name, f"allocations.{column.name}") for column in columns)
    shown = ((as_json if column.type == "string" else str, row[column.name]) for column in columns)
    return ", ".join(
        f'"{key}": {show(value)}' for key, (show, value) in zip(keys, shown, strict=True) if value is not None
    )


def is_mark_of_chromes(row: Mapping[str, Any]) -> bool:
    """Return whether a mark is read again as it was from an event with its name, category and arguments."""
    arguments = row["arguments"]
    if row["name"] is None or row["category"] is None or (arguments is not None and not is_kept(arguments)):
        return False
    if arguments is None:
        return True
    members = json.loads(arguments)
    return row["name"] != "[memory]" and not (isinstance(members, dict) and any(key in _OWN_NAMES for key in members))


def is_flow_of_chromes(row: Mapping[str, Any]) -> bool:
    """Return whether an end of a flow is read again as it was from an event of its phase."""
    name = row["flow_name"]
    if name is not None and (row["flow"] is not None or not name or re.fullmatch(r"[-+.\deE]+", name)):
        return False
    return row["phase"] in ("s", "t", "f") and row["name"] is not None and row["category"] is not None


@functools.lru_cache(1 << 14)
def _has_a_column(key: str, category: str) -> bool:
    if key == _ARGUMENTS or key in _OWN_NAMES:
        return True
    tables = [TABLE_OF_CATEGORY.get(category, ""), _COLLECTIVES if category in _WITH_COLLECTIVES else ""]
    known = {each.lower() for table in tables for each in _KEYS.get(table, {}).values()}
    return key.lower() in known or ("kernel_spans" in tables and key.lower() in _SIDES.values())


def _shown(kind: pa.DataType, *, lists: bool) -> Callable[[Any], str]:
    if pa.types.is_string(kind):
        return _text_or_json if lists else as_json  # Kineto writes the lists of collectives as texts
    return as_real if pa.types.is_floating(kind) else str


def as_real(value: float) -> str:
    """Return a real number as JSON: a text for infinities and NaN."""
    return repr(value) if math.isfinite(value) else f'"{value}"'


def as_json(value: object) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)


@functools.lru_cache(1 << 14)
def _text_or_json(text: str) -> str:
    """A list as it is, if the importer would write it so; everything else as a text."""
    return text if text[:1] in ("[", "{") and is_kept(text) else as_json(text)


_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\]|\\u00[01][0-9a-f])*"')


@functools.lru_cache(1 << 14)
def is_kept(text: str) -> bool:
    """Return whether a text is JSON as the importer would write it: without spaces and needless escapes."""

    def refuse(constant: str) -> None:  # NaN, Infinity: browsers cannot read these
        raise ValueError(constant)

    outside = _TEXT.sub("", text)
    if re.search(r'[\s"]', outside):
        return False
    try:
        json.loads(text, parse_constant=refuse, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return False
    deepest = depth = 0
    for each in re.findall(r"[\[\]{}]", outside):
        depth += 1 if each in "[{" else -1
        deepest = max(deepest, depth)
    return deepest < _DEEPEST
