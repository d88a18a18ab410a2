"""Sums by group over columns that come in pieces: groups are numbered as they are met, medians are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.tables.column_arrays import Floats, Ints, alike

# Pairs of group and value that are held; beyond that, values keep their 12 highest bits (error below 0.03 %) for the
# median and the deviation.
_MOST_PAIRS = 1 << 21
_BITS = 12
_EXACT = 2.0**53  # whole numbers below it are exact as float64


class Groups:
    """Numbers combinations of whole numbers; `keys` are those met so far, in order of their numbers."""

    def __init__(self) -> None:
        self.keys: list[tuple[int, ...]] = []
        self._number: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        """Return how many there are so far."""
        return len(self.keys)

    def numbers(self, columns: Sequence[Ints]) -> Ints:
        """Return the number of the combination that each row of the columns is."""
        if not len(columns[0]):
            return np.zeros(0, dtype=np.int64)
        first, which = alike(columns)
        found = [self._of(key) for key in zip(*(column[first].tolist() for column in columns), strict=True)]
        return np.array(found, dtype=np.int64)[which]

    def _of(self, key: tuple[int, ...]) -> int:
        if key not in self._number:
            self._number[key] = len(self.keys)
            self.keys.append(key)
        return self._number[key]


@dataclass(frozen=True)
class Summary:
    """What a Spread knows of each group. `stddev` is that of a sample, 0 for a single value; of no value all are 0.

    median and stddev are NaN where they are unknown.
    """

    count: Ints
    total: Ints
    least: Ints
    most: Ints
    average: Floats
    median: Floats
    stddev: Floats

    def cells(self, group: int) -> dict[str, float | None]:
        """Return the cells of a row about durations in ns: `total_ns`, `calls`, `avg_ns`, `median_ns`, ..."""
        return {
            "total_ns": int(self.total[group]),
            "calls": int(self.count[group]),
            "avg_ns": float(self.average[group]),
            "median_ns": _known(self.median[group]),
            "min_ns": int(self.least[group]),
            "max_ns": int(self.most[group]),
            "stddev_ns": _known(self.stddev[group]),
        }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


class Spread:
    """Counts, sums, extremes, medians and deviations of whole numbers by group.

    What is held grows with the number of *different* values in each group, up to a bound.
    """

    def __init__(self) -> None:
        self._group, self._value, self._times = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self._waiting: list[tuple[Ints, Ints]] = []
        largest = np.iinfo(np.int64).max
        self._total, self._least, self._most = Growing(), Growing(np.minimum, largest), Growing(np.maximum, -largest)

    def add(self, group: Ints, value: Ints) -> None:
        """Add values to their groups."""
        if not len(group):
            return
        self._total.add(group, value)
        self._waiting.append((group, value))
        if sum(len(group) for group, _ in self._waiting) > _MOST_PAIRS // 4:
            self._merge()

    @staticmethod
    def of_pairs(group: Ints, value: Ints, times: Ints) -> Spread:
        """Return what `pairs` returned for one or more others: it knows how values spread, not their sums."""
        spread = Spread()
        spread._group, spread._value, spread._times = _distinct(group, value, times)
        return spread

    def pairs(self, most: int, bits: int = _BITS) -> tuple[Ints, Ints, Ints]:
        """Return the different pairs of group and value, in order, and how often each is there.

        Where these are more than `most`, values keep so many of their highest bits.
        """
        self._merge()
        if len(self._group) <= most:
            return self._group, self._value, self._times
        return _distinct(self._group, _rounded(self._value, bits), self._times)

    def summary(self, groups: int) -> Summary:
        """Return what is known of the first `groups` groups."""
        self._merge()
        group, value, times = self._group, self._value, self._times
        count = np.zeros(groups, dtype=np.int64)
        np.add.at(count, group, times)
        known = (each.of(groups) for each in (self._total, self._least, self._most))
        total, least, most = (np.where(count > 0, values, 0) for values in known)
        average = total / np.maximum(count, 1)
        squares = np.bincount(group, times * (value - average[group]) ** 2, groups)
        median = np.clip(self.quantile(0.5, count), least, most)
        return Summary(count, total, least, most, average, median, np.sqrt(squares / np.maximum(count - 1, 1)))

    def quantile(self, part: float, count: Ints) -> Floats:
        """Return the value below which `part` of the values of each group are, between two of them as in numpy.

        `count`: how many values each of the groups has.
        """
        self._merge()
        if not len(self._value):
            return np.zeros(len(count))
        end = np.cumsum(self._times)  # of each value, among all values in order of group
        place = part * np.maximum(count - 1, 0)
        ends = []
        for near in (np.floor(place), np.ceil(place)):
            at = np.searchsorted(end, np.cumsum(count) - count + near, side="right")
            ends.append(np.where(count > 0, self._value[np.minimum(at, len(self._value) - 1)], 0).astype(np.float64))
        return ends[0] + (ends[1] - ends[0]) * (place - np.floor(place))

    def _merge(self) -> None:
        if not self._waiting:
            return
        group, value = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        self._waiting = []
        group, value, times = _distinct(group, value, np.ones(len(group), dtype=np.int64))
        first = np.flatnonzero(np.diff(group, prepend=-1))  # of each group: its values are in order
        self._least.add(group[first], value[first])
        self._most.add(group[first], value[np.append(first[1:], len(group)) - 1])
        if len(self._group):
            both = zip((self._group, self._value, self._times), (group, value, times), strict=True)
            group, value, times = _distinct(*(np.concatenate(each) for each in both))
        self._group, self._value, self._times = group, value, times
        if len(self._group) > _MOST_PAIRS:
            self._group, self._value, self._times = _distinct(self._group, _rounded(self._value), self._times)


def _distinct(group: Ints, value: Ints, times: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the different pairs in order, and how often each is there."""
    if not len(group):
        return group, value, times
    order = np.lexsort((value, group))
    group, value = group[order], value[order]
    new = np.concatenate(([True], (np.diff(group) != 0) | (np.diff(value) != 0)))
    (first,) = np.nonzero(new)
    return group[first], value[first], np.add.reduceat(times[order], first)


