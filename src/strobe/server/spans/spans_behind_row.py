"""The spans behind a row of a table: those that the row's cells describe, the longest first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strobe.errors import UsageError
from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import launches
from strobe.operators.compiled_kernels import CompiledKernel, compiled_kernels, spans_of
from strobe.operators.labels import Labels, labels_by
from strobe.server.routing.endpoints import MB, parameter, route
from strobe.server.spans.span_tables import LOCATED_COLUMNS, Rows, joined_spans, located_spans, longest_rows
from strobe.server.trace_context import TraceContext
from strobe.sums.attributes import Attributes
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import location_rows
from strobe.trace.spans import SpanArrays, chosen_spans

_MOST_SPANS = 500

# Cells that are attributes of a span: the side table and its columns, whose values stand in the cell with an x between.
_ATTRIBUTES: dict[str, tuple[str, tuple[str, ...]]] = {
    "grid": ("kernel_spans", ("grid_x", "grid_y", "grid_z")),
    "block": ("kernel_spans", ("block_x", "block_y", "block_z")),
    "collective": ("collective_spans", ("collective",)),
    "dtype": ("collective_spans", ("dtype",)),
}
# Cells of rows about operators, by the key of such rows; the last is a cell that no other rows have.
_OPERATORS = {"shape": ("name", "shapes"), "module": ("module",), "line": ("line", "function"), "type": ("type",)}
# Cells of rows about kernels of compiled code; those of the first kind have all of them, those of the second one.
_KERNEL, _SOURCE_LINE = ("kernel", "region", "graph", "file"), "source_line"
CELLS = frozenset(
    {"name", "process", "device", "stream", "operator", *_ATTRIBUTES, *sum(_OPERATORS.values(), ())}
    | {*_KERNEL, _SOURCE_LINE}
)


@route(
    "behind",
    *(parameter(cell, "a cell of the row", str, None, most=16_384) for cell in sorted(CELLS)),
    parameter("after_ns", "the first span starts after this moment, ns since the trace's zero", default=-1),
    columns=LOCATED_COLUMNS,
    most_bytes=8 * MB,
    slow=True,
)
def behind(context: TraceContext, after_ns: int, **given: str | None) -> pa.Table:
    """The spans behind a row of a table, by cells of the row: the first one (after `after_ns`), then the longest.

    Cells: the whole name; of operators type, name and shapes, module, or line and function, too; process and device
    (a number, empty where it has none) of the GPU that they ran on, else they ran on the host; stream; operator that
    launched them; grid, block, collective, dtype. Of compiled code kernel, region, graph, file and line, or
    source_line. An empty cell is one that is null. The metadata has the number of all spans and their total time.
    """
    cells = {name: text for name, text in given.items() if text is not None}
    compiled = _compiled(context, cells)
    labels = None if compiled is not None else _labels(context, cells)
    wanted = np.array([name == cells.get("name") for name in context.names.names], dtype=bool)
    device = _device(context, cells)
    launched = _launched(context, device, cells["operator"]) if device and "operator" in cells else None
    parts, count, total_ns = list[pa.Table](), 0, 0
    for location, row in enumerate(location_rows(context.trace)):
        # A range on the host may have a shadow on a stream, which is not a call of its own.
        at_home = location in device.locations if device else row.kind != "stream" or compiled is not None
        if not row.span_count or not at_home or cells.get("stream", row.name) != row.name:
            continue
        arrays = context.whole_location(location)
        if compiled is not None:
            rows = np.flatnonzero(np.isin(arrays["row"], compiled.get(location, ())))
        else:
            chosen = wanted[arrays["region"]] if labels is None else _labelled(arrays, location, labels, cells)
            rows = np.flatnonzero(chosen)
        rows = rows[_with_attributes(context, location, arrays["row"][rows], cells)]
        if launched is not None:
            rows = rows[np.isin(arrays["row"][rows], launched.get(location, []), assume_unique=True)]
        if not len(rows):
            continue
        count += len(rows)
        total_ns += int(arrays["duration_ns"][rows].sum())
        chosen = _longest_and_first(arrays["start_ns"][rows], arrays["duration_ns"][rows], after_ns)
        parts.append(located_spans(context, location, chosen_spans(arrays, rows[chosen])))
    found = _in_order(joined_spans(parts), after_ns)
    return found.replace_schema_metadata({"count": str(count), "total_ns": str(total_ns)})


def _longest_and_first(start_ns: Ints, duration_ns: Ints, after_ns: int) -> Rows:
    chosen = longest_rows(duration_ns, np.arange(len(duration_ns)), _MOST_SPANS)
    later = np.flatnonzero(start_ns > after_ns)
    firsts = [int(np.argmin(start_ns)), *([int(later[np.argmin(start_ns[later])])] if len(later) else [])]
    return np.union1d(chosen, firsts)


def _in_order(found: pa.Table, after_ns: int) -> pa.Table:
    in_time = found.sort_by([("start_ns", "ascending")])
    later = in_time.filter(pc.field("start_ns") > after_ns)
    first = (later if len(later) else in_time).slice(0, 1)
    return pa.concat_tables([first, found.sort_by([("duration_ns", "descending")]).slice(0, _MOST_SPANS)])


def _labels(context: TraceContext, cells: Mapping[str, str]) -> tuple[Labels, str] | None:
    """Return the labels of operators that the row's cells are of, and their key; None for a name alone."""
    for by, columns in _OPERATORS.items():
        if columns[-1] in cells and (by != "type" or "name" not in cells):
            return labels_by(context.trace, by), by
    if "name" not in cells:
        raise UsageError("the query has no name", do=f"Known: {', '.join(sorted(CELLS))}")
    return None


