"""Times that threads were on a processor, from the switches that an operating system records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from strobe.formats.reading.database_tables import as_json_text
from strobe.formats.reading.import_process import ImportProcess
from strobe.formats.reading.sqlite_input import BATCH_ROWS


@dataclass(frozen=True)
class _Switch:
    thread: int
    time_ns: int
    state: Mapping[str, object]


class Switches:
    """Makes a span of each switch to a processor and the next switch away from it.

    A switch without its other half becomes a mark: the recording began or ended in between, or lost one. `place`
    returns the process and location of the spans of a thread.
    """

    def __init__(self, place: Callable[[int], tuple[ImportProcess, int]]) -> None:
        self._place = place
        self._waiting: _Switch | None = None
        self._spans: dict[ImportProcess, list[tuple[int, int, int, int, int]]] = {}
        self._marks: dict[ImportProcess, list[tuple[int, int, int, int]]] = {}
        self._rows = 0

    def add(self, thread: int, time_ns: int, state: Mapping[str, object], *, switched_in: bool) -> None:
        """Add a switch; those of a thread come one after the other, in order of time."""
        before, self._waiting = self._waiting, None
        now = _Switch(thread, time_ns, state)
        if before is not None and (before.thread != thread or switched_in):
            self._mark(before, "switched in")
            before = None
        if switched_in:
            self._waiting = now
        elif before is None:
            self._mark(now, "switched out")
        else:
            process, location = self._place(thread)
            region = process.region("on a processor", "other", "other")
            text = process.text(as_json_text({**before.state, **state}))  # the switch away has the reason
            self._spans.setdefault(process, []).append((location, before.time_ns, time_ns, region, text))
            self._more()

    def finish(self) -> None:
        """Write the waiting rows."""
        if self._waiting is not None:
            self._mark(self._waiting, "switched in")
        self._flush()

    def _mark(self, switch: _Switch, name: str) -> None:
        process, location = self._place(switch.thread)
        text = process.text(as_json_text(dict(switch.state)))
        self._marks.setdefault(process, []).append((location, switch.time_ns, process.text(name), text))
        self._more()

    def _more(self) -> None:
        self._rows += 1
        if self._rows >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        for process, rows in self._spans.items():
            location, start, end, region, text = np.array(rows, dtype=np.int64).T
            process.spans(
                location.astype(np.uint32), start, end, region.astype(np.uint32), arguments=[("switch", (text, None))]
            )
        for process, marks in self._marks.items():
            location, time, name, state = np.array(marks, dtype=np.int64).T
            process.marks(location.astype(np.uint32), time, name, "scheduling", state)
        self._spans.clear()
        self._marks.clear()
        self._rows = 0