def _rounded(value: Ints, bits: int = _BITS) -> Ints:
    length = np.frexp(np.abs(value).astype(np.float64))[1]
    shift: Ints = np.maximum(length - bits, 0).astype(np.int64)
    rounded: Ints = (value >> shift << shift) + ((1 << shift) >> 1)
    return rounded


class Growing:
    """Whole numbers by group, for as many groups as are met."""

    def __init__(self, join: np.ufunc = np.add, start: int = 0) -> None:
        self._join, self._start = join, start
        self._values = np.zeros(0, dtype=np.int64)

    def add(self, group: Ints, value: npt.NDArray[np.integer]) -> None:
        """Combine the numbers of groups with new ones, by the ufunc."""
        self._values = self.of(max(len(self._values), int(group.max(initial=-1)) + 1))
        if self._join is np.add and len(value) * float(np.abs(value).max(initial=0)) < _EXACT:
            self._values += np.bincount(group, value, len(self._values)).astype(np.int64)  # ten times as fast
        else:
            self._join.at(self._values, group, value)

    def of(self, groups: int) -> Ints:
        """Return the numbers of the first `groups` groups."""
        missing = max(0, groups - len(self._values))
        return np.concatenate((self._values, np.full(missing, self._start, dtype=np.int64)))


class Weighted:
    """Means of numbers by group, each number with a weight; what is NaN is left out."""

    def __init__(self) -> None:
        self._sums = np.zeros((3, 0))  # by group: of numbers times weights, of weights, of how many numbers

    def add(self, group: Ints, value: npt.NDArray[Any], weight: npt.NDArray[Any] | None = None) -> None:
        """Add numbers to their groups; each counts once where no weight is given."""
        known = ~np.isnan(value)
        group, value = group[known], value[known]
        ones = np.ones(len(value))
        weight = ones if weight is None else weight[known]
        self._sums = self._padded(int(group.max(initial=-1)) + 1)
        for sums, values in zip(self._sums, (value * weight, weight, ones), strict=True):
            np.add.at(sums, group, values)

    def mean(self, groups: int) -> list[float | None]:
        """Return the mean of each of the first `groups` groups, None for those without a number."""
        sums, weights, _ = self._padded(groups).tolist()
        return [s / w if w > 0 else None for s, w in zip(sums, weights, strict=True)]

    def count(self, groups: int) -> list[int]:
        """Return how many numbers each of the first `groups` groups has."""
        return [int(count) for count in self._padded(groups)[2]]

    def _padded(self, groups: int) -> Floats:
        return np.pad(self._sums, ((0, 0), (0, max(0, groups - self._sums.shape[1]))))


class Texts:
    """Numbers texts as they are met; -1 is none."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self.texts: list[str] = []

    def numbers(self, column: pa.ChunkedArray) -> Ints:
        """Return the number of each text of a column."""
        coded = column.combine_chunks().dictionary_encode()
        known = np.array([self.number(text) for text in coded.dictionary.to_pylist()] + [-1], dtype=np.int64)
        numbers: Ints = known[coded.indices.fill_null(-1).to_numpy()]
        return numbers

    def text(self, number: int) -> str | None:
        """Return the text of a number."""
        return self.texts[number] if number >= 0 else None

    def number(self, text: str | None) -> int:
        """Return the number of one text."""
        if text is None:
            return -1
        if text not in self._number:
            self._number[text] = len(self.texts)
            self.texts.append(text)
        return self._number[text]
