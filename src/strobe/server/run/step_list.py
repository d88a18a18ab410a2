"""Steps for the page: as a table that a screen can draw, and the way from one to the next."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypedDict

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from strobe.model.kinds import HOST_KINDS
from strobe.model.schema import Column
from strobe.steps.process_steps import ProcessSteps, Steps
from strobe.steps.training_activities import PARTS
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.tables.table import arrow_schema
from strobe.trace.folded import DETAILS

COLUMNS = (
    Column("process", "uint32", "", "process whose step it is"),
    Column("step", "int64", "", "number of the step"),
    Column("start_ns", "int64", "ns", "when it starts"),
    Column("duration_ns", "int64", "ns", "how long it takes"),
    Column("class", "string", "", "its class"),
    Column("class_rank", "uint32", "", "place of its class by number of steps: 0 is the most frequent"),
    Column("outlier", "bool", "", "whether it takes much longer than its class usually does"),
    Column("warm_up", "bool", "", "whether it is one of the slow steps at the very beginning"),
    Column("cause", "string", "", "part that makes an outlier slow"),
    Column("count", "int64", "", "steps that the row stands for, itself among them"),
    Column("loop", "uint32", "", "number of the main loop that it is an iteration of"),
    Column("detail", "string", "", "which of its spans are in the trace: all, those of its end, none", values=DETAILS),
    *(Column(f"{part}_ns", "int64", "ns", f"time of its part {part}") for part in PARTS),
    *(
        Column(f"rest_{kind}_ns", "int64", "ns", f"of its part rest, time of the kind {kind}; 0 if steps have passes")
        for kind in HOST_KINDS
    ),
)
_PASSES = [PARTS.index(part) for part in ("forward", "backward", "optimizer", "validation")]
KINDS = ("at", "next", "previous", "outlier")


class ClassFacts(TypedDict):
    """A class of steps: its name, its place by number of steps, how many it has, and how many of them are outliers.

    `median_ns` is of its usual steps, as in the summary: neither outliers nor warm-up, where it has others.
    """

    name: str
    rank: int
    count: int
    median_ns: float
    outliers: int


StepPlace = TypedDict(
    "StepPlace",
    {"process": int, "step": int, "start_ns": int, "duration_ns": int, "class": str, "outlier": bool},
)
StepPlace.__doc__ = "Where a step is, and of which class."


class StepsAbout(TypedDict):
    """Facts about all steps, however few rows are sent.

    `kept`: steps in detail. `causes`: number of outliers by the part that makes them slow. `parts_ns`: sums of parts.
    `processes`: those that have steps. `typical`: up to three neighbours in detail, see `typical_rows`; none where no
    step qualifies. `worst`: the outlier that takes most time beyond the median of its class.
    """

    kept: int
    classes: list[ClassFacts]
    causes: dict[str, int]
    parts_ns: dict[str, int]
    processes: list[int]
    typical: list[StepPlace]
    worst: StepPlace | None


@dataclass(frozen=True)
class OverSteps:
    """Mean times of the rows of a table in a step (rows x bars, NaN where unknown), and which steps each bar is of."""

    first_step: Ints
    last_step: Ints
    in_detail: Ints
    mean_ns: Floats


def even_edges(count: int, most: int) -> Ints:
    """Split `count` things into at most `most` groups of neighbours: where each begins, and the end."""
    return np.linspace(0, count, min(count, most) + 1).astype(np.int64)


def shown_rows(duration_ns: Ints, outlier: Bools, edges: Ints) -> Ints:
    """Return which row is shown of those between edges: an outlier, else the longest."""
    weight = duration_ns + np.where(outlier, np.int64(2**62), 0)
    return np.array([low + int(weight[low:high].argmax()) for low, high in pairwise(edges.tolist())], dtype=np.int64)


def typical_rows(main: ProcessSteps) -> range:
    """Return three steps in detail that follow each other, nearest to three times the median of the usual steps.

    The usual ones are of the most frequent class, complete, and neither outliers nor part of the warm-up. Where no
    three of them follow each other, two or one; none where there are none.
    """
    usual = (main.class_names == Counter(main.classes).most_common(1)[0][0]) & main.steady & ~main.outlier
    shown = usual & main.kept
    for count in range(min(3, len(main)), 0, -1):
        first = np.flatnonzero(sliding_window_view(shown, count).all(axis=1))
        if len(first):
            length = main.end_ns[first + count - 1] - main.start_ns[first]
            at = int(first[np.abs(length - count * np.median(main.duration_ns[usual])).argmin()])
            return range(at, at + count)
    return range(0)


def _rest(main: ProcessSteps, rows: Ints) -> Ints:
    """Return what passes the rest of some steps: an array (rows, HOST_KINDS), as `strobe breakdown` divides it.

    All 0 where steps have passes of a training, of which the rest is what is left, and where kinds are not known.
    """
    if main.cells.columns is None or main.parts_ns[:, _PASSES].any():
        return np.zeros((len(rows), len(HOST_KINDS)), dtype=np.int64)
    kinds: Ints = main.cells.table()[rows, PARTS.index("rest")]
    return kinds


class StepList:
    """The steps of a process, in order of start; of the one that has most: what the page calls "the steps"."""

    def __init__(self, steps: Steps, part: str = "", process: int | None = None) -> None:
        self.reason = f"{steps.reason}; {part}" if part else steps.reason
        self._steps = steps
        self._most: ProcessSteps | None = max(steps.processes, key=len, default=None)
        own = (each for each in steps.processes if each.process == process)
        self._main = self._most if process is None else next(own, None)

    def of(self, process: int) -> StepList:
        """Return the steps of a process; there may be none."""
        return StepList(self._steps, process=process)

    def __len__(self) -> int:
        return len(self._main) if self._main else 0

    @cached_property
    def class_ranks(self) -> dict[str, int]:
        """Class name to its place by number of steps, 0 being the most frequent: one order for all processes."""
        counted = [Counter(each.classes) for each in (self._most, self._main) if each]
        names = dict.fromkeys(name for count in counted for name, _ in count.most_common())
        return {name: rank for rank, name in enumerate(names)}

    def table(self, limit: int) -> pa.Table:
        """Return at most `limit` rows. One for several steps (`count`) shows an outlier, else the longest."""
        main = self._main
        about = {"reason": self.reason, "steps": str(len(self)), "about": json.dumps(self.about)}
        if main is None:
            return arrow_schema(COLUMNS).empty_table().replace_schema_metadata(about)
        edges = even_edges(len(main), limit)
        rows = shown_rows(main.duration_ns, main.outlier, edges)
        names = [main.classes[row] for row in rows]
        columns: dict[str, object] = {
            "process": np.full(len(rows), main.process, dtype=np.uint32),
            "step": rows + main.first_number,
            **{name: vars(main)[name][rows] for name in ("start_ns", "duration_ns", "outlier", "warm_up")},
            "class": names,
            "class_rank": np.array([self.class_ranks[name] for name in names], dtype=np.uint32),
            "cause": [main.cause[row] for row in rows],
            "count": np.diff(edges),
            "loop": main.loop[rows].astype(np.uint32),
            "detail": [DETAILS[main.recorded.detail[row]] if main.recorded else "all" for row in rows],
            **{f"{name}_ns": main.parts_ns[rows, part] for part, name in enumerate(PARTS)},
            **{f"rest_{name}_ns": times for name, times in zip(HOST_KINDS, _rest(main, rows).T, strict=True)},
        }
        return pa.table(columns, schema=arrow_schema(COLUMNS)).replace_schema_metadata(about)

    @property
    def about(self) -> StepsAbout:
        """Facts about all steps."""
        main = self._main
        if main is None:
            nothing = dict.fromkeys(PARTS, 0)
            return {
                "kept": 0,
                "classes": [],
                "causes": {},
                "parts_ns": nothing,
                "processes": [],
                "typical": [],
                "worst": None,
            }
        names = main.class_names
        usual = main.steady & ~main.outlier

        def median_of(name: str) -> float:
            own = names == name
            return float(np.median(main.duration_ns[own & usual if (own & usual).any() else own]))

        classes: list[ClassFacts] = [
            {
                "name": name,
                "rank": rank,
                "count": int((names == name).sum()),
                "median_ns": median_of(name),
                "outliers": int(main.outlier[names == name].sum()),
            }
            for name, rank in self.class_ranks.items()
            if name in main.classes
        ]
        median = {each["name"]: each["median_ns"] for each in classes}
        beyond = np.where(main.outlier, main.duration_ns - np.array([median[name] for name in main.classes]), -1)
        causes = Counter(cause for cause, slow in zip(main.cause, main.outlier.tolist(), strict=True) if slow and cause)
        return {
            "kept": int(main.kept.sum()),
            "classes": classes,
            "causes": dict(causes.most_common()),
            "parts_ns": dict(zip(PARTS, main.parts_ns.sum(axis=0).tolist(), strict=True)),
            "processes": sorted(each.process for each in self._steps.processes if len(each)),
            "typical": [self._one(main, row) for row in typical_rows(main)],
            "worst": self._one(main, int(beyond.argmax())) if main.outlier.any() else None,
        }

    def near(self, time_ns: int, kind: str) -> StepPlace | None:
        """Return the step at a moment, the one after or before it, or the next outlier; None where there is none."""
        main = self._main
        if main is None:
            return None
        at = int(np.searchsorted(main.start_ns, time_ns, side="right")) - 1
        if kind == "at":
            inside = at >= 0 and time_ns < main.start_ns[at] + main.duration_ns[at]
            return self._one(main, at) if inside else None
        if kind == "outlier":
            rows = np.flatnonzero(main.outlier)
            # Past the last one it begins again: there is always a next.
            return self._one(main, int(np.append(rows[rows > at], rows)[0])) if len(rows) else None
        wanted = at + 1 if kind == "next" else at - 1
        return self._one(main, wanted) if 0 <= wanted < len(main) else None

    def numbers_at(self, times_ns: Ints) -> Ints:
        """Return the number of the step at each moment; -1 outside of all steps."""
        if self._main is None or not len(self._main):
            return np.full(len(times_ns), -1, dtype=np.int64)
        at = np.searchsorted(self._main.start_ns, times_ns, side="right") - 1
        inside = (at >= 0) & (times_ns < self._main.end_ns[at])
        return np.where(inside, at + self._main.first_number, -1)

    def at(self, process: int, time_ns: int) -> StepPlace | None:
        """Return the step of a process at a moment."""
        found = self.near(time_ns, "at")
        return found if found and found["process"] == process else None

    def _one(self, main: ProcessSteps, row: int) -> StepPlace:
        return {
            "process": main.process,
            "step": row + main.first_number,
            "start_ns": int(main.start_ns[row]),
            "duration_ns": int(main.duration_ns[row]),
            "class": main.classes[row],
            "outlier": bool(main.outlier[row]),
        }
