"""Writes the report: the snapshot's page with tables and a flame graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from strobe.errors import UsageError
from strobe.formats.html import SECTIONS
from strobe.formats.writing.output_files import new_file
from strobe.model.kinds import GROUPS
from strobe.model.terminal import visible
from strobe.tables.table import Table
from strobe.trace.trace import Trace

# What bounds the file: 4 MB at most, however long the run was.
_MOST_ROWS = 200  # of a table
_MOST_CELL = 200  # characters of a name in the flame graph
_MOST_NODES = 10_000  # of the call tree, those with most time
_MOST_NAMES = 5_000

_ANALYSES = ("loops", "steps", "operators", "profile")


def write(trace: Trace, path: Path, sections: Sequence[str] = SECTIONS) -> list[str]:
    """Write the chosen sections; tables have at most 200 rows, the flame graph 10 000 call paths: at most 4 MB.

    The file asks for nothing from anywhere: it is read offline, and its script may not load anything.
    """
    text, notes = report(trace, sections)
    with new_file(path) as work:
        work.write_text(text, encoding="utf-8")
    return notes


def report(trace: Trace, sections: Sequence[str] = SECTIONS) -> tuple[str, list[str]]:
    """Return the chosen sections as a document, and sentences about what they leave out.

    Raises UsageError for a section that does not exist.
    """
    if unknown := [name for name in sections if name not in SECTIONS]:
        raise UsageError(f"the report has no section '{unknown[0]}'", do=f"Sections: {', '.join(SECTIONS)}")
    # An import looks at every format; only an export needs the analyses.
    from strobe.answers.ask import ask
    from strobe.present import snapshot_html
    from strobe.present.rank_picture import rank_picture
    from strobe.present.snapshot import snapshot

    notes: list[str] = []
    page = snapshot(trace)
    parts = snapshot_html.sections(page)
    if "ranks" in sections:
        parts["ranks"] = rank_picture(trace, page.summary.ranks)
    if "tables" in sections:
        asked = [(name, ask(trace, name)) for name in _ANALYSES]
        tables = [("processes", trace.processes), *asked, ("quality", trace.quality)]
        parts["tables"] = "".join(_section(name, table, notes) for name, table in tables)
    if "flame" in sections:
        # Inside of a script only this could end it.
        tree = json.dumps(_tree(trace, notes), separators=(",", ":")).replace("<", "\\u003c")
        template = (resources.files("strobe.formats") / "flame.template").read_text(encoding="utf-8")
        parts["flame"] = template.replace("@TREE@", tree)
    scripts = "'unsafe-inline'" if "flame" in sections else "'none'"
    chosen = (parts[name] for name in SECTIONS if name in sections)
    return snapshot_html.document(page.summary, chosen, scripts), notes


def _section(name: str, table: Table, notes: list[str]) -> str:
    from strobe.present.notebook import table_card

    if len(table) > _MOST_ROWS:
        notes.append(f"of the {len(table)} rows of {name} the first {_MOST_ROWS} are shown")
    # Keys scroll what they can reach.
    reached = f'<div class="wide" tabindex="0" role="region" aria-labelledby="{name}">'
    shown = f"{reached}{table_card(table, _MOST_ROWS)}</div>"
    return f'<section><h2 id="{name}">{name.capitalize()}</h2>{shown}</section>\n'


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
    return {"names": [*map(visible, names)], **columns}
