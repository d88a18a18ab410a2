"""A part of a process, with the interface of the reader of a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.trace.folded import no_iterations
from strobe.trace.processes.process_facts import LocationFacts, MetricReadings, ProcessFacts
from strobe.trace.processes.process_reader import ALWAYS, LostSpans, ProcessReader

_Array = npt.NDArray[Any]


class PartReader:
    """The reader of a process, cut to [begin_ns, end_ns) of its clock. Spans are numbered anew."""

    def __init__(self, whole: ProcessReader, begin_ns: int, end_ns: int) -> None:
        self._whole, self._begin, self._end = whole, begin_ns, end_ns
        self.window = max(begin_ns, ALWAYS[0]), min(end_ns, ALWAYS[1])
        self._rows: tuple[int, _Array] = (-1, np.empty(0, dtype=np.int64))  # of the location asked for last

    def process(self) -> ProcessFacts:
        """Return what is known of the process; it begins and ends with the part."""
        facts = self._whole.process()
        begin, end = max(facts["started_ns"], self._begin), min(facts["ended_ns"], self._end)
        return {**facts, "started_ns": begin, "ended_ns": max(begin, end)}

    def locations(self) -> list[LocationFacts]:
        """Return the locations, all of them: ids stay."""
        locations: list[LocationFacts] = []
        for location in self._whole.locations():
            spans = self.spans(location["id"], self._begin, self._end)
            start, end = spans["start_ns"], spans["start_ns"] + spans["duration_ns"]
            first, last = (int(start[0]), int(end.max())) if len(start) else (self._begin, self._begin)
            locations.append({**location, "span_count": len(start), "first_ns": first, "last_ns": last})
        return locations

    def spans(self, location: int, start_ns: int, end_ns: int) -> dict[str, _Array]:
        """Return the spans that overlap the stretch, cut at the edges of the part."""
        begin, end = max(start_ns, self._begin), min(end_ns, self._end)
        if begin >= end:
            begin = end = self._begin  # nothing: but with the columns that there are
        raw: dict[str, _Array] = dict(self._whole.spans(location, begin, end))
        starts, ends = raw["start_ns"], raw["start_ns"] + raw["duration_ns"]
        raw["start_ns"], kept_ends = np.maximum(starts, self._begin), np.minimum(ends, self._end)
        raw["duration_ns"] = kept_ends - raw["start_ns"]
        cut = (starts < self._begin) | (ends > self._end)
        raw["complete"] = np.where(cut, 0, raw["complete"]).astype(raw["complete"].dtype)
        old = raw["row"]
        # What encloses a span of the stretch is in it, too.
        inner = raw["parent"] >= 0
        parent = np.searchsorted(old, raw["parent"][inner])
        inside = np.zeros(len(old), dtype=np.int64)
        np.add.at(inside, parent, raw["duration_ns"][inner])
        raw["self_ns"] = raw["duration_ns"] - inside
        known = self._known_rows(location)
        raw["row"] = np.searchsorted(known, old).astype(np.int64)
        raw["parent"] = np.where(inner, np.searchsorted(known, raw["parent"]), -1).astype(np.int64)
        return raw

    def metrics(self) -> list[MetricReadings]:
        """Return the readings inside of the part."""
        metrics: list[MetricReadings] = []
        for metric in self._whole.metrics():
            inside = self._inside(metric["time_ns"])
            values = np.asarray(metric["value"])[inside]
            metrics.append({**metric, "time_ns": metric["time_ns"][inside], "value": values})
        return metrics

    def quality(self) -> dict[str, int]:
        """Return what is known of the whole, and what the part lacks."""
        cut = sum(
            int((self.spans(each["id"], self._begin, self._end)["complete"] == 0).sum())
            for each in self._whole.locations()
        )
        left = len(self._whole.statistics()["count"])
        return {**self._whole.quality(), "spans_cut": cut, **({"statistics_left_out": left} if left else {})}

    def lost_spans(self) -> list[LostSpans]:
        """Return those that may have begun in the part."""
        return [
            each._replace(begin_ns=max(each.begin_ns, self._begin), end_ns=min(each.end_ns, self._end))
            for each in self._whole.lost_spans()
            if each.begin_ns < self._end and each.end_ns > self._begin
        ]

    def loops(self) -> list[dict[str, Any]]:
        """Return nothing: loops are looked for in the spans that are there."""
        return []

    def iterations(self) -> dict[str, _Array]:
        """Return none: their statistics cannot be divided."""
        return no_iterations()

    def cells(self) -> dict[int, _Array]:
        """Return none."""
        return {}

    def gpu_lanes(self) -> dict[int, tuple[int, _Array, dict[int, _Array]]]:
        """Return none."""
        return {}

    def classes(self) -> list[list[int]]:
        """Return none."""
        return []

    class_paths = classes

    def extra_calls(self) -> list[tuple[int, int, int, int]]:
        """Return none."""
        return []

    def statistics(self) -> dict[str, _Array]:
        """Return none: they cannot be divided."""
        return {name: values[:0] for name, values in self._whole.statistics().items()}

    def graph(self, location: int) -> dict[str, Any] | None:
        """Return none: it is of the whole."""
        return None

    def table(self, name: str, location: int = -1, first: int = 0, most: int = 1 << 60) -> dict[str, Any]:
        """Return the rows of the part's spans, or those with a time inside."""
        raw = self._whole.table(name, location, first, most)
        owner = raw["location"]
        if "time_ns" in raw["columns"]:
            kept = self._inside(raw["columns"]["time_ns"][1])
            row = raw["row"]
        else:
            kept, row = np.zeros(len(owner), dtype=bool), raw["row"].copy()
            for each in np.unique(owner):
                known = self._known_rows(int(each))
                at = np.flatnonzero(owner == each)
                kept[at], row[at] = np.isin(row[at], known), np.searchsorted(known, row[at])
        columns = {key: (kind, values[kept], valid[kept]) for key, (kind, values, valid) in raw["columns"].items()}
        return {**raw, "location": owner[kept], "row": row[kept], "columns": columns}

    def numbers(
        self, name: str, columns: Sequence[str], number: int, count: int
    ) -> tuple[_Array, dict[str, tuple[bool, _Array]]]:
        """Return the rows of a table without spans that have a time inside."""
        location, cells = self._whole.numbers(name, [*columns, "time_ns"], number, count)
        kept = self._inside(cells["time_ns"][1])
        return location[kept], {key: (is_text, values[kept]) for key, (is_text, values) in cells.items()}

    def _inside(self, times: _Array) -> _Array:
        inside: _Array = (times >= self._begin) & (times < self._end)
        return inside

    def _known_rows(self, location: int) -> _Array:
        if self._rows[0] != location:
            self._rows = location, self._whole.spans(location, self._begin, self._end)["row"]
        return self._rows[1]

    def __getattr__(self, name: str) -> Any:  # definitions and texts are those of the whole
        return getattr(self._whole, name)


def exported_loops(reader: ProcessReader | PartReader) -> list[tuple[str, str, int, str]]:
    """Return name, file and line of functions, and what their loops call: they have other numbers in an export."""
    loops = reader.source_loops()
    return [(row[1], row[4], row[5], loops[row[0]]) for row in reader.regions() if row[0] in loops] if loops else []
