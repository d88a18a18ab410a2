"""All tables of a trace, one by one, for formats that hold tables."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.tables.lazy_pyarrow import pa
from strobe.tables.table import arrow_schema
from strobe.trace.trace import Trace

# Tables of the schema that are computed.
_ANALYSES = ("loops", "statistics", "steps")


def every_table(trace: Trace) -> Iterator[tuple[str, pa.Schema, Iterator[pa.Table]]]:
    """Return every table of model/schema.py: its name, its schema, and its rows by location and start, in pieces.

    Of spans and side tables one location is in memory at a time.
    """
    for name, columns in TABLES.items():
        yield name, arrow_schema(columns), _pieces(trace, name)


def _pieces(trace: Trace, name: str) -> Iterator[pa.Table]:
    locations = range(len(trace.locations))
    if name == "spans":
        for location in locations:
            yield trace.spans(location).to_arrow()
    elif name in SPAN_TABLES or name in EVENT_TABLES:
        for location in locations:
            yield from trace.side_batches(name, location)
    elif name in _ANALYSES:
        from strobe.answers.ask import ask  # an import looks at every format; only an export needs the analyses

        yield ask(trace, name).to_arrow()
    elif name == "metrics":
        yield trace.metrics().to_arrow()
    else:
        yield getattr(trace, name).to_arrow()
