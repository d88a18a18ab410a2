"""What analyses answer (`table/NAME`): for the page as Arrow with what it says about itself, or as a file to keep."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from strobe import registry
from strobe.server.endpoints import JSON_TYPE, Endpoint, Parameter, Value, parameters_of
from strobe.server.tables import ARROW_TYPE, Body, arrow_body

if TYPE_CHECKING:
    from strobe.model.plugins import Analysis
    from strobe.server.facts import Facts

# Rows for the page, which holds all of them; a file has every row.
_MOST_ROWS = 100_000
_MOST_BYTES = 256 << 20
_FILES = {"csv": "text/csv; charset=utf-8", "json": JSON_TYPE}
_FILE = Parameter("as", "as a file with all rows", "choice", None, choices=tuple(_FILES), argument="form_of_file")


def names() -> list[str]:
    """Return the names of all analyses."""
    return list(registry.names("analyses"))


@cache
def endpoint(name: str) -> Endpoint | None:
    """Return the description of an analysis as a question to the server; None where there is no such analysis."""
    if name not in names():
        return None
    analysis = cast("Analysis", registry.load("analyses", name))
    media = (ARROW_TYPE, *_FILES.values())
    parameters = (*parameters_of(analysis), _FILE)
    answer = partial(_analysed, analysis)
    return Endpoint(f"table/{name}", answer, analysis.question, parameters, media, _MOST_BYTES, slow=True)


def _analysed(analysis: Analysis, facts: Facts, form_of_file: str | None, **chosen: Value) -> Body:
    """Answer an analysis; `csv` and `json` give a file with all rows.

    The metadata of the Arrow schema: `question`, `about`, `note`, `rows` (of the whole table), and `options`, the
    analysis's own as a JSON list of {"name", "help", "choices", "value"}.
    """
    table = facts.read.ask(analysis.name, **chosen)
    if form_of_file:
        text = table.to_csv() if form_of_file == "csv" else table.to_json()
        return Body(text.encode(), _FILES[form_of_file])
    told = {
        "question": analysis.question,
        "about": table.about,
        "note": "; ".join(filter(None, (table.note, facts.read_part))),
        "rows": str(len(table)),
        "options": json.dumps(
            [
                {"name": option.name, "help": option.help, "choices": option.choices, "value": str(chosen[option.name])}
                for option in analysis.options
            ]
        ),
    }
    arrow = table.to_arrow().slice(0, _MOST_ROWS)
    return arrow_body(arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **told}))
