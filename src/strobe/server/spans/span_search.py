"""Search over the whole run: which regions match, their spans as a list, and where in the run they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.errors import UsageError
from strobe.model.durations import duration_ns
from strobe.model.kinds import GROUPS
from strobe.model.schema import Column
from strobe.server.routing.endpoints import MB, MOST_PIXELS, parameter, route
from strobe.server.spans.span_tables import LOCATED_COLUMNS, located_spans, longest_rows, longest_spans
from strobe.server.trace_context import TraceContext
from strobe.trace.spans import SpanArrays, chosen_spans

_BOUND = re.compile(r"([<>]=?)(.*)")
_FIELDS = ("group", "paradigm", "role")
_MOST_HITS = 500
TEXT = parameter("text", "what to look for: words, -word, group:compute, dur:>1ms", str, "", most=1000)


REGION_COLUMNS = (
    Column("region", "uint32", "", "id of the region"),
    Column("name", "string", "", "its name"),
    Column("group", "string", "", "what it is drawn as", values=GROUPS),
    Column("count", "int64", "", "its matching spans"),
    Column("total_ns", "int64", "ns", "their durations in sum"),
)
DENSITY_COLUMNS = (Column("count", "int64", "", "hits that start in this part of the run"),)


@dataclass(frozen=True)
class Query:
    """Words that must (or must not) be in the name, fields that must be equal, and bounds of the duration."""

    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    shortest_ns: float = 0
    longest_ns: float = float("inf")


def parse_query(text: str) -> Query:
    """Read `conv -backward group:compute dur:>1ms`: all parts must hold."""
    words, without, fields = [], [], []
    shortest_ns, longest_ns = 0.0, float("inf")
    for part in text.lower().split():
        name, colon, value = part.partition(":")
        if colon and name == "dur":
            bound = _BOUND.fullmatch(value)
            try:
                bound_ns = duration_ns(bound[2] if bound else "")
            except ValueError:
                do = "Write dur:>1ms or dur:<200us."
                raise UsageError(f"'{part}' is not a bound on the duration", do=do) from None
            if value.startswith(">"):
                shortest_ns = max(shortest_ns, bound_ns)
            else:
                longest_ns = min(longest_ns, bound_ns)
        elif colon and name in _FIELDS:
            fields.append((name, value))
        elif part.startswith("-") and len(part) > 1:
            without.append(part[1:])
        else:
            words.append(part)
    return Query(tuple(words), tuple(without), tuple(fields), shortest_ns, longest_ns)


def matching_regions(context: TraceContext, query: Query) -> npt.NDArray[np.bool_]:
    """Return for every region id whether it matches."""
    matches = np.array(
        [
            all(word in name for word in query.words) and not any(word in name for word in query.without)
            for name in context.lower_names
        ],
        dtype=bool,
    )
    for field, value in query.fields:
        matches &= np.array([text == value for text in context.regions.column(field).to_pylist()], dtype=bool)
    return matches


def hits(
    context: TraceContext,
    query: Query,
    locations: Collection[int] | None = None,
    time_ns: tuple[int, int] | None = None,
) -> Iterator[tuple[int, SpanArrays, npt.NDArray[np.intp]]]:
    """Yield locations that have spans: the number, spans, and which of them match.

    Only some `locations`, and only spans that overlap [begin, end) of `time_ns`, where given.
    """
    wanted = matching_regions(context, query)
    if not wanted.any():
        return
    for location, count in enumerate(context.span_counts):
        if count and (locations is None or location in locations):
            if time_ns is None:
                arrays = context.whole_location(location)
            else:
                arrays = context.trace.span_arrays(location, *time_ns)
            duration_ns = arrays["duration_ns"]
            hit = wanted[arrays["region"]] & (duration_ns >= query.shortest_ns) & (duration_ns <= query.longest_ns)
            yield location, arrays, np.flatnonzero(hit)


@route("search/spans", TEXT, columns=LOCATED_COLUMNS, most_bytes=8 * MB, slow=True)
def search_spans(context: TraceContext, text: str) -> pa.Table:
    """The longest spans that match a search, with the number of all of them.

    The table's metadata has that number and their total time.
    """
    parts, count, total_ns = [], 0, 0
    for location, arrays, rows in hits(context, parse_query(text)):
        count += len(rows)
        total_ns += int(arrays["duration_ns"][rows].sum())
        longest = longest_rows(arrays["duration_ns"], rows, _MOST_HITS)
        parts.append(located_spans(context, location, chosen_spans(arrays, longest)))
    return longest_spans(parts, _MOST_HITS).replace_schema_metadata({"count": str(count), "total_ns": str(total_ns)})


@route("search/regions", TEXT, columns=REGION_COLUMNS, most_bytes=8 * MB, slow=True)
def search_regions(context: TraceContext, text: str) -> pa.Table:
    """The regions that match a search.

    Each has the number and the summed duration of its matching spans; the longest sum comes first.
    """
    size = len(context.names.names)
    counts, sums = np.zeros(size, dtype=np.int64), np.zeros(size)
    for _, arrays, rows in hits(context, parse_query(text)):
        regions = arrays["region"][rows]
        counts += np.bincount(regions, minlength=size)
        sums += np.bincount(regions, weights=arrays["duration_ns"][rows].astype(float), minlength=size)
    used = np.flatnonzero(counts)
    used = used[np.argsort(-sums[used], kind="stable")][:_MOST_HITS]
    texts = {name: context.regions.column(name).take(pa.array(used)) for name in ("region", "name", "group")}
    return pa.table({**texts, "count": counts[used], "total_ns": sums[used].astype(np.int64)})


@route(
    "search/density",
    TEXT,
    parameter("bins", "equal parts of the run", least=1, most=MOST_PIXELS),
    columns=DENSITY_COLUMNS,
    most_bytes=MB,
    slow=True,
)
def search_density(context: TraceContext, text: str, bins: int) -> pa.Table:
    """Where in the run the hits of a search are."""
    start_ns, end_ns = context.bounds
    counts = np.zeros(bins, dtype=np.int64)
    for _, arrays, rows in hits(context, parse_query(text)):
        at = (arrays["start_ns"][rows].astype(np.int64) - start_ns) * bins // max(1, end_ns - start_ns)
        counts += np.bincount(np.clip(at, 0, bins - 1), minlength=bins)
    return pa.table({"count": pa.array(counts)})