def _labelled(arrays: SpanArrays, location: int, labels_and_key: tuple[Labels, str], cells: Mapping[str, str]) -> Bools:
    """Return which spans of a location are operators with the label of the row's cells."""
    labels, by = labels_and_key
    node = labels.numbering(location)(arrays, np.arange(len(arrays["row"])))
    known = np.append(labels.tree()[1], -1)  # the last one for node -1
    label = known[node]
    wanted = [cells.get(column, "") for column in _OPERATORS[by]]
    fits = np.array([[cell or "" for cell in each] == wanted for each in labels.cells] or [False], dtype=bool)
    found: Bools = labels.is_operator[arrays["region"]] & (label >= 0) & fits[label]
    return found


def _compiled(context: TraceContext, cells: Mapping[str, str]) -> dict[int, Ints] | None:
    """Return the rows of the kernels of compiled code that the row is about, by location; None for other rows."""
    if "kernel" not in cells and _SOURCE_LINE not in cells:
        return None

    def is_wanted(kernel: CompiledKernel) -> bool:
        if _SOURCE_LINE in cells:
            return cells[_SOURCE_LINE] in kernel.source_lines
        line = str(kernel.line or "")
        return line == cells.get("line", "") and all(getattr(kernel, each) == cells.get(each, "") for each in _KERNEL)

    return spans_of(context.trace, [each for each in compiled_kernels(context.trace) if is_wanted(each)])


def _device(context: TraceContext, cells: Mapping[str, str]) -> Device | None:
    """Return the GPU of the row; None where it names none."""
    if "device" not in cells:
        return None
    for device in devices(context.trace):
        number = "" if device.number is None else str(device.number)
        if (str(device.process), number) == (cells.get("process"), cells["device"]):
            return device
    raise UsageError(f"no GPU '{cells['device']}' in process '{cells.get('process')}'")


def _launched(context: TraceContext, device: Device, operator: str) -> dict[int, list[int]]:
    """Return rows of the activities that an operator launched, by location; those of no operator for an empty name."""
    ours = np.array([name == operator for name in context.names.names] + [not operator], dtype=bool)
    found: dict[int, list[int]] = {}
    for work, by_whom in launches(context.trace, device):
        chosen = ours[by_whom.operator.region]  # -1, the last one, is not an operator
        for location in device.locations:
            found.setdefault(location, []).extend(work.row[chosen & (work.location == location)].tolist())
    return found


def _with_attributes(context: TraceContext, location: int, rows: Ints, cells: Mapping[str, str]) -> Bools:
    """Return which of the spans of a location have the attributes that the row's cells name."""
    fits = np.ones(len(rows), dtype=bool)
    for cell, (table, columns) in _ATTRIBUTES.items():
        if cell in cells and len(rows):
            order = np.argsort(rows)
            known = Attributes(context.trace, table, location, columns).of(rows[order])
            values = zip(*(known.column(name).to_pylist() for name in columns), strict=True)
            texts = ["x".join("" if value is None else str(value) for value in one) for one in values]
            wanted = cells[cell] or "x" * (len(columns) - 1)
            fits[order] &= np.array([text == wanted for text in texts], dtype=bool)
    return fits
