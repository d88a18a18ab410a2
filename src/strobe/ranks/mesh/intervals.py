"""Sets of moments, as intervals in order that do not touch: how long, how much of each window, unions and parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Columns, Ints


@dataclass(frozen=True)
class Intervals(Columns):
    """Intervals [begin, end) in order, without overlaps. Nanoseconds."""

    begin_ns: Ints
    end_ns: Ints

    @staticmethod
    def of(begin_ns: Ints, end_ns: Ints) -> Intervals:
        """Return the moments that lie in any of some intervals, which may overlap, in any order."""
        there = end_ns > begin_ns
        begin, end = begin_ns[there].astype(np.int64), end_ns[there].astype(np.int64)
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order]) if len(order) else end
        first = np.append(True, begin[1:] > end[:-1])[: len(begin)]
        last = np.append(first[1:], True)[: len(begin)]
        return Intervals(begin[first], end[last])

    @property
    def total_ns(self) -> int:
        """How long they are together."""
        return int((self.end_ns - self.begin_ns).sum())

    def within(self, begin_ns: Ints, end_ns: Ints) -> Ints:
        """Return how much of each window [begin, end) they cover, ns; 0 where a window ends before it begins."""
        covered = self._before(np.concatenate((begin_ns, np.maximum(begin_ns, end_ns))))
        return np.asarray(covered[len(begin_ns) :] - covered[: len(begin_ns)])

    def _before(self, times_ns: Ints) -> Ints:
        if not len(self):
            return np.zeros(len(times_ns), dtype=np.int64)
        sums = np.append(0, np.cumsum(self.end_ns - self.begin_ns))
        at = np.searchsorted(self.begin_ns, times_ns, side="right")
        inside = np.maximum(0, np.append(0, self.end_ns)[at] - times_ns)
        return np.asarray(sums[at] - inside)

    def __and__(self, other: Intervals) -> Intervals:
        """Return the moments that are in both."""
        edges = np.unique(np.concatenate((self.begin_ns, self.end_ns, other.begin_ns, other.end_ns)))
        begin, end = edges[:-1], edges[1:]
        both = (self.within(begin, end) > 0) & (other.within(begin, end) > 0)
        return Intervals.of(begin[both], end[both])

    def __sub__(self, other: Intervals) -> Intervals:
        """Return the moments that are in these and not in the others."""
        edges = np.unique(np.concatenate((self.begin_ns, self.end_ns, other.begin_ns, other.end_ns)))
        begin, end = edges[:-1], edges[1:]
        here = (self.within(begin, end) > 0) & (other.within(begin, end) == 0)
        return Intervals.of(begin[here], end[here])
