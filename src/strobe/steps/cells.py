"""Cells: where the time of steps goes in the thread of their loop, by part of the step and kind of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import HOST_KINDS, PARTS
from strobe.tables.column_arrays import Bools, Ints

_HOST, _DATA_WAIT = HOST_KINDS.index("host"), HOST_KINDS.index("data_wait")


@dataclass(frozen=True)
class Cells:
    """The time of steps by part and kind, ns. The kinds of a part add up to it, the parts of a step to its duration.

    parts_ns: an array (steps, PARTS). columns: by part * len(HOST_KINDS) + kind, an entry per step; what is 0 in all
    steps is left out, and `host`, which is what the others leave of a part. None: not known of all steps, because an
    older strobe folded some.
    """

    parts_ns: Ints
    columns: Mapping[int, Ints] | None

    @property
    def waiting_ns(self) -> Ints:
        """How long each step waited for its batch; where kinds are not known, how long it took to have it."""
        of_data = PARTS.index("data_wait")
        if self.columns is None:
            return self.parts_ns[:, of_data]
        none = np.zeros(len(self.parts_ns), dtype=np.int64)
        return self.columns.get(of_data * len(HOST_KINDS) + _DATA_WAIT, none)

    @staticmethod
    def of_table(table: Ints) -> Cells:
        """Return the cells of an array (steps, PARTS, HOST_KINDS)."""
        flat = table.reshape(len(table), -1)
        there = [number for number in np.flatnonzero(flat.any(axis=0)).tolist() if number % len(HOST_KINDS) != _HOST]
        return Cells(table.sum(axis=2), {number: flat[:, number].copy() for number in there})

    @staticmethod
    def joined(pieces: Sequence[Cells]) -> Cells:
        """Return the cells of all steps, one piece behind the other."""
        parts = np.concatenate([piece.parts_ns for piece in pieces])
        known = [piece.columns for piece in pieces if piece.columns is not None]
        if len(known) < len(pieces):
            return Cells(parts, None)
        out = {number: np.zeros(len(parts), dtype=np.int64) for columns in known for number in columns}
        low = 0
        for piece, columns in zip(pieces, known, strict=True):
            for number, values in columns.items():
                out[number][low : low + len(values)] = values
            low += len(piece.parts_ns)
        return Cells(parts, out)

    def moved(self, source: int, target: int) -> Cells:
        """Return the same with the time of one part, of every kind, in another part."""
        parts = self.parts_ns.copy()
        parts[:, target] += parts[:, source]
        parts[:, source] = 0
        if self.columns is None:
            return Cells(parts, None)
        out = dict[int, Ints]()
        for number, values in self.columns.items():
            part, kind = divmod(number, len(HOST_KINDS))
            number = (target if part == source else part) * len(HOST_KINDS) + kind
            out[number] = out[number] + values if number in out else values
        return Cells(parts, out)

    def first(self, count: int) -> Cells:
        """Return the cells of the first steps."""
        columns = self.columns and {number: values[:count] for number, values in self.columns.items()}
        return Cells(self.parts_ns[:count], columns)

    def with_last(self, duration_ns: int) -> Cells:
        """Return the same with another duration of the last step: its rest gives or takes, then its largest part."""
        parts = self.parts_ns.copy()
        last, rest = parts[-1], PARTS.index("rest")
        last[rest] += duration_ns - last.sum()
        while last[rest] < 0:
            largest = int(last.argmax())
            taken = min(int(last[largest]), -int(last[rest]))
            last[largest] -= taken
            last[rest] += taken
        if self.columns is None:
            return Cells(parts, None)
        columns = {number: values.copy() for number, values in self.columns.items()}
        for part, most_ns in enumerate(last.tolist()):
            own = [values for number, values in columns.items() if number // len(HOST_KINDS) == part]
            over = sum(int(values[-1]) for values in own) - most_ns
            for values in sorted(own, key=lambda values: -values[-1]):
                taken = min(int(values[-1]), max(0, over))
                values[-1] -= taken
                over -= taken
        return Cells(parts, columns)

    def table(self) -> Ints:
        """Return all of them: an array (steps, PARTS, HOST_KINDS). The columns have to be known."""
        assert self.columns is not None
        table = np.zeros((len(self.parts_ns), len(PARTS), len(HOST_KINDS)), dtype=np.int64)
        for number, values in self.columns.items():
            table[:, *divmod(number, len(HOST_KINDS))] = values
        table[:, :, _HOST] = self.parts_ns - table.sum(axis=2)
        return table

    def kinds_ns(self) -> Ints:
        """Return the time of each step by kind: an array (steps, HOST_KINDS). The columns have to be known."""
        assert self.columns is not None
        kinds = np.zeros((len(self.parts_ns), len(HOST_KINDS)), dtype=np.int64)
        for number, values in self.columns.items():
            kinds[:, number % len(HOST_KINDS)] += values
        kinds[:, _HOST] = self.parts_ns.sum(axis=1) - kinds.sum(axis=1)
        return kinds

    def sums(self, rows: Ints | Bools | slice) -> Ints:
        """Return the time of some steps together: an array (PARTS, HOST_KINDS). The columns have to be known."""
        assert self.columns is not None
        table = np.zeros((len(PARTS), len(HOST_KINDS)), dtype=np.int64)
        for number, values in self.columns.items():
            table[divmod(number, len(HOST_KINDS))] = values[rows].sum()
        table[:, _HOST] = self.parts_ns[rows].sum(axis=0) - table.sum(axis=1)
        return table
