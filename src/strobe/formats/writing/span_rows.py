"""Rows of side tables beside the spans that they belong to, for writers that go through a location once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from strobe.tables.lazy_pyarrow import pa
from strobe.trace.trace import Trace


class SpanRows:
    """Rows of a side table in order of their spans, taken as far as the spans are."""

    def __init__(self, trace: Trace, name: str, location: int) -> None:
        self._batches = trace.side_batches(name, location)
        if not in_order(raw["row"] for raw in trace.raw_side_batches(name, location)):
            # Decoders of several kinds of such rows write each kind by itself. Sorting is stable: rows of one span stay
            # in their order.
            self._batches = iter([pa.concat_tables(self._batches).sort_by("row")])
        self._left = next(self._batches, None)

    def before(self, row: int) -> Iterator[pa.Table]:
        """Yield the rows that were not taken yet, of spans before `row`."""
        while self._left is not None:
            taken = int(np.searchsorted(self._left.column("row").to_numpy(), row))
            if taken:
                yield self._left.slice(0, taken)
            if taken < self._left.num_rows:
                self._left = self._left.slice(taken)
                return
            self._left = next(self._batches, None)


def in_order(pieces: Iterable[npt.NDArray[np.int64]]) -> bool:
    """Return whether numbers never fall, from piece to piece either."""
    last = -1
    for rows in pieces:
        if len(rows) and (rows[0] < last or (np.diff(rows) < 0).any()):
            return False
        last = int(rows[-1]) if len(rows) else last
    return True
