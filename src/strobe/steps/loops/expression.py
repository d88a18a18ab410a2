"""A sequence of events as SEQ and LOOP: `SEQ A LOOP(100x) SEQ[ B LOOP(20x) SEQ[C B] D ]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.native import core

Column = npt.NDArray[Any]
Names = Mapping[int, str] | Sequence[str] | None  # of events, by id


@dataclass(frozen=True)
class Expression:
    """The loops of a sequence, in the order in which they are written.

    id: of an event, 0 for a loop.
    size: of a loop, how many elements after it are its body; 0 for an event.
    runs_begin, runs_end: of a loop, its rows in `trips` and `times`: it ran so many `times` in a row, `trips`
        iterations each.
    """

    id: Column
    size: npt.NDArray[np.uint32]
    runs_begin: npt.NDArray[np.uint32]
    runs_end: npt.NDArray[np.uint32]
    trips: npt.NDArray[np.uint32]
    times: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        """Events and LOOPs that are written, however deep."""
        return len(self.id)

    def expand(self) -> Column:
        """The sequence that was folded."""
        ids = core.expand(
            np.arange(len(self), dtype=np.uint32), self.size, self.runs_begin, self.runs_end, self.trips, self.times
        )
        return self.id[ids]

    def trip_counts(self, element: int) -> npt.NDArray[np.int64]:
        """Iterations of every execution of the loop at `element`, in order."""
        runs = slice(self.runs_begin[element], self.runs_end[element])
        return np.repeat(self.trips[runs], self.times[runs]).astype(np.int64)

    def text(self, names: Names = None, max_depth: int | None = None) -> str:
        """Write the expression on one line.

        names: of the events, otherwise their ids are written. max_depth: loops inside of so many loops are written as
        `SEQ[...]`. Trip counts that vary are written as smallest..largest.
        """
        return " ".join(["SEQ", *self._written(0, len(self), names, max_depth)])

    def _written(self, begin: int, end: int, names: Names, max_depth: int | None) -> list[str]:
        words = []
        while begin < end:
            size = int(self.size[begin])
            if size == 0:
                event = int(self.id[begin])
                words.append(str(event) if names is None else names[event])
            else:
                words.append(self._loop(begin, size, names, max_depth))
            begin += 1 + size
        return words

    def _loop(self, element: int, size: int, names: Names, max_depth: int | None) -> str:
        trips = self.trips[self.runs_begin[element] : self.runs_end[element]]
        least, most = int(trips.min()), int(trips.max())
        head = f"LOOP({least}x)" if least == most else f"LOOP({least}..{most}x)"
        if max_depth == 0:
            return f"{head} SEQ[...]"
        body = self._written(element + 1, element + 1 + size, names, None if max_depth is None else max_depth - 1)
        has_loop = bool(self.size[element + 1 : element + 1 + size].any())
        return f"{head} SEQ[ {' '.join(body)} ]" if has_loop else f"{head} SEQ[{' '.join(body)}]"


def fold(ids: npt.NDArray[np.integer]) -> Expression:
    """Fold the repetitions of a sequence into loops; `ids` are any integers.

    What repeats at once, twice or more, becomes a loop; two iterations are equal if they differ in nothing but the trip
    counts of loops inside. A loop that runs once or not at all is not a loop. About 20 ns per event with repetitions,
    100 ns without.
    """
    values, codes = np.unique(np.asarray(ids), return_inverse=True)
    event, *columns = core.fold(np.ascontiguousarray(codes, dtype=np.uint32))
    names = np.where(columns[0] == 0, values[event], 0) if len(values) else values[event]
    return Expression(names.astype(values.dtype), *columns)
