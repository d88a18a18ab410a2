"""The side tables of the schema in the form in which native decoders take them."""

from __future__ import annotations

from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES

_KINDS = {"int64": 0, "float64": 1, "string": 2}

Layout = tuple[str, list[tuple[str, int]], bool]


def layouts() -> list[Layout]:
    """Return (name, columns with their kinds, whether rows belong to spans) for every side table."""
    found = []
    for name in (*SPAN_TABLES, *EVENT_TABLES):
        columns = [(c.name, _KINDS[c.type]) for c in TABLES[name] if c.name not in ("location", "row")]
        found.append((name, columns, name in SPAN_TABLES))
    return found
