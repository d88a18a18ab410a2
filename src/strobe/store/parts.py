"""A part of a run: some ranks, steps or times, behind the seam of whole processes: everything above works on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.model.units import format_count, format_ns
from strobe.store.folded import no_iterations
from strobe.store.raw import ALWAYS, ProcessReader

if TYPE_CHECKING:
    from strobe.store.trace import Trace

Range = tuple[int, int]
_Array = npt.NDArray[Any]


def part_of(trace: Trace, ranks: Range | None, steps: Range | None, time_ns: Range | None) -> Trace:
    """Return the part of a trace: see `Trace.part`."""
    from strobe.store.trace import Trace

    chosen = _processes(trace, ranks)
    windows = [_window(trace, process, steps, time_ns) for process in chosen]
    if chosen and all(window is not None and window[0] >= window[1] for window in windows):
        raise UsageError("nothing was recorded in that range", do=_what_there_is(trace, steps is not None))
    readers = []
    for process, window in zip(chosen, windows, strict=True):
        reader, zero = trace.readers[process], trace.zero_of(process)
        readers.append(reader if window is None else PartReader(reader, window[0] + zero, window[1] + zero))
    files = [trace.files[process] for process in chosen] if trace.files else []
    job = replace(trace.job, zero_ns=trace.zero_ns)
    return Trace(trace.path, job, cast("list[ProcessReader]", readers), files, workers=trace.workers)


def beginning_of(trace: Trace, most_spans: int) -> tuple[Trace, str]:
    """Return a part of a trace with about `most_spans` at most, and which one: see `Trace.beginning`."""
    from strobe.store.trace import Trace

    counts = np.zeros(len(trace.readers), dtype=np.int64)
    processes, spans = (trace.locations.to_arrow().column(name).to_numpy() for name in ("process", "span_count"))
    np.add.at(counts, processes, spans.astype(np.int64))
    whole = int(np.searchsorted(np.cumsum(counts), most_spans, side="right"))
    if whole == len(counts):
        return trace, ""
    files = trace.files[: max(1, whole)]
    if whole:
        said = f"the first {whole} of {len(counts)} processes" if whole > 1 else f"the first of {len(counts)} processes"
        readers: list[Any] = list(trace.readers[:whole])
    else:
        # The last moment before which there are not too many.
        first, until = 0, trace.info.duration_ns + 1
        while until - first > 1:
            middle = (first + until) // 2
            few = trace.readers[0].spans_before(middle + trace.zero_of(0)) <= most_spans
            first, until = (middle, until) if few else (first, middle)
        of = f" of the first of {len(counts)} processes" if len(counts) > 1 else ""
        said = f"the first {format_ns(first)}{of}"
        begin = min(0, *(int(str(at["first_ns"])) for at in trace.locations.to_pylist() if at["process"] == 0))
        readers = [PartReader(trace.readers[0], begin + trace.zero_of(0), first + trace.zero_of(0))]
    part = Trace(trace.path, replace(trace.job, zero_ns=trace.zero_ns), readers, files)
    return part, f"found in {said}: {format_count(part.span_count)} of {format_count(trace.span_count)} spans"


def _processes(trace: Trace, ranks: Range | None) -> list[int]:
    rows = trace.processes.to_pylist()
    if ranks is None:
        return list(range(len(rows)))
    first, last = ranks
    inside = {i for i, row in enumerate(rows) if row["rank"] is not None and first <= int(str(row["rank"])) <= last}
    if not inside:
        there = sorted(int(str(row["rank"])) for row in rows if row["rank"] is not None)
        known = f"Ranks: {there[0]} to {there[-1]}" if there else "Its processes have no ranks."
        raise UsageError(f"no rank from {first} to {last} in this trace", do=known)
    # Workers of a loader, say, go with their rank.
    pids = {(rows[i]["host"], rows[i]["pid"]) for i in inside}
    children = {i for i, row in enumerate(rows) if row["rank"] is None and (row["host"], row["parent_pid"]) in pids}
    return sorted(inside | children)


def _window(trace: Trace, process: int, steps: Range | None, time_ns: Range | None) -> Range | None:
    """The times of a process that are in the part, None for all."""
    begin, end = time_ns if time_ns is not None else (-(2**62), 2**62)
    if steps is not None:
        number, starts, ends = trace.steps_of(process)
        inside = (number >= steps[0]) & (number <= steps[1])
        if not inside.any():
            return 0, 0
        begin, end = max(begin, int(starts[inside].min())), min(end, int(ends[inside].max()))
    elif time_ns is None:
        return None
    row = trace.processes.to_pylist()[process]
    if begin <= int(str(row["started_ns"])) and end > int(str(row["ended_ns"])):
        return None
    return begin, end


def _what_there_is(trace: Trace, steps: bool) -> str:
    if not steps:
        return f"The trace ends at {trace.info.duration_ns} ns."
    numbers = trace.ask("steps").column("step")
    return f"Steps: 0 to {max(int(str(each)) for each in numbers)}" if numbers else "No steps were found in it."


class PartReader:
    """The reader of a process, cut to [begin_ns, end_ns) of its clock. Spans are numbered anew."""

    def __init__(self, whole: ProcessReader, begin_ns: int, end_ns: int) -> None:
        self._whole, self._begin, self._end = whole, begin_ns, end_ns
        self.window = max(begin_ns, ALWAYS[0]), min(end_ns, ALWAYS[1])
        self._rows: tuple[int, _Array] = (-1, np.empty(0, dtype=np.int64))  # of the location asked for last

    def process(self) -> Mapping[str, object]:
        """Return what is known of the process; it begins and ends with the part."""
        facts = dict(self._whole.process())
        begin, end = max(cast(int, facts["started_ns"]), self._begin), min(cast(int, facts["ended_ns"]), self._end)
        return {**facts, "started_ns": begin, "ended_ns": max(begin, end)}

    def locations(self) -> list[dict[str, object]]:
        """Return the locations, all of them: ids stay."""
        found = []
        for location in self._whole.locations():
            spans = self.spans(cast(int, location["id"]), self._begin, self._end)
            start, end = spans["start_ns"], spans["start_ns"] + spans["duration_ns"]
            first, last = (int(start[0]), int(end.max())) if len(start) else (self._begin, self._begin)
            found.append({**location, "span_count": len(start), "first_ns": first, "last_ns": last})
        return found

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

    def metrics(self) -> list[dict[str, object]]:
        """Return the readings inside of the part."""
        found = []
        for metric in self._whole.metrics():
            times = cast(_Array, metric["time_ns"])
            inside = self._inside(times)
            found.append({**metric, "time_ns": times[inside], "value": np.asarray(metric["value"])[inside]})
        return found

    def quality(self) -> dict[str, int]:
        """Return what is known of the whole, and what the part lacks."""
        cut = sum(
            int((self.spans(cast(int, each["id"]), self._begin, self._end)["complete"] == 0).sum())
            for each in self._whole.locations()
        )
        left = len(self._whole.statistics()["count"])
        return {**self._whole.quality(), "spans_cut": cut, **({"statistics_left_out": left} if left else {})}

    def loops(self) -> list[dict[str, object]]:
        """Return nothing: loops are looked for in the spans that are there."""
        return []

    def iterations(self) -> dict[str, _Array]:
        """Return none: their statistics cannot be divided."""
        return no_iterations()

    def classes(self) -> list[list[int]]:
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
        of = raw["location"]
        if "time_ns" in raw["columns"]:
            kept = self._inside(raw["columns"]["time_ns"][1])
            row = raw["row"]
        else:
            kept, row = np.zeros(len(of), dtype=bool), raw["row"].copy()
            for each in np.unique(of):
                known = self._known_rows(int(each))
                at = np.flatnonzero(of == each)
                place = np.searchsorted(known, row[at])
                there = place < len(known)
                there[there] = known[place[there]] == row[at][there]
                kept[at], row[at] = there, place
        columns = {key: (kind, values[kept], valid[kept]) for key, (kind, values, valid) in raw["columns"].items()}
        return {**raw, "location": of[kept], "row": row[kept], "columns": columns}

    def _inside(self, times: _Array) -> _Array:
        inside: _Array = (times >= self._begin) & (times < self._end)
        return inside

    def _known_rows(self, location: int) -> _Array:
        if self._rows[0] != location:
            self._rows = location, self._whole.spans(location, self._begin, self._end)["row"]
        return self._rows[1]

    def __getattr__(self, name: str) -> Any:  # definitions and texts are those of the whole
        return getattr(self._whole, name)
