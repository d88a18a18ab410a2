"""Threads of pthreads as records of OTF2: who created and joined which one, and when they began and ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.formats.otf2.definitions import Definitions
from strobe.formats.otf2.side_table_rows import U32, U64, Records
from strobe.ranks.waits.thread_waits import rows_of
from strobe.trace.definition_rows import processes_of_locations
from strobe.trace.trace import Trace

_CREATE, _BEGIN, _WAIT, _END = 62, 63, 64, 65
_PTHREAD = 7  # OTF2_PARADIGM_PTHREAD


class Threads:
    """Threads that the program created, numbered in this order by process.

    Each process that created some has a communicator of these, numbered from `first` on. zero_ns: the trace's zero in
    the times of the archive.
    """

    def __init__(self, trace: Trace, first: int, zero_ns: int) -> None:
        made, joins = rows_of(trace, "thread_create"), rows_of(trace, "thread_join")
        process = np.array(processes_of_locations(trace), dtype=np.int64)
        made = made.chosen(np.lexsort((made.begin_ns, process[made.location])))
        _, begins, of = np.unique(process[made.location], return_index=True, return_inverse=True)
        self._first = first
        self._members = [("pthreads", np.unique(made.cause[of == each])) for each in range(len(begins))]
        self._contingent, self._sequence = first + of, np.arange(len(of)) - begins[of]
        number = np.full(len(process), -1, dtype=np.int64)
        number[made.cause] = np.arange(len(made))
        joins = joins.chosen(joins.cause >= 0)
        joined = number[joins.cause]
        joins, joined, every = joins.chosen(joined >= 0), joined[joined >= 0], np.arange(len(made))
        ended = made.max_ns >= 0
        made_ns = made.begin_ns + zero_ns
        # By record: where, when, and which thread.
        self._events = {
            _CREATE: (made.location, made_ns, every),
            _BEGIN: (made.cause, made_ns + made.wait_ns, every),
            _WAIT: (joins.location, joins.begin_ns + joins.wait_ns + zero_ns, joined),
            _END: (made.cause[ended], (made_ns + made.max_ns)[ended], every[ended]),
        }

    def records(self, location: int) -> Iterator[Records]:
        """Yield the records of a location, each kind in order of time."""
        for record, (where, time_ns, thread) in self._events.items():
            (own,) = np.nonzero(where == location)
            own = own[np.argsort(time_ns[own], kind="stable")]
            if len(own):
                which = thread[own]
                fields = [(U32, self._contingent[which]), (U64, self._sequence[which])]
                yield record, np.ascontiguousarray(time_ns[own]), [*fields], []

    def define(self, definitions: Definitions, first_group: int) -> None:
        """Define the communicators, with groups from number `first_group` on."""
        definitions.threads(first_group, self._first, _PTHREAD, self._members)
