"""Steps for the page: as a table that a screen can draw, and the way from one to the next."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.structure.activities import PARTS
from strobe.structure.steps import ProcessSteps, Steps

KINDS = ("at", "next", "previous", "outlier")


class StepList:
    """The steps of the process that has most of them, as arrays in order of start: what the page calls "the steps"."""

    def __init__(self, steps: Steps) -> None:
        self.reason = steps.reason
        self._main: ProcessSteps | None = max(steps.processes, key=len, default=None)

    def __len__(self) -> int:
        return len(self._main) if self._main else 0

    @cached_property
    def class_ranks(self) -> dict[str, int]:
        """Class name to its place by number of steps, 0 being the most frequent."""
        counted = Counter(self._main.classes) if self._main else Counter[str]()
        return {name: rank for rank, (name, _) in enumerate(counted.most_common())}

    def table(self, limit: int) -> pa.Table:
        """Return at most `limit` rows. Where a row stands for several steps (`count`), it shows an outlier, else the longest."""
        main = self._main
        rows, counts = self._rows(limit)
        if main is None:
            main = ProcessSteps(0, *_nothing(), "none", self.reason)
        names = [main.classes[row] for row in rows]
        columns: dict[str, pa.Array] = {
            "process": pa.array(np.full(len(rows), main.process, dtype=np.uint32)),
            "step": pa.array(rows),
            "start_ns": pa.array(main.start_ns[rows]),
            "duration_ns": pa.array(main.duration_ns[rows]),
            "class": pa.array(names, pa.string()),
            "class_rank": pa.array([self.class_ranks[name] for name in names], pa.uint32()),
            "outlier": pa.array(main.outlier[rows]),
            "warm_up": pa.array(main.warm_up[rows]),
            "cause": pa.array([main.cause[row] for row in rows], pa.string()),
            "count": pa.array(counts),
        }
        for part, name in enumerate(PARTS):
            columns[f"{name}_ns"] = pa.array(main.parts_ns[rows, part])
        return pa.table(columns).replace_schema_metadata({"reason": self.reason, "steps": str(len(self))})

    def near(self, time_ns: int, kind: str) -> dict[str, Any] | None:
        """Return the step at a moment, the one after or before it, or the next outlier after it; None where there is none."""
        main = self._main
        if main is None:
            return None
        at = int(np.searchsorted(main.start_ns, time_ns, side="right")) - 1
        if kind == "at":
            inside = at >= 0 and time_ns < main.start_ns[at] + main.duration_ns[at]
            return self._one(at) if inside else None
        if kind == "outlier":
            after = np.flatnonzero(main.outlier[at + 1 :])
            # Past the last one it begins again: there is always a next.
            first = np.flatnonzero(main.outlier)
            if len(after):
                return self._one(at + 1 + int(after[0]))
            return self._one(int(first[0])) if len(first) else None
        wanted = at + 1 if kind == "next" else at - 1
        return self._one(wanted) if 0 <= wanted < len(main) else None

    def at(self, process: int, time_ns: int) -> dict[str, Any] | None:
        """Return the step of a process at a moment."""
        found = self.near(time_ns, "at")
        return found if found and found["process"] == process else None

    def _one(self, row: int) -> dict[str, Any]:
        assert self._main is not None
        return {
            "process": self._main.process,
            "step": row,
            "start_ns": int(self._main.start_ns[row]),
            "duration_ns": int(self._main.duration_ns[row]),
            "class": self._main.classes[row],
            "outlier": bool(self._main.outlier[row]),
        }

    def _rows(self, limit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        total = len(self)
        if self._main is None or total <= limit:
            return np.arange(total), np.ones(total, dtype=np.int64)
        edges = np.linspace(0, total, limit + 1).astype(np.int64)
        weight = self._main.duration_ns + np.where(self._main.outlier, np.int64(2**62), 0)
        rows = np.array([a + int(weight[a:b].argmax()) for a, b in zip(edges[:-1], edges[1:], strict=True)])
        return rows, np.diff(edges)


def _nothing() -> tuple[Any, ...]:
    none, no = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    return none, none, (), np.empty((0, len(PARTS)), dtype=np.int64), no, no, no, (), False
