"""Equally long numpy arrays under names: what is kept by column where rows would be too many objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from strobe.native import core

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# Adds each value to that of its group: the place in the first argument that the second one has for it.
add_at = core.add_at
_JOINS: dict[np.ufunc, Callable[[Ints, Ints, Ints], None]] = {
    np.add: add_at,
    np.minimum: core.least_at,
    np.maximum: core.most_at,
}
_FEW = 4  # possible keys for each row


@dataclass(frozen=True)
class Columns:
    """Base of frozen dataclasses all of whose fields are numpy arrays of one length."""

    def __len__(self) -> int:
        return len(next(iter(self._arrays().values())))

    def chosen(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.integer] | slice) -> Self:
        """Return the rows for which `which` holds, or with these numbers."""
        if isinstance(which, np.ndarray) and which.dtype == bool:
            if which.all():
                return self
            which = np.flatnonzero(which)  # to find the rows once is faster than once for each column
        return type(self)(**{name: values[which] for name, values in self._arrays().items()})

    def or_missing(self, rows: npt.NDArray[np.integer]) -> Self:
        """Return the rows with these numbers; -1 in every column where the number is -1. Columns of whole numbers."""
        known = rows >= 0
        found = {name: np.full(len(rows), -1, dtype=np.int64) for name in self._arrays()}
        for name, values in self._arrays().items():
            found[name][known] = values[rows[known]]
        return type(self)(**found)

    def where(self, which: npt.NDArray[np.bool_], otherwise: Self) -> Self:
        """Return these rows where `which` holds, and those of `otherwise` elsewhere."""
        others = otherwise._arrays()
        return type(self)(**{name: np.where(which, values, others[name]) for name, values in self._arrays().items()})

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of all parts, one behind the other; without parts, columns of whole numbers without rows."""
        every = [part._arrays() for part in parts]
        if not every:
            return cls(**{each.name: np.zeros(0, dtype=np.int64) for each in fields(cls)})
        arrays = [each for each in every if len(next(iter(each.values())))] or every[:1]
        if len(arrays) == 1:
            return cls(**arrays[0])
        return cls(**{name: np.concatenate([each[name] for each in arrays]) for name in arrays[0]})

    def followed_by(self, other: Self, rows: Ints) -> Self:
        """Return these rows, and behind them those with the given numbers of others with the same types."""
        columns, others = self._arrays(), other._arrays()
        found = {name: np.empty(len(self) + len(rows), dtype=others[name].dtype) for name in columns}
        for name, values in found.items():
            values[: len(self)] = columns[name]
            others[name].take(rows, out=values[len(self) :], mode="clip")  # so that nothing is copied twice
        return type(self)(**found)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        own = vars(self)
        return {each.name: own[each.name] for each in fields(self)}


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Meanwhile keep the memory of arrays that were freed for the next ones: new pages cost as much as filling them."""
    core.keep_freed_memory(True)
    try:
        yield
    finally:
        core.keep_freed_memory(False)


def alike(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the first of each set of equal rows, sets in order of their values, and the set of every row."""
    rows = len(columns[0])
    key, size = np.zeros(rows, dtype=np.int64), 1
    for column in columns if rows else ():
        low, high = int(column.min()), int(column.max())
        if size * (high - low + 1) >= 2**62:  # sets are fewer than rows, so that their product is a number
            (values, column), (keys, key) = (np.unique(each, return_inverse=True) for each in (column, key))
            low, high, size = 0, len(values) - 1, len(keys)
        key, size = key * (high - low + 1) + (column - low), size * (high - low + 1)
    if size > _FEW * rows:
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return first, which
    # A table of all keys is faster than sorting: that of a set has its first row, which is the last one written.
    table = np.full(size, -1, dtype=np.int64)
    table[key[::-1]] = np.arange(rows - 1, -1, -1)
    (used,) = np.nonzero(table >= 0)
    first = table[used]
    table[used] = np.arange(len(used))
    return first, table[key]


def cumulative(values: Floats, parts: Sequence[Hashable]) -> Floats:
    """Return the sum of each value and of all greater ones of its part (of equal ones, those before it); NaN stays."""
    found = np.full(len(values), np.nan)
    rows: dict[Hashable, list[int]] = {}
    for at in np.argsort(-values, kind="stable").tolist():
        rows.setdefault(parts[at], []).append(at)
    for of_part in rows.values():
        found[of_part] = np.cumsum(values[of_part])
    return found


def rows_by(column: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each value of a column, in order, with the rows that have it, in order."""
    order = np.argsort(column, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(column[order])) + 1) if len(order) else ():
        yield int(column[rows[0]]), rows


def median(values: Ints | Floats) -> Any:
    """Return the median of numbers, or of each column of an array, as np.median does: a tenth of its time if few."""
    ordered, middle = np.sort(values, axis=0), len(values) // 2
    return (ordered[~middle].astype(np.float64) + ordered[middle]) / 2


def combined(
    rows: Mapping[str, Ints], keys: Sequence[str], joins: Mapping[str, np.ufunc]
) -> tuple[dict[str, Ints], Ints]:
    """Return a row for each set of rows with the same keys, in order of these, and the set of every row.

    `joins`: by column, what makes one number of those of a set: np.add, np.minimum, np.maximum. Sums of sums are sums.
    """
    first, group = alike([rows[key] for key in keys])
    found = {key: rows[key][first] for key in keys}
    for name, join in joins.items():
        values = rows[name]
        found[name] = values[first]
        if join is np.add:
            found[name] = np.zeros(len(first), dtype=np.int64)
        _JOINS[join](found[name], group, values)
    return found, group


def interval_at(begins: Ints, ends: Ints, times: Ints) -> Ints:
    """Return in which of the intervals [begin, end), in order of begin, each time lies: the last to begin, or -1."""
    at = np.searchsorted(begins, times, side="right") - 1
    return np.where((at >= 0) & (times < np.append(ends, 0)[at]), at, -1)


def place_of(wanted: Ints, ordered: Ints) -> Ints:
    """Return the place of each wanted number among others in order, -1 where it is not among them."""
    at = np.searchsorted(ordered, wanted)
    found = at < len(ordered)
    found[found] = ordered[at[found]] == wanted[found]
    return np.where(found, at, -1)
