"""The cost of operators on the host and on GPUs, summed by their labels over all locations, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from strobe.gpu.devices import devices
from strobe.gpu.launches import launches
from strobe.gpu.xla_operations import named_by_kernels
from strobe.operators.labels import CELLS, Cells, Labels, labels_by
from strobe.operators.xla_labels import XlaLabels
from strobe.steps.selection import Selection
from strobe.steps.step_times import known_steps, step_at
from strobe.sums.groups import Groups, Growing, Spread
from strobe.sums.path_statistics import histogram_of, median_of, outermost, selected_statistics
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.definition_rows import location_rows, path_tree, processes_of_locations
from strobe.trace.folded import BUCKETS
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace
from strobe.workers.map_combine import Join, MapCombine, Tables, over_processes

# Spans that a stretch holds about.
_STRETCH = 1 << 18
# Different durations (by row) that all processes together return for medians. Where a process has more than its share
# of these it returns 12 bits of each (error below 0.03 %), of many processes 8 (0.4 %): equal ones then add up.
_MOST_PAIRS = 1 << 21
_LEAST_PAIRS = 1 << 12
_MANY = 64
_HIGHEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class OperatorSums:
    """Sums of each row, in order of labels; columns of equal length.

    label (its cells), split (a process, a step, or 0): the key. calls: executions. time_ns: sum of all durations.
    total_ns: the same, with an execution inside of one of the same label counted once. own_ns: without the spans
    directly inside. device_total_ns, device_own_ns: sum of the durations of their launches on GPUs: anywhere inside,
    and not inside of an inner operator. activities: the number of these launches, anywhere inside. known: whether any
    process has labels.
    """

    label: list[Cells]
    split: list[int]
    calls: Ints
    time_ns: Ints
    total_ns: Ints
    own_ns: Ints
    min_ns: Ints
    max_ns: Ints
    median_ns: Floats
    device_total_ns: Ints
    device_own_ns: Ints
    activities: Ints
    known: bool


def operator_sums(trace: Trace, selection: Selection, by: str, split: str = "") -> OperatorSums:
    """Sum up the operators that were selected, by their labels (`labels_by`); with `split`, by process or step, too.

    An execution belongs to the step that it begins in, the work of a GPU to that of the call that launched it (-1 is
    outside of every step). Of a CUDA graph it counts for the operators around the calls that captured it: these may
    have been executed in other steps, so that rows may have work of GPUs and no execution; times of a call are 0 there.
    Statistics of folded steps count in, but for sums by step; where some do, medians are estimates (`median_of`).
    """
    cells = [f"cell_{k}" for k in range(CELLS.get(by, 1))]
    keys = (*cells, split) if split else tuple(cells)
    joins = {
        "sums": Join(keys, least=("min_ns",), most=("max_ns",)),
        "durations": Join((*keys, "value")),
        "histograms": Join((*keys, "bucket")),
        "known": Join(("known",)),
    }
    known = known_steps(trace) if split == "step" else None
    with_folded = bool(trace.folded) and split != "step"
    processes = len(trace.readers)
    pairs = (max(_LEAST_PAIRS, _MOST_PAIRS // processes), 12 if processes <= _MANY else 8)
    question = MapCombine(_of_process, Tables(joins))
    found = over_processes(
        trace, question, known=known, selection=selection, by=by, split=split, with_folded=with_folded, pairs=pairs
    )
    return _finished(found, cells, split)


def _of_process(
    part: Trace, selection: Selection, by: str, split: str, with_folded: bool, pairs: tuple[int, int]
) -> dict[str, pa.Table]:
    """Return the tables about one process that `operator_sums` joins."""
    labels = labels_by(part, by)
    if not labels.is_operator.any() and named_by_kernels(part):
        labels = XlaLabels(part, by)
    sums = _Sums(part, selection, labels, split, with_folded)
    if isinstance(labels, XlaLabels):
        sums.add_devices()
    elif labels.is_operator.any():
        for location in location_rows(part):
            if location.kind != "stream" and location.span_count:
                sums.add_location(location.location)
        if with_folded:
            sums.add_folded()
        sums.add_devices()
    return sums.tables(CELLS.get(by, 1), pairs)


def _finished(found: Mapping[str, pa.Table], cells: Sequence[str], split: str) -> OperatorSums:
    """Return the rows that all processes have together, with their medians."""
    rows, key = found["sums"], [*cells, *([split] if split else [])]
    number = {tuple(row.values()): at for at, row in enumerate(rows.select(key).to_pylist())}

    def row_of(table: pa.Table) -> Ints:
        return np.array([number[tuple(row.values())] for row in table.select(key).to_pylist()], dtype=np.int64)

    column = {name: rows.column(name).to_numpy() for name in rows.column_names if name not in key}
    durations, histograms = found["durations"], found["histograms"]
    values, times = durations.column("value").to_numpy(), durations.column("times").to_numpy()
    spread = Spread.of_pairs(row_of(durations), values, times)
    seen = column["calls"] - column["folded"]
    column["min_ns"] = np.where(column["calls"] > 0, column["min_ns"], 0)
    median = np.clip(np.nan_to_num(spread.quantile(0.5, seen)), column["min_ns"], column["max_ns"])
    counts = np.zeros((len(rows), BUCKETS), dtype=np.int64)
    counts[row_of(histograms), histograms.column("bucket").to_numpy()] = histograms.column("count").to_numpy()
    for at in np.flatnonzero(column["folded"]).tolist():
        median[at] = median_of(counts[at], int(column["min_ns"][at]), int(column["max_ns"][at]))
    keys = list(number)
    order = np.array(
        sorted(range(len(keys)), key=lambda at: [(cell is not None, cell) for cell in keys[at]]), dtype=int
    )
    return OperatorSums(
        label=[keys[at][: len(cells)] for at in order],
        split=[keys[at][-1] if split else 0 for at in order],
        median_ns=median[order],
        known=any(found["known"].column("known").to_pylist()),
        **{name: values[order] for name, values in column.items() if name != "folded"},
    )


class _Sums:
    """Sums that grow location by location, device by device."""

    def __init__(self, trace: Trace, selection: Selection, labels: Labels, split: str, with_folded: bool) -> None:
        self._trace, self._selection, self._labels, self._split = trace, selection, labels, split
        self._process_of = processes_of_locations(trace)
        self._rows, self._cells = Groups(), Groups()
        self._spread, self._total, self._own = Spread(), Growing(), Growing()
        # Work of GPUs by cell: the node that launched it, and the split.
        self._device_ns, self._activities = Growing(), Growing()
        self._with_folded = with_folded
        self._calls, self._time = Growing(), Growing()
        self._low, self._high = Growing(np.minimum, _HIGHEST), Growing(np.maximum)
        # By bucket, of all executions, folded or not.
        self._histogram: dict[int, Ints] = {}

    def add_location(self, location: int) -> None:
        numbering = self._labels.numbering(location)
        for spans, new in _stretches(self._trace, location):
            node = numbering(spans, new)
            _, label, once = self._labels.tree()
            wanted = self._labels.is_operator[spans["region"]] & (node >= 0)
            mask = self._selection.keep(location, spans["start_ns"])
            if mask is not None:
                wanted &= mask
            (at,) = np.nonzero(wanted)
            row = np.full(len(node), -1, dtype=np.int64)
            row[at] = self._row(label[node[at]], self._splits(location, spans["start_ns"][at]))
            duration = spans["duration_ns"]
            mine = new[wanted[new]]
            self._spread.add(row[mine], duration[mine])
            self._total.add(row[mine], duration[mine] * once[node[mine]])
            self._own.add(row[mine], duration[mine])
            parent = spans["parent"][new]
            inside, parent = new[parent >= 0], parent[parent >= 0]
            around = row[np.searchsorted(spans["row"], parent)]
            self._own.add(around[around >= 0], -duration[inside[around >= 0]])
            if self._with_folded:
                for each in np.unique(row[mine]).tolist():
                    self._count(each, histogram_of(duration[mine[row[mine] == each]]))

    def add_folded(self) -> None:
        """Add the statistics of folded iterations."""
        parent, _ = path_tree(self._trace)
        label_of = self._labels.of_path(np.arange(len(parent)))
        once = outermost(parent, label_of)
        process_of = np.array(self._process_of, dtype=np.int64)
        for folded in selected_statistics(self._trace, self._selection):
            some = folded.chosen(label_of[folded.call_path] >= 0)
            row = self._row(label_of[some.call_path], process_of[some.location] if self._split else None)
            self._total.add(row, some.total_ns * once[some.call_path])
            self._own.add(row, some.own_ns)
            counted = some.count > 0
            row, some = row[counted], some.chosen(counted)
            self._calls.add(row, some.count)
            self._time.add(row, some.total_ns)
            self._low.add(row, some.min_ns)
            self._high.add(row, some.max_ns)
            for each, histogram in zip(row.tolist(), some.histogram, strict=True):
                self._count(each, histogram)

    def add_devices(self) -> None:
        """Add the work that operators launched on GPUs."""
        for device in devices(self._trace):
            for found, by in launches(self._trace, device, numbering=self._labels.numbering):
                called = by.call.row >= 0
                location = np.where(by.code.row >= 0, by.code.location, by.operator.location)
                location = np.where(called, by.call.location, location)
                node = self._labels.of_work(found, by)
                location = np.where(location < 0, found.location, location)
                start, duration = np.where(called, by.call.start_ns, found.start_ns), found.end_ns - found.start_ns
                for each in np.unique(location[location >= 0]).tolist():
                    (at,) = np.nonzero((location == each) & (node >= 0))
                    mask = self._selection.keep(each, start[at])
                    at = at if mask is None else at[mask]
                    split = self._splits(each, start[at])
                    cell = self._cells.numbers([node[at], np.zeros_like(at) if split is None else split])
                    self._device_ns.add(cell, duration[at])
                    self._activities.add(cell, np.ones_like(at))

    def tables(self, cells: int, pairs: tuple[int, int]) -> dict[str, pa.Table]:
        """Return the sums of all rows, and how their durations spread; see `operator_sums`."""
        device_total, device_own, activities = self._device_sums()
        keys = self._rows.keys if self._split else [(label, 0) for label in range(len(self._labels.cells))]
        count = len(keys)
        seen = self._spread.summary(count)
        folded = self._calls.of(count)
        label, split = np.array(keys, dtype=np.int64).reshape(-1, 2).T

        def named(row: Ints) -> dict[str, object]:
            labels, which = np.unique(label[row], return_inverse=True)
            shown = (self._labels.cells[each] for each in labels.tolist())
            padded = [(*each, *(None,) * (cells - len(each))) for each in shown]
            coded = {f"cell_{k}": _coded([each[k] for each in padded], which) for k in range(cells)}
            return {**coded, **({self._split: split[row]} if self._split else {})}

        used = np.flatnonzero(seen.count + folded + activities.of(count))
        sums = {
            "calls": seen.count + folded,
            "folded": folded,
            "time_ns": seen.total + self._time.of(count),
            "total_ns": self._total.of(count),
            "own_ns": self._own.of(count),
            "min_ns": np.minimum(np.where(seen.count > 0, seen.least, _HIGHEST), self._low.of(count)),
            "max_ns": np.maximum(seen.most, self._high.of(count)),
            "device_total_ns": device_total.of(count),
            "device_own_ns": device_own.of(count),
            "activities": activities.of(count),
        }
        group, value, times = self._spread.pairs(*pairs)
        rows = sorted(self._histogram)
        counted = np.array([self._histogram[row] for row in rows], dtype=np.int64).reshape(len(rows), BUCKETS)
        at, bucket = np.nonzero(counted)
        of_histogram = np.array(rows, dtype=np.int64)[at]
        return {
            "sums": pa.table({**named(used), **{name: column[used] for name, column in sums.items()}}),
            "durations": pa.table({**named(group), "value": value, "times": times}),
            "histograms": pa.table({**named(of_histogram), "bucket": bucket, "count": counted[at, bucket]}),
            "known": pa.table({"known": np.array([self._labels.known])}),
        }

    def _device_sums(self) -> tuple[Growing, Growing, Growing]:
        """Return by row: time of GPUs anywhere inside, directly inside, number of activities anywhere inside."""
        parent, label, once = self._labels.tree()
        node, split = np.array(self._cells.keys, dtype=np.int64).reshape(-1, 2).T
        ns, activities = self._device_ns.of(len(node)), self._activities.of(len(node))
        total, own, inside = Growing(), Growing(), Growing()
        is_own = np.ones(len(node), dtype=bool)
        # All cells climb one level at a time, and add their values to each operator on the way.
        while len(node):
            (at,) = np.nonzero(label[node] >= 0)
            row = self._row(label[node[at]], split[at])
            own.add(row, ns[at] * is_own[at])
            total.add(row, ns[at] * once[node[at]])
            inside.add(row, activities[at] * once[node[at]])
            is_own[at] = False
            above = parent[node]
            left = above >= 0
            node, split, ns, activities, is_own = (each[left] for each in (above, split, ns, activities, is_own))
        return total, own, inside

    def _row(self, label: Ints, split: Ints | None) -> Ints:
        return self._rows.numbers([label, split]) if self._split and split is not None else label

    def _splits(self, location: int, start_ns: Ints) -> Ints | None:
        """Return the split of executions in a location, None without a split."""
        if self._split == "step":
            return step_at(self._trace, location, start_ns)
        return np.full(len(start_ns), self._process_of[location], dtype=np.int64) if self._split else None

    def _count(self, row: int, histogram: Ints) -> None:
        self._histogram[row] = self._histogram.get(row, np.zeros(BUCKETS, dtype=np.int64)) + histogram


def _stretches(trace: Trace, location: int) -> Iterator[tuple[SpanArrays, Ints]]:
    """Yield the spans of a location that overlap a stretch of time, and which of them begin in it: each once."""
    facts = location_rows(trace)[location]
    first, last = facts.first_ns, facts.last_ns
    width = (last - first) // max(1, -(-facts.span_count // _STRETCH)) + 1
    for begin in range(first, last + 1, width):
        # From the moment before, so that a span without any length is in it.
        spans = trace.span_arrays(location, begin - 1, begin + width)
        (new,) = np.nonzero(spans["start_ns"] >= begin)
        if len(new):
            yield spans, new


def _coded(texts: Sequence[str | None], which: Ints) -> pa.DictionaryArray:
    """Return the text at each place as a number, without `pyarrow.compute`, which costs more than most summaries."""
    numbers: dict[str, int] = {}
    coded = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    place = np.array(coded, dtype=np.int32)[which]
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=place < 0), pa.array(list(numbers), pa.string()))
