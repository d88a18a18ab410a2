"""Export of call-tree profiles: the sums of each location by call path, from spans and statistics together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from strobe.sums.samples import RUNNING, frame_of, sample_sums
from strobe.trace.definition_rows import location_rows, path_tree, region_rows
from strobe.trace.trace import Trace


@dataclass(frozen=True)
class Frame:
    """A function: name, source file, first line (0 if unknown), module."""

    name: str
    file: str
    line: int
    module: str


@dataclass(frozen=True)
class PathTotal:
    """The sums of one call path in one location. `count`: executions. Nanoseconds; `own_ns` without callees."""

    path: int
    count: int
    total_ns: int
    own_ns: int


class Profile:
    """The call tree of a trace, and its totals by location."""

    def __init__(self, trace: Trace) -> None:
        from strobe.answers import sql  # an import looks at every format; only an export needs the analyses

        self.frames = [Frame(row.name, row.file or "", row.line or 0, row.module or "") for row in region_rows(trace)]
        parents, regions = path_tree(trace)
        self.parent: list[int] = parents.tolist()
        self.region: list[int] = regions.tolist()
        self.locations = [row.name for row in location_rows(trace)]
        columns = "location, call_path, count::bigint, total_ns::bigint, self_ns::bigint"
        rows = sql.query(trace, f"select {columns} from totals order by 1, 2").to_arrow()
        self._totals: dict[int, list[PathTotal]] = {}
        for location, path, count, total_ns, own_ns in zip(*(each.to_pylist() for each in rows.columns), strict=True):
            self._totals.setdefault(location, []).append(PathTotal(path, count, total_ns, own_ns))
        if "python" not in trace.regions.column("paradigm"):
            self._add_samples(trace)

    def _add_samples(self, trace: Trace) -> None:
        """Add what ran in samples, as call paths of their own: where Python calls were not recorded, they hold more.

        Only what ran: a thread that waits has its stack, too, and its time would hide everything else.
        """
        paths: dict[tuple[int, int], int] = {}
        frames: dict[str, int] = {}
        sums: dict[int, dict[int, list[int]]] = {}
        for each in sample_sums(trace):
            if each.state not in RUNNING:
                continue
            path, chain = -1, []
            for text in each.stack:
                if text not in frames:
                    frames[text] = len(self.frames)
                    self.frames.append(Frame(*frame_of(text), ""))
                key = (path, frames[text])
                if key not in paths:
                    paths[key] = len(self.parent)
                    self.parent.append(path)
                    self.region.append(frames[text])
                path = paths[key]
                chain.append(path)
            by_path = sums.setdefault(each.location, {})
            for at in chain:
                by_path.setdefault(at, [0, 0, 0])[1] += each.ran_ns
            by_path[path][0] += each.samples
            by_path[path][2] += each.ran_ns
        for location, by_path in sums.items():
            self._totals.setdefault(location, []).extend(PathTotal(at, *three) for at, three in by_path.items())

    def totals(self) -> Iterator[tuple[int, list[PathTotal]]]:
        """Yield the locations that anything ran in, with their totals."""
        yield from self._totals.items()

    def regions_of(self, path: int) -> list[int]:
        """Return the regions of a path, from the root."""
        found = []
        while path >= 0:
            found.append(self.region[path])
            path = self.parent[path]
        return found[::-1]

    def weighted(self, totals: list[PathTotal]) -> list[PathTotal]:
        """Return the totals that a format of stacks with weights needs: those with time of their own, and all leaves.

        The others follow from what they call.
        """
        inner = {self.parent[each.path] for each in totals}
        return [each for each in totals if each.own_ns or each.path not in inner]


def weight_is_time(trace: Trace) -> bool:
    """Whether the times of a trace are times: of a profile that counts samples or bytes they are not."""
    return not any(row["what"] == "weights_are_no_time" for row in trace.quality.to_pylist())
