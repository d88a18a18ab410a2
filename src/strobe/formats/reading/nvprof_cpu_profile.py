"""The table that nvprof --cpu-profiling on prints: functions of the host with the time of their samples, as a tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight

BANNER = re.compile(r"CPU profiling result \((top down|bottom up|flat)\)")
# ` 74.58%  25.0876s  | matvec(matrix const &)`: two characters for each level. Before CUDA 9 shares only, behind the
# level: `| 81.12% matvec(matrix const &)`.
_ROW = re.compile(r"\s*(\d{1,3}\.\d{1,9})%\s+([\d.]+(?:[eE][+-]?\d+)?[a-z]{1,2})  ([| ]*)(\S.*)")
_OLD_ROW = re.compile(r"([| ]*)(\d{1,3}\.\d{1,9})% (\S.*)")
_TIME, _SHARE = Weight("time", "ns"), Weight("samples", "percent")


class CpuProfile:
    """One table, read row by row into call paths.

    The time of a row is that of everything below it: top down, of what it calls; bottom up, of the same function for
    each of its callers. What the rows below leave belongs to the row itself: nvprof leaves out rows below a threshold
    and a depth. Five printed digits make the rows below a little more than theirs: the last of them has what is left.
    """

    def __init__(self, process: ProfileProcess, order: str, nanoseconds: Callable[[str], int | None]) -> None:
        """`order`: top down, bottom up or flat. `nanoseconds` reads a time with its unit."""
        self._process, self._bottom_up, self._nanoseconds = process, order == "bottom up", nanoseconds
        self._location = process.location("CPU samples")
        self._trees: dict[Weight, CallTree] = {}
        self._open: list[tuple[int, Fraction]] = []  # region, and what is left of its weight
        self._weight = _TIME

    def add(self, line: str) -> bool:
        """Add a row; returns whether it was understood."""
        if line.strip().startswith("Time(%)"):
            return True
        share, time, level, name = "", "", "", ""
        if found := _ROW.fullmatch(line):
            share, time, level, name = found.groups()
        elif found := _OLD_ROW.fullmatch(line):
            level, share, name = found.groups()
        depth = (len(level) + 1) // 2
        value = self._nanoseconds(time) if time else Fraction(share) if share else None
        if value is None or depth > len(self._open):
            return False
        self._close(depth)
        self._weight, value = _TIME if time else _SHARE, Fraction(value)
        if self._open:
            region, left = self._open[-1]
            if value > left:
                self._process.core.count("weights_rounded")
                value = left
            self._open[-1] = region, left - value
        self._open.append((self._process.region(Function(name), paradigm="other"), value))
        self._process.core.taken()
        return True

    def save(self) -> None:
        """Write the call paths."""
        self._close(0)
        for tree in self._trees.values():
            tree.save()

    def _close(self, depth: int) -> None:
        while len(self._open) > depth:
            left = self._open[-1][1]
            if left:
                path = ROOT
                for region, _ in reversed(self._open) if self._bottom_up else self._open:
                    path = self._process.path(path, region)
                if self._weight not in self._trees:
                    self._trees[self._weight] = CallTree(self._process, self._location, [self._weight])
                self._trees[self._weight].add(path, [left], records=0)
            self._open.pop()
