"""Search over the whole run: which regions match, their spans as a list, and where in the run they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.errors import UsageError
from strobe.server.tables import named_spans, some_of

if TYPE_CHECKING:
    from strobe.server.facts import Facts
    from strobe.store.trace import SpanArrays

_UNITS_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"([<>]=?)(\d+(?:\.\d+)?)(ns|us|µs|ms|s)")
_FIELDS = ("group", "paradigm", "role")


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
            found = _DURATION.fullmatch(value)
            if not found:
                raise UsageError(f"'{part}' is no bound of a duration", do="write dur:>1ms or dur:<200us")
            bound_ns = float(found[2]) * _UNITS_NS[found[3]]
            if found[1].startswith(">"):
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


def matching_regions(facts: Facts, query: Query) -> npt.NDArray[np.bool_]:
    """Return for every region id whether it matches."""
    matches = np.array(
        [
            all(word in name for word in query.words) and not any(word in name for word in query.without)
            for name in facts.lower_names
        ],
        dtype=bool,
    )
    for field, value in query.fields:
        matches &= np.array([text == value for text in facts.regions.column(field).to_pylist()], dtype=bool)
    return matches


def _hits(facts: Facts, query: Query) -> Iterator[tuple[int, SpanArrays, npt.NDArray[np.intp]]]:
    wanted = matching_regions(facts, query)
    if not wanted.any():
        return
    for location, count in enumerate(facts.span_counts):
        if count:
            arrays = facts.whole_location(location)
            duration_ns = arrays["duration_ns"]
            hit = wanted[arrays["region"]] & (duration_ns >= query.shortest_ns) & (duration_ns <= query.longest_ns)
            yield location, arrays, np.flatnonzero(hit)


def search_spans(facts: Facts, text: str, limit: int) -> pa.Table:
    """Return the `limit` longest hits; the table's metadata tells how many there are and how long they take in sum."""
    parts, count, total_ns = [], 0, 0
    for location, arrays, rows in _hits(facts, parse_query(text)):
        count += len(rows)
        total_ns += int(arrays["duration_ns"][rows].sum())
        if len(rows) > limit:
            rows = rows[np.argpartition(-arrays["duration_ns"][rows], limit)[:limit]]
        some = named_spans(facts, some_of(arrays, rows))
        some = some.set_column(some.column_names.index("name"), "name", some["name"].cast(pa.string()))
        some = some.set_column(some.column_names.index("group"), "group", some["group"].cast(pa.string()))
        parts.append(some.append_column("location", pa.array(np.full(len(rows), location, dtype=np.uint32))))
    found = pa.concat_tables(parts).sort_by([("duration_ns", "descending")]).slice(0, limit) if parts else pa.table({})
    return found.replace_schema_metadata({"count": str(count), "total_ns": str(total_ns)})


def search_regions(facts: Facts, text: str, limit: int) -> pa.Table:
    """Return the matching regions with number and summed duration of their matching spans, the longest sum first."""
    size = len(facts.names.names)
    counts, sums = np.zeros(size, dtype=np.int64), np.zeros(size)
    for _, arrays, rows in _hits(facts, parse_query(text)):
        regions = arrays["region"][rows]
        counts += np.bincount(regions, minlength=size)
        sums += np.bincount(regions, weights=arrays["duration_ns"][rows].astype(float), minlength=size)
    used = np.flatnonzero(counts)
    used = used[np.argsort(-sums[used], kind="stable")][:limit]
    names, groups = facts.name_dictionaries
    return pa.table(
        {
            "region": pa.array(used.astype(np.uint32)),
            "name": names.take(pa.array(used)),
            "group": groups.take(pa.array(used)),
            "count": pa.array(counts[used]),
            "total_ns": pa.array(sums[used].astype(np.int64)),
        }
    )


def search_density(facts: Facts, text: str, bins: int) -> pa.Table:
    """Return how many hits start in each of `bins` equal parts of the run."""
    start_ns, end_ns = facts.bounds
    counts = np.zeros(bins, dtype=np.int64)
    for _, arrays, rows in _hits(facts, parse_query(text)):
        at = (arrays["start_ns"][rows].astype(np.int64) - start_ns) * bins // max(1, end_ns - start_ns)
        counts += np.bincount(np.clip(at, 0, bins - 1), minlength=bins)
    return pa.table({"count": pa.array(counts)})
