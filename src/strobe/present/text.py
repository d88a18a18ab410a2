"""Tables as text: for people on a terminal, for pipes, as JSON, CSV, Markdown, and as nvprof printed them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TextIO

import pyarrow as pa

from strobe.model.terminal import visible_line, write_heading
from strobe.model.units import format_bytes, format_count, format_ns, format_share
from strobe.present import nvprof_layout
from strobe.present.aligned import aligned_rows, column_widths
from strobe.tables.table import Table, heading_of

# Tables in which each row has the unit of its values.
_WITH_OWN_UNITS = ("kernel_metrics", "launch_metrics")


def render(table: Table, form: str) -> str:
    """Return a table as text in a form of `--format`, all rows, with a newline at the end."""
    renderers: dict[str, Callable[[Table], str]] = {
        "table": aligned,
        "json": lambda table: table.to_json() + "\n",
        "csv": Table.to_csv,
        "md": markdown,
        "nvprof": nvprof_layout.text,
    }
    return renderers[form](table)


def print_for_people(table: Table, stream: TextIO) -> None:
    """Print a table on a terminal, no wider than it.

    Where it is too narrow, extra columns are left out from the right, and then long texts continue on the next line.
    """
    width = shutil.get_terminal_size((100, 24)).columns
    heading, *lines = _lines(_fitting(table, width), width)
    write_heading(heading, stream)
    stream.write("".join(f"{line}\n" for line in lines))


def _fitting(table: Table, width: int) -> Table:
    extra = table.extra
    while extra and sum(wide + 2 for wide in column_widths([_headings(table), *_cells(table)])) - 2 > width:
        dropped = extra.pop()
        table = table.select([name for name in table.columns if name != dropped])
    return table


def aligned(table: Table) -> str:
    """Return a table with its columns padded to the same width, numbers to the right."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Table, width: int | None = None) -> list[str]:
    headings, numeric, rows = people(table)
    return aligned_rows([headings, *rows], numeric, width)


def tab_separated(table: Table) -> str:
    """Return one line per row for pipes: raw values separated by tabs. Text is as people read it."""
    lines = [table.columns, *([_plain(value) for value in row] for row in table.rows())]
    return "".join("\t".join(line) + "\n" for line in lines)


def markdown(table: Table) -> str:
    """Return a table for a ticket or a pull request."""
    headings, numeric, rows = people(table)
    sides = (" ---: " if right else " --- " for right in numeric)
    lines = ["| " + " | ".join(headings) + " |", "|" + "|".join(sides) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def people(table: Table) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return headings, which columns are numbers, and the rows, as people read them."""
    return _headings(table), _numeric(table), _cells(table)


def _shown(table: Table) -> list[str]:
    """Return the columns for people. In a tree, the indentation of the first column shows the depth."""
    tree = "depth" in table.columns and len(table.columns) > 2
    return [name for name in table.columns if not (tree and name in ("depth", "call_path"))]


def _headings(table: Table) -> list[str]:
    """Return the names of the columns without the unit, which the cells show."""
    return [heading_of(name) for name in _shown(table)]


def _numeric(table: Table) -> list[bool]:
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    types = [table.to_arrow().schema.field(name).type for name in _shown(table)]
    return [any(check(type) for check in numeric) for type in types]


def _cells(table: Table) -> list[list[str]]:
    units, shown = table.units, _shown(table)
    depths = table.column("depth") if "depth" in table.columns else [0] * len(table)
    lines = []
    for row, depth in zip(table.select(shown).rows(), depths, strict=True):
        cells = [_for_people(name, value, units.get(name, "")) for name, value in zip(shown, row, strict=True)]
        if table.name in _WITH_OWN_UNITS and "unit" in shown:
            cells = _with_unit(row, cells, shown.index("unit"))
        if isinstance(depth, int) and cells:
            cells[0] = "  " * depth + cells[0]
        lines.append(cells)
    return lines


def _with_unit(row: Sequence[object], cells: list[str], at: int) -> list[str]:
    """Return the cells of a row with the unit of cell `at` moved to its real numbers."""
    unit, per_second, _ = cells[at].partition("/s")
    form = {"ns": format_ns, "byte": format_bytes}.get(unit)
    if form is None:
        return cells
    pairs = zip(row, cells, strict=True)
    cells = [form(value) + per_second if isinstance(value, float) else cell for value, cell in pairs]
    return [*cells[:at], "", *cells[at + 1 :]]


def _for_people(name: str, value: object, unit: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):  # a sum of SQL
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (int, float)):
        if name == "share" or name.endswith("_share"):
            return format_share(value)
        if unit == "ns":
            return format_ns(value)
        if unit == "bytes":
            return format_bytes(value)
        return f"{value:.4g}" if isinstance(value, float) else format_count(value)
    if isinstance(value, list):  # a histogram: only the buckets that hold anything
        return " ".join(f"{bucket}:{count}" for bucket, count in enumerate(value) if count)
    return visible_line(str(value))


def _plain(value: object) -> str:
    return "" if value is None else f"{value!r}" if isinstance(value, float) else visible_line(str(value))


def supports(text: str, stream: TextIO) -> bool:
    """Return whether a stream can print these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
