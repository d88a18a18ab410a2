"""Folds hand-made processes as the recorder does: an independent twin, span by span.

full = HandMadeProcess({"main": train_steps(60)})
folded = FoldedProcess({"main": train_steps(60)}, iterations_of(full, since=12, keep={20, 40}))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strobe.steps.steps import find_steps
from strobe.steps.training_activities import PARTS
from tests.unit.hand_made import ZERO_NS, HandMadeProcess, Span, make_trace

NO_CLASS = 0xFFFFFFFF
NONE, PART, ALL = range(3)


@dataclass(frozen=True)
class Iteration:
    start_ns: int
    end_ns: int
    parts_ns: tuple[int, ...]
    class_name: str
    detail: int = NONE
    detail_ns: int = 0
    loop: int = 0
    cells: Mapping[int, int] = field(default_factory=dict)  # by part and kind; all else is of functions


@dataclass(frozen=True)
class OnlineLoop:
    kind: str = "optimizer"
    name: str = "Optimizer.step#SGD.step"
    accepted_iteration: int = 12
    reason: str = "found while the program ran"


def iterations_of(full: HandMadeProcess, *, since: int, keep: Collection[int]) -> list[Iteration]:
    """The records of all steps of a process from number `since` on; those of `keep` stay in detail."""
    steps = find_steps(make_trace(full)).processes[0]
    return [
        Iteration(
            int(steps.start_ns[i]),
            int(steps.start_ns[i] + steps.duration_ns[i]),
            tuple(steps.parts_ns[i].tolist()),
            steps.classes[i],
            ALL if i in keep else NONE,
            cells={number: int(values[i]) for number, values in steps.cells.columns.items()},
        )
        for i in range(since, len(steps))
    ]


class FoldedProcess(HandMadeProcess):
    """What the reader would say of a process whose recorder kept some iterations and folded the others.

    `extras`: by name of a class of iterations, the functions that make it; "" stands for a validation without one.
    """

    def __init__(
        self,
        threads: Mapping[str, Sequence[Span]],
        iterations: Sequence[Iteration],
        *,
        extras: Mapping[str, Sequence[str]] | None = None,
        loops: Sequence[OnlineLoop] = (OnlineLoop(),),
        gpu_lanes: Mapping[int, tuple[int, np.ndarray, Mapping[int, np.ndarray]]] | None = None,
        **options: object,
    ) -> None:
        super().__init__(threads, **options)
        self._iterations, self._online = list(iterations), list(loops)
        self._class_names = list(dict.fromkeys(each.class_name for each in iterations))
        self._extras, self._gpu_lanes = extras or {}, gpu_lanes or {}
        starts = [row[1] for row in self._spans[0]]
        self._events = [sum(each.start_ns <= start < each.end_ns for start in starts) for each in iterations]
        self._sums: dict[tuple[int, int, int], list[int]] = {}
        self._spans = [self._fold(location, rows) for location, rows in enumerate(self._spans)]

    def _class_of_folded(self, start_ns: int, end_ns: int) -> int | None:
        """Class of the iteration that a span is folded with, None if it stays."""
        for each in self._iterations:
            until = {NONE: each.end_ns, PART: each.detail_ns, ALL: each.start_ns}[each.detail]
            if each.start_ns <= start_ns and end_ns <= until:
                return self._class_names.index(each.class_name)
        return None

    def _fold(self, location, rows):
        of_class = [self._class_of_folded(row[1], row[1] + row[2]) for row in rows]
        for (_, _, duration, path, parent, own, _), folded in zip(rows, of_class, strict=True):
            if folded is None:
                continue
            self._sums.setdefault((location, path, folded), []).append((duration, own))
            if parent >= 0 and of_class[parent] is None:
                self._sums.setdefault((location, rows[parent][3], folded), []).append((None, -duration))
        number = {row[0]: i for i, row in enumerate(row for row, at in zip(rows, of_class, strict=True) if at is None)}
        stay = [row for row in rows if row[0] in number]
        inside = {row[0]: 0 for row in stay}
        for row in stay:
            if row[4] >= 0:
                inside[row[4]] += row[2]
        return [
            (number[row], start, duration, path, number.get(parent, -1), duration - inside[row], complete)
            for row, start, duration, path, parent, _, complete in stay
        ]

    def loops(self):
        of_loop = [[each for each in self._iterations if each.loop == i] for i in range(len(self._online))]
        return [
            {
                "loop": number,
                "kind": each.kind,
                "name": each.name,
                "accepted_ns": mine[0].start_ns + ZERO_NS,
                "accepted_iteration": each.accepted_iteration,
                "ended_ns": mine[-1].end_ns + ZERO_NS,
                "reason": each.reason,
                "confidence": "high",
            }
            for number, (each, mine) in enumerate(zip(self._online, of_loop, strict=True))
        ]

    def cells(self):
        numbers = {number for each in self._iterations for number in each.cells}
        return {number: np.array([each.cells.get(number, 0) for each in self._iterations]) for number in numbers}

    def gpu_lanes(self):
        return self._gpu_lanes

    def iterations(self):
        its = self._iterations
        column = {
            "loop": ([each.loop for each in its], np.uint32),
            "start_ns": ([each.start_ns + ZERO_NS for each in its], np.int64),
            "duration_ns": ([each.end_ns - each.start_ns for each in its], np.int64),
            "events": (self._events, np.uint32),
            "path_hash": ([2**63 + self._class_names.index(each.class_name) for each in its], np.uint64),
            "class_id": ([self._class_names.index(each.class_name) for each in its], np.uint32),
            "detail": ([each.detail for each in its], np.uint8),
            "detail_ns": ([each.detail_ns + ZERO_NS if each.detail == PART else 0 for each in its], np.int64),
            **{f"{name}_ns": ([each.parts_ns[i] for each in its], np.int64) for i, name in enumerate(PARTS)},
        }
        return {name: np.array(values, dtype=kind) for name, (values, kind) in column.items()}

    def classes(self):
        ids = {name: number for (name, _, _), number in self._regions.items()}
        assert not {0, 1} & {ids[each] for names in self._extras.values() for each in names if each}, "not of a program"
        return [[ids[each] if each else 0 for each in self._extras.get(name, ())] for name in self._class_names]

    def statistics(self):
        rows = []
        for (location, path, of_class), members in self._sums.items():
            durations = [duration for duration, _ in members if duration is not None]
            histogram = [0] * 64
            for duration in durations:
                histogram[int(np.floor(2 * np.log2(max(1, duration))))] += 1
            rows.append(
                (
                    location,
                    path,
                    of_class,
                    len(durations),
                    sum(durations),
                    sum(own for _, own in members),
                    min(durations, default=0),
                    max(durations, default=0),
                    float(sum(duration**2 for duration in durations)),
                    histogram,
                    False,
                )
            )
        kinds = (np.uint32, np.uint32, np.uint32, np.uint64, *(np.int64,) * 4, np.float64, np.uint32, np.uint8)
        names = super().statistics()
        return {
            name: np.array([row[i] for row in rows], dtype=kind) if rows else names[name]
            for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
        }


def part_of(each: Iteration, detail_ns: int) -> Iteration:
    """The same iteration, of which only what ran from a moment on was kept."""
    return replace(each, detail=PART, detail_ns=detail_ns)
