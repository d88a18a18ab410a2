"""What analyses answer: for the page as Arrow with what it says about itself, or as a file to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from strobe import registry
from strobe.errors import UsageError
from strobe.server.tables import Body, arrow_body

if TYPE_CHECKING:
    from strobe.model.plugins import Analysis, Option
    from strobe.server.facts import Facts

# Rows for the page, which holds all of them; a file has every row.
_MOST_ROWS = 100_000
_FILES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def analysed(facts: Facts, name: str, parameters: Mapping[str, str]) -> Body:
    """Answer an analysis with options as texts; `as=csv` and `as=json` give a file with all rows.

    The metadata of the Arrow schema: `question`, `about`, `note`, `rows` (of the whole table), and `options`, the
    analysis's own as a JSON list of {"name", "help", "choices", "value"}.
    """
    if name not in registry.names("analyses"):
        raise UsageError(f"there is no analysis '{name}'")
    analysis = cast("Analysis", registry.load("analyses", name))
    form = parameters.get("as", "")
    if form and form not in _FILES:
        raise UsageError(f"'as={form}' is not one of {', '.join(_FILES)}")
    chosen = {option.name: _value(option, parameters) for option in analysis.options}
    table = facts.trace.ask(name, **chosen)
    if form:
        text = table.to_csv() if form == "csv" else table.to_json()
        return Body(text.encode(), _FILES[form])
    told = {
        "question": analysis.question,
        "about": table.about,
        "note": table.note,
        "rows": str(len(table)),
        "options": json.dumps(
            [
                {"name": option.name, "help": option.help, "choices": option.choices, "value": str(value)}
                for option, value in zip(analysis.options, chosen.values(), strict=True)
            ]
        ),
    }
    arrow = table.to_arrow().slice(0, _MOST_ROWS)
    return arrow_body(arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **told}))


def _value(option: Option, parameters: Mapping[str, str]) -> object:
    """Return the value of an option from its text, or its default."""
    if option.name not in parameters:
        return option.default
    text = parameters[option.name]
    if option.choices and text not in option.choices:
        raise UsageError(f"'{option.name}={text}' is not one of {', '.join(option.choices)}")
    if option.type is bool:
        return text == "true"
    try:
        return option.type(text)
    except ValueError:
        raise UsageError(f"'{option.name}={text}' is no {option.type.__name__}") from None
