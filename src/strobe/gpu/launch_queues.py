"""The number of launches that wait on each stream: from the begin of the call to the begin of the activity."""

from __future__ import annotations

import numpy as np

from strobe.sums.groups import Spread
from strobe.tables.column_arrays import Ints

# A stream runs its launches in order. Calls of several threads may be out of order by less than this, so that what
# happened that long before the latest call is known as a whole.
_SETTLED_NS = 1_000_000_000


class Queue:
    """The queue of one stream, fed with its activities in order of start; what is held is what is not settled yet.

    The length after every event is added to `lengths` under the number of the stream (HTA: queue length). full_ns: time
    in which `full` launches or more waited (HTA: time blocked on a full queue).
    """

    def __init__(self, stream: int, lengths: Spread, full: int) -> None:
        self._stream, self._lengths, self._full = stream, lengths, full
        self._time, self._change = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._length, self._latest, self._since, self.full_ns = 0, -(2**62), 0, 0

    def add(self, call_start_ns: Ints, start_ns: Ints) -> None:
        """Add launches: when the call began and when the activity did."""
        if len(start_ns):
            self._time = np.concatenate((self._time, call_start_ns, start_ns))
            ones = np.ones(len(start_ns), dtype=np.int64)
            self._change = np.concatenate((self._change, ones, -ones))
            self._latest = max(self._latest, int(call_start_ns.max()))
            self._settle(self._latest - _SETTLED_NS)

    def finish(self) -> None:
        """Count the launches that are left."""
        self._settle(2**62)

    def _settle(self, until_ns: int) -> None:
        settled = self._time <= until_ns
        time, change = self._time[settled], self._change[settled]
        self._time, self._change = self._time[~settled], self._change[~settled]
        # At the same moment the call comes first.
        order = np.lexsort((-change, time))
        lengths = self._length + np.cumsum(change[order])
        if len(lengths):
            before = np.concatenate(([self._length], lengths[:-1])) >= self._full
            self.full_ns += int(np.diff(time[order], prepend=self._since)[before].sum())
            self._length, self._since = int(lengths[-1]), int(time[order][-1])
            self._lengths.add(np.full(len(lengths), self._stream, dtype=np.int64), lengths)
