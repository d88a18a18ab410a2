"""Which function of the program a thread was in during a part of a request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.trace import Trace

_MOST = 0.6  # of a time: a function that ran for so much of it explains it


@dataclass(frozen=True)
class _Spans:
    start_ns: Ints
    end_ns: Ints
    depth: Ints
    region: Ints


class Functions:
    """The functions of the program that threads were in."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._names = [
            f"{each.name} ({each.file.rpartition('/')[2]}:{each.line})" if each.file else each.name
            for each in region_rows(trace)
        ]
        self._is_function = np.array(
            [each.paradigm == "python" and each.role == "function" for each in region_rows(trace)], dtype=bool
        )
        self._threads = {
            (each.process, each.thread_id): each.location for each in location_rows(trace) if each.kind == "thread"
        }
        self._spans: dict[int, _Spans] = {}

    def longest(self, process: int, thread_id: int, begin_ns: int, end_ns: int, most_ns: int) -> str:
        """Return the innermost function that a thread was in for most of a time; empty where it is not recorded.

        A function that lasts more than `most_ns` runs the event loop, and does not hold it up.
        """
        spans, chosen = self._within(process, thread_id, begin_ns, end_ns, most_ns)
        if spans is None:
            return ""
        ran_ns = np.minimum(spans.end_ns[chosen], end_ns) - np.maximum(spans.start_ns[chosen], begin_ns)
        long = chosen[ran_ns >= _MOST * (end_ns - begin_ns)]
        return self._names[spans.region[long[np.argmax(spans.depth[long])]]] if len(long) else ""

    def alone(self, process: int, thread_id: int, begin_ns: int, end_ns: int, most_ns: int) -> list[tuple[str, int]]:
        """Return the time that a thread spent in each function alone; what is left is under an empty name."""
        spans, chosen = self._within(process, thread_id, begin_ns, end_ns, most_ns)
        left_ns, own = end_ns - begin_ns, dict[str, int]()
        if spans is not None:
            first = np.maximum(spans.start_ns[chosen], begin_ns)
            last = np.minimum(spans.end_ns[chosen], end_ns)
            depth = spans.depth[chosen]
            for at in range(len(chosen)):
                inside = (first >= first[at]) & (last <= last[at]) & (depth == depth[at] + 1)
                inside[at] = False
                spent_ns = int(last[at] - first[at] - (last[inside] - first[inside]).sum())
                name = self._names[spans.region[chosen[at]]]
                own[name] = own.get(name, 0) + spent_ns
                left_ns -= spent_ns
        if left_ns > 0:
            own[""] = own.get("", 0) + left_ns
        return list(own.items())

    def _within(
        self, process: int, thread_id: int, begin_ns: int, end_ns: int, most_ns: int
    ) -> tuple[_Spans | None, Ints]:
        nothing = np.zeros(0, dtype=np.int64)
        location = self._threads.get((process, thread_id))
        if location is None:
            return None, nothing
        spans = self._of(location)
        until = int(np.searchsorted(spans.start_ns, end_ns))
        short = spans.end_ns[:until] - spans.start_ns[:until] <= most_ns
        chosen = np.flatnonzero((spans.end_ns[:until] > begin_ns) & short)
        return (spans, chosen) if len(chosen) else (None, nothing)

    def _of(self, location: int) -> _Spans:
        known = self._spans.get(location)
        if known is None:
            batches = [
                {
                    name: batch[name][self._is_function[batch["region"]]]
                    for name in ("start_ns", "duration_ns", "depth", "region")
                }
                for batch in self._trace.span_batches(location)
            ]
            whole = {
                name: np.concatenate([each[name] for each in batches]).astype(np.int64)
                if batches
                else np.zeros(0, dtype=np.int64)
                for name in ("start_ns", "duration_ns", "depth", "region")
            }
            known = self._spans[location] = _Spans(
                whole["start_ns"], whole["start_ns"] + whole["duration_ns"], whole["depth"], whole["region"]
            )
        return known
