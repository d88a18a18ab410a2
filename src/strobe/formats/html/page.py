"""Writes the page."""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from pathlib import Path

import numpy as np

from strobe.formats.writing.output_files import new_file
from strobe.model.kinds import GROUPS
from strobe.tables.table import Table
from strobe.trace.trace import Trace

# What bounds the file: 4 MB at most, however long the run was.
_MOST_ROWS = 200  # of a table
_MOST_CELL = 200  # characters of a cell, and of a name in the flame graph
_MOST_NODES = 10_000  # of the call tree, those with most time
_MOST_NAMES = 5_000

_ANALYSES = ("loops", "steps", "operators", "profile")


def write(trace: Trace, path: Path) -> list[str]:
    """Write the summary, tables of at most 200 rows, and the 10 000 call paths with most time: at most 4 MB.

    The file asks for nothing from anywhere: it is read offline, and its script may not load anything.
    """
    # An import looks at every format; only an export needs the analyses.
    from strobe.answers.ask import ask
    from strobe.present.summary_text import text_of

    notes: list[str] = []
    asked = [(name, ask(trace, name)) for name in _ANALYSES]
    tables = [("processes", trace.processes), *asked, ("quality", trace.quality)]
    page = (resources.files("strobe.formats") / "page.template").read_text(encoding="utf-8")
    cells = {
        "TITLE": html.escape(_cut(trace.path.name)),
        "SUMMARY": html.escape(text_of(trace)),
        "TABLES": "".join(_section(name, table, notes) for name, table in tables),
        # Inside of a script only these could end it.
        "TREE": json.dumps(_tree(trace, notes), separators=(",", ":")).replace("<", "\\u003c"),
    }
    page = re.sub("@([A-Z]+)@", lambda match: cells[match[1]], page)
    with new_file(path) as work:
        work.write_text(page, encoding="utf-8")
    return notes


def _section(name: str, table: Table, notes: list[str]) -> str:
    columns = [column for column in table.columns if column not in table.extra]
    shown = table.select(columns).head(_MOST_ROWS).rows()
    if len(table) > len(shown):
        notes.append(f"of the {len(table)} rows of {name} the first {len(shown)} are shown")
    units = table.units
    heads = [f"{each} ({units[each]})" if each in units else each for each in columns]
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "\n".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in shown)
    more = f"<p>{len(table) - len(shown)} more rows</p>" if len(table) > len(shown) else ""
    note = f"<p>{html.escape(table.note)}</p>" if table.note else ""
    kept = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>{more}" if shown else ""
    return f'<section><h2 id="{name}">{name.capitalize()}</h2>{note}<div class="wide">{kept}</div></section>\n'


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"<td class=n>{value:,}</td>" if isinstance(value, int) else f"<td class=n>{value:.4g}</td>"
    return f"<td>{html.escape(_cut(str(value)))}</td>"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CELL else text[: _MOST_CELL - 1] + "…"


def _tree(trace: Trace, notes: list[str]) -> dict[str, list[object]]:
    """Return the call tree of the whole run as columns, depth first: the paths with most time."""
    from strobe.answers.ask import ask

    table = ask(trace, "profile", form="tree", step="all")
    totals = np.sort(table.to_arrow().column("total_ns").to_numpy())[::-1]
    least = totals[_MOST_NODES] + 1 if len(totals) > _MOST_NODES else 0
    groups = dict(zip(trace.regions.column("name"), trace.regions.column("group"), strict=True))
    names: dict[str, int] = {}
    columns: dict[str, list[object]] = {key: [] for key in ("name", "depth", "calls", "total", "own", "group")}
    for row in table.to_arrow().to_pylist():
        if row["total_ns"] < least:
            continue
        name = _cut(str(row["name"]))
        if name not in names and len(names) >= _MOST_NAMES:
            name = "(other)"
        group = GROUPS.index(str(groups.get(row["name"], "other")))
        cells = (names.setdefault(name, len(names)), *(row[key] for key in ("depth", "calls", "total_ns", "self_ns")))
        for column, cell in zip(columns.values(), (*cells, group), strict=True):
            column.append(cell)
    left = len(totals) - len(columns["name"])
    if left:
        notes.append(f"{left} of {len(totals)} call paths take too little time to be in the flame graph")
    return {"names": list(names), **columns}
