"""Tables of analyses (`table/NAME`): for the page as Arrow with their metadata, or as a file to keep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import TypedDict

from strobe import registry
from strobe.model.option import Value
from strobe.model.plugins import Analysis
from strobe.server.routing.bodies import ARROW_TYPE, JSON_TYPE, Body, arrow_body
from strobe.server.routing.endpoints import Endpoint, parameter
from strobe.server.trace_context import TraceContext
from strobe.tables.table import Table

# Rows for the page, which holds all of them; a file has every row.
_MOST_ROWS = 100_000
_MOST_BYTES = 256 << 20
_FILES = {"csv": "text/csv; charset=utf-8", "json": JSON_TYPE}
FILE = parameter("as", "as a file with all rows", str, None, choices=tuple(_FILES), argument="form_of_file")


class TableOption(TypedDict):
    """An option of an analysis, and its value in an answer."""

    name: str
    help: str
    choices: list[str]
    value: str


def names() -> list[str]:
    """Return the names of all analyses."""
    return list(registry.names("analyses"))


@cache
def endpoint(name: str) -> Endpoint | None:
    """Return the route of an analysis; None for an unknown name."""
    if name not in names():
        return None
    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    media = (ARROW_TYPE, *_FILES.values())
    parameters = (*analysis.options, FILE)
    answer = partial(_analysed, analysis)
    noted = name == "notes"
    return Endpoint(f"table/{name}", answer, analysis.question, parameters, media, _MOST_BYTES, slow=True, noted=noted)


def _analysed(analysis: Analysis, context: TraceContext, form_of_file: str | None, **chosen: Value) -> Body:
    """Answer an analysis; `csv` and `json` give a file with all rows.

    The metadata of the Arrow schema: `question`, `about`, `note`, `rows` (of the whole table), and `options`, the
    analysis's own as JSON: a list of TableOption.
    """
    # Only what this server shows is read: not every path.
    named = {"other": context.other(str(chosen["other"]))} if chosen.get("other") else {}
    table = context.read.ask(analysis.name, **{**chosen, **named})
    options: list[TableOption] = [
        {
            "name": option.name,
            "help": option.help,
            "choices": list(option.choices),
            "value": str(chosen[option.name]),
        }
        for option in analysis.options
    ]
    return table_body(table, form_of_file, analysis.question, options, context.read_part)


def table_body(
    table: Table, form_of_file: str | None, question: str = "", options: Sequence[TableOption] = (), note: str = ""
) -> Body:
    """Return a table as a file (csv, json), or as Arrow with metadata: see `_analysed`; `note` completes its own."""
    if form_of_file:
        text = table.to_csv() if form_of_file == "csv" else table.to_json()
        return Body(text.encode(), _FILES[form_of_file])
    about = {
        "question": question,
        "about": table.about,
        "note": "; ".join(filter(None, (table.note, note))),
        "rows": str(len(table)),
        "options": json.dumps(options),
    }
    arrow = table.to_arrow().slice(0, _MOST_ROWS)
    return arrow_body(arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **about}))
