"""Tables as text: for people on a terminal, for pipes, as JSON, CSV, Markdown, and as nvprof printed them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from strobe.model.units import format_bytes, format_count, format_ns, format_share
from strobe.present import nvprof

if TYPE_CHECKING:
    from strobe.store.table import Table

# Tables in which each row says the unit of its values.
_WITH_OWN_UNITS = ("kernel_metrics", "launch_metrics")
FORMATS = ("table", "json", "csv", "md", "nvprof")


def render(table: Table, form: str) -> str:
    """Return a table as text in one of FORMATS, all rows, with a newline at the end."""
    renderers: dict[str, Callable[[Table], str]] = {
        "table": aligned,
        "json": lambda table: table.to_json() + "\n",
        "csv": lambda table: table.to_csv(),
        "md": markdown,
        "nvprof": nvprof.text,
    }
    return renderers[form](table)


def print_for_people(table: Table, stream: TextIO) -> None:
    """Print a table on a terminal, as wide as it is; colours follow NO_COLOR and TERM.

    Where it is too narrow, extra columns are left out, from the right.
    """
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    width = shutil.get_terminal_size((100, 24)).columns
    table = _fitting(table, width)
    grid = Grid(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name, numeric in zip(_headings(table), _numeric(table), strict=True):
        grid.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in _cells(table):
        grid.add_row(*(Text(cell) for cell in row))
    Console(file=stream, highlight=False, width=width).print(grid)


def _fitting(table: Table, width: int) -> Table:
    extra = table.extra
    while extra and _width(table) > width:
        gone = extra.pop()
        table = table.select([name for name in table.columns if name != gone])
    return table


def _width(table: Table) -> int:
    columns = zip(_headings(table), *_cells(table), strict=True)
    return sum(2 + max(map(len, column)) for column in columns) - 2


def aligned(table: Table) -> str:
    """Columns padded to the same width; numbers to the right."""
    lines = [_headings(table), *_cells(table)]
    numeric = _numeric(table)
    widths = [max(len(line[i]) for line in lines) for i in range(len(numeric))]
    out = []
    for line in lines:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        out.append("  ".join(padded).rstrip())
    return "\n".join(out) + "\n"


def tab_separated(table: Table) -> str:
    """One line per row, raw values, tabs between them: what pipes get. Tabs and line breaks in text become spaces."""
    lines = [table.columns, *([_plain(value) for value in row] for row in table.rows())]
    return "".join("\t".join(line) + "\n" for line in lines)


def markdown(table: Table) -> str:
    """Return a table for a ticket or a pull request."""
    right = [" ---: " if numeric else " --- " for numeric in _numeric(table)]
    lines = ["| " + " | ".join(_headings(table)) + " |", "|" + "|".join(right) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in _cells(table)]
    return "\n".join(lines) + "\n"


def talk(message: str) -> None:
    """Say something to the user: on stderr, so that stdout stays data."""
    print(f"strobe: {message}", file=sys.stderr)


def people(table: Table) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return headings, which columns are numbers, and the rows, as people read them."""
    return _headings(table), _numeric(table), _cells(table)


def _shown(table: Table) -> list[str]:
    """Columns for people. In a tree, the indentation of the first column says the depth."""
    tree = "depth" in table.columns and len(table.columns) > 2
    return [name for name in table.columns if not (tree and name in ("depth", "call_path"))]


def _headings(table: Table) -> list[str]:
    """Column names without the unit, which the cells show."""
    return [name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ") for name in _shown(table)]


def _numeric(table: Table) -> list[bool]:
    import pyarrow as pa

    types = [table.to_arrow().schema.field(name).type for name in _shown(table)]
    return [bool(pa.types.is_integer(type) or pa.types.is_floating(type)) for type in types]


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
    """Return the cells of a row whose real numbers have the unit that stands in cell `at`, which they then show."""
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
    return _one_line(str(value))


def _plain(value: object) -> str:
    return "" if value is None else f"{value!r}" if isinstance(value, float) else _one_line(str(value))


def _one_line(text: str) -> str:
    return text.replace("\t", " ").replace("\r", " ").replace("\n", " ")


def supports(text: Sequence[str], stream: TextIO) -> bool:
    """Whether a stream can print these characters."""
    try:
        "".join(text).encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
