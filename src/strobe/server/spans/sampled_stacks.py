"""Threads of which there are only samples: their call stacks as boxes over time.

A box is a function at one depth, over samples that follow each other and have the same functions around it. Whether
that was one call or several is not known, so boxes are drawn and described, and never counted as calls. Below the
innermost function lies what the thread did instead of running Python: its state.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from strobe.model.kinds import Group
from strobe.present.step_lanes import look_of_state
from strobe.sums.samples import SampleRows, frame_of, sample_rows
from strobe.tables.column_arrays import Bools, Ints, add_at
from strobe.trace.definition_rows import location_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

# Functions of a stack that are drawn, from the outermost one; the deepest of them holds the time of the others.
MOST_DEPTHS = 256


class Label(NamedTuple):
    """What a box is: a function with its source, or a state."""

    name: str
    group: Group
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Boxes:
    """The boxes of a location in order of start, and its samples one by one: the labels of what is innermost in them.

    In `spans`, regions are numbers of labels behind those of the trace's regions. `samples`: how many a box joins.
    """

    spans: SpanArrays
    samples: Ints
    start_ns: Ints
    end_ns: Ints
    innermost: Ints


class SampledStacks:
    """The boxes of a trace. Labels have numbers in order of first sight; threads of the server share them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.labels: list[Label] = []
        self._numbers: dict[Label, int] = {}
        self._lock = threading.Lock()

    @cached_property
    def locations(self) -> frozenset[int]:
        """The threads of processes that have samples and not a single span."""
        rows = location_rows(self._trace)
        recorded = {row.process for row in rows if row.span_count}
        sampled = [bool(reader.tables().get("samples")) for reader in self._trace.readers]
        return frozenset(row.location for row in rows if row.process not in recorded and sampled[row.process])

    def label(self, region: int) -> Label:
        """Return what a number in the column `region` of boxes stands for."""
        return self.labels[region - len(self._trace.regions)]

    def _number(self, label: Label) -> int:
        with self._lock:
            number = self._numbers.setdefault(label, len(self.labels))
            if number == len(self.labels):
                self.labels.append(label)
        return number + len(self._trace.regions)

    def boxes(self, location: int) -> Boxes:
        """Return the boxes of a location."""
        rows = sample_rows(self._trace, location)
        start_ns = rows.time_ns - rows.period_ns
        # Of what overlaps, the sample before counts.
        start_ns[1:] = np.maximum(start_ns[1:], rows.time_ns[:-1])
        there = start_ns < rows.time_ns
        rows, start_ns = rows.chosen(there), start_ns[there]
        stacks, length, leaf, state = self._numbered(rows, self._trace.texts(self._trace.home(location).process))
        begins: Bools = np.append(True, start_ns[1:] > rows.time_ns[:-1])[: len(start_ns)]
        box_around = np.full(len(start_ns), -1, dtype=np.int64)
        parts: list[tuple[Ints, ...]] = []
        count = 0
        for depth in range(stacks.shape[1]):
            now = np.where(length == depth, state, stacks[:, depth])
            # What changes at one depth begins anew at all deeper ones.
            begins = begins | np.append(True, now[1:] != now[:-1])[: len(now)]
            first = np.flatnonzero(begins)
            samples = np.diff(np.append(first, len(now)))
            boxes = now[first] >= 0
            number = np.where(boxes, count + np.cumsum(boxes) - 1, -1)
            last = first + samples - 1
            columns = (start_ns[first], rows.time_ns[last], now[first], samples, box_around[first])
            parts.append((*(column[boxes] for column in columns), np.full(int(boxes.sum()), depth)))
            count, box_around = count + int(boxes.sum()), np.repeat(number, samples)
        return _in_order(parts, (start_ns, rows.time_ns, np.where(state >= 0, state, leaf)))

    def _numbered(self, rows: SampleRows, texts: Sequence[str]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return by sample the labels of its stack, outermost first, -1 behind it; its depth; the last label; that of
        its state, -1 where it ran Python and where that is not known.
        """
        used, stack_of = np.unique(rows.call_stack, return_inverse=True)
        found = [texts[number].split("\n") if 0 <= number < len(texts) else [] for number in used.tolist()]
        lengths = np.array([len(stack) for stack in found], dtype=np.int64)
        table = np.full((len(used), min(MOST_DEPTHS, int(lengths.max(initial=0))) + 1), -1, dtype=np.int64)
        leaves = np.full(len(used), -1, dtype=np.int64)
        for at, stack in enumerate(found):
            for depth, line in enumerate(stack[: table.shape[1] - 1]):
                table[at, depth] = self._number(_function(line))
            if stack:
                leaves[at] = self._number(_function(stack[-1]))
        states, state_of = np.unique(rows.state, return_inverse=True)
        named = [texts[number] if 0 <= number < len(texts) else "" for number in states.tolist()]
        looks = [self._number(Label(*look_of_state(name))) if name not in ("", "python") else -1 for name in named]
        return table[stack_of], lengths[stack_of], leaves[stack_of], np.array(looks, dtype=np.int64)[state_of]


def _function(line: str) -> Label:
    """Return the label of a line of a call stack."""
    name, file, number = frame_of(line)
    return Label(name, "host", file, number)


def _in_order(parts: Sequence[tuple[Ints, ...]], singles: tuple[Ints, Ints, Ints]) -> Boxes:
    """Return boxes, which come by depth, in order of start. `singles`: start, end and label of each sample."""
    start_ns, end_ns, region, samples, parent, depth = (np.concatenate(column) for column in zip(*parts, strict=True))
    own_ns = end_ns - start_ns
    add_at(own_ns, parent[parent >= 0], -(end_ns - start_ns)[parent >= 0])
    order = np.lexsort((depth, start_ns))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    spans = SpanArrays(
        row=np.arange(len(order), dtype=np.int64),
        start_ns=start_ns[order],
        duration_ns=(end_ns - start_ns)[order],
        self_ns=own_ns[order],
        region=region[order].astype(np.uint32),
        call_path=np.zeros(len(order), dtype=np.uint32),
        depth=depth[order].astype(np.uint32),
        parent=np.where(parent >= 0, place[parent], -1)[order],
        complete=np.ones(len(order), dtype=bool),
    )
    return Boxes(spans, samples[order], *singles)
