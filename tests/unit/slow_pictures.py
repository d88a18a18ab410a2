"""Pictures of a location computed the slow and obvious way from its spans: what the pyramid is held to."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from strobe.api.trace import Trace
from strobe.model.kinds import GROUPS
from strobe.trace.processes.process_reader import GAP, NO_REGION

Array = npt.NDArray[np.float64]


class SlowLocation:
    """One location: its stretches, which of them are exceptional, and the own time of each region up to any moment."""

    def __init__(self, trace: Trace, location: int) -> None:
        spans = trace.spans(location).to_arrow().to_pylist()
        names = {row["region"]: row["group"] for row in trace.regions.to_pylist()}
        self.process_ended_ns = trace.processes.to_pylist()[trace.locations.to_pylist()[location]["process"]][
            "ended_ns"
        ]
        self.regions = len(names)
        self.group = [GROUPS.index(names[region]) for region in range(len(names))]
        self.starts = sorted((span["start_ns"], span["region"]) for span in spans)
        inside = defaultdict(list)
        for span in spans:
            inside[span["parent"]].append(span)
        self.stretches: list[tuple[int, int, int]] = []
        for span in spans:
            at = span["start_ns"]
            for child in inside[span["row"]]:
                self._stretch(at, child["start_ns"], span["region"])
                at = child["start_ns"] + child["duration_ns"]
            self._stretch(at, span["start_ns"] + span["duration_ns"], span["region"])
        roots = inside[None]
        for before, after in pairwise(roots):
            self._stretch(before["start_ns"] + before["duration_ns"], after["start_ns"], GAP)
        self.stretches.sort()
        self._lengths: defaultdict[int, list[int]] = defaultdict(list)
        for start, end, region in self.stretches:
            drop = max(0, (end - start).bit_length() - 5)  # five significant bits stay
            self._lengths[region].append(end - start >> drop << drop)
        self._thresholds: dict[int, float] = {}
        self.filled: dict[int, tuple[Array, Array]] = {}  # by region: moments, and its own time up to each
        for region in range(self.regions):
            own = [(start, end) for start, end, of in self.stretches if of == region]
            if own:
                lengths = np.cumsum([[0, end - start] for start, end in own], dtype=float)
                self.filled[region] = np.array(own, dtype=float).ravel(), lengths
        self.exceptional = [each for each in self.stretches if each[1] - each[0] >= self._threshold(each[2])]

    def _stretch(self, start: int, end: int, region: int) -> None:
        if end > start:
            self.stretches.append((start, end, region))

    def _threshold(self, region: int) -> float:
        """The rule as native/kernels/pyramid/exceptional.h has it."""
        if region not in self._thresholds:
            lengths = self._lengths[region]
            if region != GAP and len(lengths) < 16:
                lengths = [ns for of, found in self._lengths.items() if of != GAP for ns in found]
            longest = sorted(lengths, reverse=True)
            n = len(longest)
            usual = max(16 * sorted(lengths)[(n - 1) // 2], 2 * longest[n // 256 + 1]) if n >= 16 else np.inf
            self._thresholds[region] = usual
        return self._thresholds[region]

    def own_ns(self, edges: npt.NDArray[np.int64]) -> Array:
        """Own time of every region between edges: (regions, pixels). Exact, as a double holds whole nanoseconds."""
        found = np.zeros((self.regions, len(edges) - 1))
        for region, (times, filled) in self.filled.items():
            found[region] = np.diff(np.interp(edges.astype(float), times, filled, left=0, right=filled[-1]))
        return found

    def shares(self, edges: npt.NDArray[np.int64]) -> Array:
        """What the groups fill between edges, in 255ths and not rounded: (pixels, groups)."""
        own, found = self.own_ns(edges), np.zeros((len(edges) - 1, len(GROUPS)))
        for region, group in enumerate(self.group):
            found[:, group] += own[region]
        return 255 * found / np.diff(edges)[:, None]

    def marks(self, edges: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Region of the longest exceptional stretch between edges (the earlier of equal ones), and how long it is."""
        found, longest = np.full(len(edges) - 1, NO_REGION), np.zeros(len(edges) - 1, dtype=np.int64)
        for start, end, region in self.exceptional:
            better = (edges[1:] > start) & (edges[:-1] < end) & (end - start > longest)
            found[better], longest[better] = region, end - start
        return found, longest

    def profile(self, start_ns: int, end_ns: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Executions that begin in a window, and own time in it, by region."""
        begun = [region for start, region in self.starts if start_ns <= start < end_ns]
        count = np.bincount(np.array(begun, dtype=np.int64), minlength=self.regions)
        return count, self.own_ns(np.array([start_ns, end_ns]))[:, 0].astype(np.int64)
