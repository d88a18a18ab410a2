"""Sums over spans by call path and by any other key. Array code: one pass over each location, no Python per span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from strobe.store.trace import Trace
    from strobe.structure.selection import Selection

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PathStatistics:
    """Per call path: executions, and ns in all of them (`total`), without their children (`own`), shortest, longest.

    `outermost` is false for a path that holds its last region twice: a sum of `total` over regions must leave it out,
    or recursion would count twice.
    """

    calls: Integers
    total_ns: Integers
    own_ns: Integers
    min_ns: Integers
    max_ns: Integers
    parent: Integers  # -1 at the root
    region: Integers
    outermost: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """Statistics of the values that share a key."""

    key: Integers
    count: Integers
    total: Integers
    minimum: Integers
    maximum: Integers
    median: npt.NDArray[np.float64]


def path_statistics(trace: Trace, selection: Selection) -> PathStatistics:
    """Sum up the selected spans of all locations by call path."""
    parent, region = path_tree(trace)
    count = len(region)
    calls, total, own = (np.zeros(count, dtype=np.int64) for _ in range(3))
    shortest, longest = np.full(count, np.iinfo(np.int64).max), np.zeros(count, dtype=np.int64)
    for location in range(len(trace.locations)):
        spans = trace.span_arrays(location)
        path, duration, self_ns = spans["call_path"], spans["duration_ns"], spans["self_ns"]
        mask = selection.keep(location, spans["start_ns"])
        if mask is not None:
            path, duration, self_ns = path[mask], duration[mask], self_ns[mask]
        # bincount sums in float64: exact below 2^53 ns, which is 104 days.
        calls += np.bincount(path, minlength=count)
        total += np.bincount(path, weights=duration, minlength=count).astype(np.int64)
        own += np.bincount(path, weights=self_ns, minlength=count).astype(np.int64)
        np.minimum.at(shortest, path, duration)
        np.maximum.at(longest, path, duration)
    shortest[calls == 0] = 0
    return PathStatistics(calls, total, own, shortest, longest, parent, region, outermost(parent, region))


def path_tree(trace: Trace) -> tuple[Integers, Integers]:
    """Return parent (-1 at the root) and region of every call path."""
    paths = trace.call_paths.to_arrow()
    parent = paths.column("parent").cast("int64").fill_null(-1).to_numpy()
    return parent, paths.column("region").to_numpy().astype(np.int64)


def group_statistics(keys: npt.NDArray[np.integer], values: Integers) -> Group:
    """Count, sum, minimum, maximum and median of `values` for each distinct key, in order of the keys."""
    order = np.lexsort((values, keys))
    sorted_keys, values = keys[order].astype(np.int64), values[order]
    first = (
        np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]]) if len(keys) else np.empty(0, dtype=np.int64)
    )
    count = np.diff(np.r_[first, len(keys)])
    middle = (values[first + (count - 1) // 2] + values[first + count // 2]) / 2
    total = np.add.reduceat(values, first) if len(first) else np.empty(0, dtype=np.int64)
    return Group(sorted_keys[first], count, total, values[first], values[first + count - 1], middle)


def outermost(parent: Integers, key: Integers) -> npt.NDArray[np.bool_]:
    """Return for each call path whether its key (say, its last region) occurs nowhere above it."""
    result = np.ones(len(parent), dtype=bool)
    above = parent.copy()
    # All paths climb one level at a time: as many rounds as the deepest path is deep.
    while np.any(climbing := above >= 0):
        result[climbing] &= key[above[climbing]] != key[climbing]
        above[climbing] = parent[above[climbing]]
    return result
