"""What happens in a stretch of time: exclusive time by group and by name, over all locations, cut at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.errors import UsageError
from strobe.model.kinds import GROUPS
from strobe.server.tables import expected_spans, some_of

if TYPE_CHECKING:
    from strobe.server.facts import Facts
    from strobe.store.trace import SpanArrays

# About a tenth of a second of work for each million.
_MOST_SPANS = 3_000_000
_WORTH_KEEPING = 50_000


def clipped_self_ns(arrays: SpanArrays, start_ns: int, end_ns: int) -> npt.NDArray[np.int64]:
    """Return each span's exclusive time inside [start_ns, end_ns); the spans are all that overlap it, by row."""
    begin = np.maximum(arrays["start_ns"], start_ns)
    inside = np.maximum(0, np.minimum(arrays["start_ns"] + arrays["duration_ns"], end_ns) - begin)
    # A span that overlaps the window has a parent that does too, so every parent is among the rows.
    child = np.flatnonzero(arrays["parent"] >= 0)
    parent = np.searchsorted(arrays["row"], arrays["parent"][child])
    own: npt.NDArray[np.int64] = inside - np.bincount(parent, weights=inside[child], minlength=len(inside)).astype(
        np.int64
    )
    return own


def _spans_in(facts: Facts, location: int, start_ns: int, end_ns: int) -> SpanArrays:
    if expected_spans(facts, location, start_ns, end_ns) < _WORTH_KEEPING:
        return facts.trace.span_arrays(location, start_ns, end_ns)
    # Wide windows of one location follow each other while zooming: decoding it once serves them all.
    arrays = facts.whole_location(location)
    start = arrays["start_ns"]
    return some_of(arrays, np.flatnonzero((start < end_ns) & (start + arrays["duration_ns"] > start_ns)))


def window_table(facts: Facts, start_ns: int, end_ns: int, limit: int) -> pa.Table:
    """Return a row for each group, and for each of the `limit` names with most exclusive time (`kind`: group, name)."""
    if sum(expected_spans(facts, at, start_ns, end_ns) for at in range(len(facts.span_counts))) > _MOST_SPANS:
        raise UsageError("too many spans for a statistic while you wait", do="Choose a shorter stretch of time")
    size = len(facts.names.names)
    own, count = np.zeros(size), np.zeros(size, dtype=np.int64)
    for location in range(len(facts.span_counts)):
        arrays = _spans_in(facts, location, start_ns, end_ns)
        if len(arrays["row"]):
            own += np.bincount(arrays["region"], weights=clipped_self_ns(arrays, start_ns, end_ns), minlength=size)
            count += np.bincount(arrays["region"], minlength=size)
    groups = np.array([GROUPS.index(group) for group in facts.names.groups], dtype=np.int64)
    by_group = np.bincount(groups, weights=own, minlength=len(GROUPS)) if size else np.zeros(len(GROUPS))
    group_count = np.bincount(groups, weights=count, minlength=len(GROUPS)) if size else np.zeros(len(GROUPS))
    top = np.argsort(-own, kind="stable")[:limit]
    top = top[own[top] > 0]
    shown = [at for at in np.argsort(-by_group, kind="stable") if by_group[at] > 0]
    return pa.table(
        {
            "kind": pa.array(["group"] * len(shown) + ["name"] * len(top), pa.string()),
            "name": pa.array([GROUPS[g] for g in shown] + [facts.names.names[r] for r in top], pa.string()),
            "group": pa.array([GROUPS[g] for g in shown] + [facts.names.groups[r] for r in top], pa.string()),
            "self_ns": pa.array([int(by_group[g]) for g in shown] + [int(own[r]) for r in top], pa.int64()),
            "count": pa.array([int(group_count[g]) for g in shown] + [int(count[r]) for r in top], pa.int64()),
        }
    )
