"""What the server keeps about a trace: names, bounds, steps, and the spans of recent questions."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from strobe.api.trace import Trace
from strobe.breakdown.step_phases import Phases, phases
from strobe.breakdown.step_spans import step_spans
from strobe.gpu.memory import allocator_curves, corners_of, steps_of
from strobe.gpu.memory_categories import CATEGORIES, category_levels
from strobe.gpu.stack_bands import bands_of
from strobe.model.kinds import CHILDREN_CPU, CORES, MACHINE_CORES
from strobe.present.summary import SOON_SPANS, Summary, summarise_part, written_summary
from strobe.server.pictures.cell_tiles import RegionNames
from strobe.server.recent import Recent
from strobe.server.run.series import Series
from strobe.server.run.step_list import OverSteps, StepList
from strobe.server.spans.sampled_stacks import Boxes, SampledStacks
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.iteration_stack.stack import Stack, build_stack
from strobe.steps.loops.structure import FlowDict, graph_dict, opened_graph
from strobe.steps.steps import choose_steps, find_steps
from strobe.steps.training_activities import PROFILER_STEP
from strobe.sums.path_statistics import merged_paths, one_for_each_name
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace import user_notes
from strobe.trace.archive import FileState, states
from strobe.trace.definition_rows import location_rows, path_tree, process_rows
from strobe.trace.derived.beginning_of_run import beginning_of
from strobe.trace.metrics.readings import Readings
from strobe.trace.spans import SpanArrays

# Whole locations kept decoded for search and statistics: 6 columns of 8 bytes each, so about 200 MB at the most.
_KEPT_SPANS = 4_000_000
# Changes that a picture of memory by category has.
_CATEGORY_CORNERS = 1 << 14
# Loop levels whose iterations somebody looked at instead of the steps.
_KEPT_LEVELS = 8
# Times of rows of tables in steps that are kept, 8 bytes each.
_KEPT_TIMES = 4_000_000
# Locations whose profiles are in memory at once: two numbers by region for each.
_PROFILED_AT_ONCE = 256


# A run that is being recorded is opened anew after this time: with the opening itself, no answer is a second behind.
_LASTS_S = 0.7
# Files of a trace that are made from the others, or that no measurement depends on.
_MADE = (".tiles", ".index", "summary.json", user_notes.FILE)


def _digest(files: Iterable[FileState]) -> str:
    """Return a text that changes when the state of a file does."""
    digest = hashlib.sha256(b"strobe-view-1")
    for name, size, changed_ns in files:
        digest.update(f"{name}\0{size}\0{changed_ns}\n".encode())
    return digest.hexdigest()[:16]


def state_of(path: Path) -> str:
    """Return a text that changes when a file does, or one of a folder that is not made from the others."""
    return _digest(file for file in states(path if path.is_dir() else path.parent) if _counts(path, file[0]))


def _counts(path: Path, name: str) -> bool:
    return not name.endswith(_MADE) if path.is_dir() else name == path.name


class OpenedFlow(FlowDict):
    """The flow graph of outermost operators and of what opened ones call. `holds`: names that can be opened."""

    holds: list[str]


class Chosen:
    """The steps that the page shows, and their iteration stack: of a trace, or of `part` of the `whole`."""

    def __init__(self, whole: Trace, trace: Trace, part: str, asked: Asked) -> None:
        self._whole, self._trace, self._part, self._asked = whole, trace, part, asked
        if asked:
            _ = self.steps  # raises if there are none

    @cached_property
    def steps(self) -> StepList:
        """The steps as a list."""
        return StepList(find_steps(self._trace, self._asked), self._part)

    @cached_property
    def stack(self) -> Stack:
        """The steps by position."""
        return build_stack(self._trace, asked=self._asked, bands=bands_of)

    @cached_property
    def trace(self) -> Trace:
        """The run, whose questions are answered with these steps."""
        if not self._asked:
            return self._trace
        trace = self._trace.without_results()
        choose_steps(trace, self._asked)
        return trace

    @cached_property
    def summary_json(self) -> str:
        """The summary of the run with these steps, as JSON text."""
        return summarise_part(self._whole, self.trace, self._part).to_json()


def _in_order(parts: Sequence[Readings]) -> tuple[Ints, Floats]:
    time_ns = np.concatenate([each.time_ns for each in parts])
    values = np.concatenate([each.values for each in parts])
    order = np.argsort(time_ns, kind="stable")
    return time_ns[order], values[order]


class TraceContext:
    """One trace, with what every answer needs, read once. Threads of the server share it."""

    def __init__(
        self,
        trace: Trace,
        path: Path,
        name: str = "",
        other: Callable[[str], Trace] | None = None,
    ) -> None:
        self.trace, self.path = trace, path
        self.name = name  # as addresses name this trace
        self.other = other or (lambda _: trace)  # opens one of these by its name
        self._spans = Recent[SpanArrays](_KEPT_SPANS)
        self._boxes = Recent[Boxes](_KEPT_SPANS)
        self.sampled = SampledStacks(trace)
        self._chosen = Recent[Chosen](_KEPT_LEVELS)
        self.over_steps = Recent[OverSteps](_KEPT_TIMES)  # by analysis and what its rows are
        self.tiles_found: set[bool] = set()  # by `of_rows`: see has_tiles
        self._opened_s = time.monotonic()

    @cached_property
    def _files(self) -> list[FileState]:
        # Of an import, those of its trace; of a trace made by hand, those of the folder that was named.
        return self.trace.file_states or (states(self.path) if self.path.is_dir() else [])

    @cached_property
    def version(self) -> str:
        """A text that changes when a file of the trace does: the base of every ETag.

        What is being recorded is in part in mapped memory, which changes no time of a file: it is one of each opening.
        """
        return _digest(self._files) + (f"|{self._opened_s}" if self.trace.info.running else "")

    @property
    def outdated(self) -> bool:
        """Whether the run is being recorded, and was opened a while ago: by now there is more of it."""
        return self.trace.info.running and time.monotonic() > self._opened_s + _LASTS_S

    @cached_property
    def notes_file(self) -> Path:
        """Where the notes of the run are."""
        return user_notes.notes_file(self.path)

    def noted(self) -> str:
        """Return a text that changes with the notes."""
        try:
            state = self.notes_file.stat()
        except OSError:
            return ""
        return f"{state.st_ino}-{state.st_mtime_ns}-{state.st_size}"

    @cached_property
    def recorded(self) -> str:
        """A text that changes with what answers are made from; "" while that is being recorded."""
        job = self.trace.job
        if not self.trace.path.is_dir() or ("ended_ns" not in job.ended and not job.imported):
            return ""
        groups = hashlib.sha256("\0".join(self.names.groups).encode()).hexdigest()  # by rules of the user
        lasting = _digest(file for file in self._files if not file[0].endswith(_MADE))
        return f"{self.trace.path.resolve()}|{lasting}|{groups}"

    @cached_property
    def regions(self) -> pa.Table:
        """The regions of the trace, row i being region i."""
        return self.trace.regions.to_arrow().sort_by("region")

    @cached_property
    def names(self) -> RegionNames:
        """Names and groups by region id, as plain lists: what palettes are made from."""
        return RegionNames(self.regions.column("name").to_pylist(), self.regions.column("group").to_pylist())

    @cached_property
    def lower_names(self) -> list[str]:
        """Names in lower case, for search."""
        return [name.lower() for name in self.names.names]

    def has_tiles(self, *, of_rows: bool) -> bool:
        """Return whether all tiles are there: else a picture builds some, which takes as long as reading the run.

        `of_rows`: also those of rows that stand for many ranks.
        """
        if of_rows not in self.tiles_found and self.trace.pyramid.has_tiles(of_rows=of_rows):
            self.tiles_found.add(of_rows)
        return of_rows in self.tiles_found

    @cached_property
    def span_counts(self) -> list[int]:
        """Spans in each location."""
        return [row.span_count for row in location_rows(self.trace)]

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Start and end of everything recorded, ns since the trace's zero."""
        processes, locations = process_rows(self.trace), location_rows(self.trace)
        starts = [*(each.started_ns for each in processes), *(each.first_ns for each in locations)]
        ends = [*(each.ended_ns for each in processes), *(each.last_ns for each in locations)]
        return max(0, min(starts, default=0)), max([1, *ends])

    def whole_location(self, location: int) -> SpanArrays:
        """All spans of a location, kept for the next question while there is room."""
        arrays = self._spans.get(location)
        if arrays is None:
            arrays = self.trace.span_arrays(location)
            # A location that is larger than the bound is kept alone.
            self._spans.put(location, arrays, min(len(arrays["start_ns"]), _KEPT_SPANS))
        return arrays

    def boxes(self, location: int) -> Boxes:
        """Return the boxes of a location of `sampled`, kept for the next question while there is room."""
        boxes = self._boxes.get(location)
        if boxes is None:
            boxes = self.sampled.boxes(location)
            self._boxes.put(location, boxes, len(boxes.samples) + len(boxes.innermost))
        return boxes

    def profiles(
        self, locations: Sequence[int], start_ns: int, end_ns: int
    ) -> Iterator[tuple[Sequence[int], Ints, Ints]]:
        """Yield some locations: by region, executions that begin in [start_ns, end_ns), and exclusive ns in it."""
        for first in range(0, len(locations), _PROFILED_AT_ONCE):
            some = locations[first : first + _PROFILED_AT_ONCE]
            yield some, *self.trace.pyramid.profile(some, start_ns, end_ns)

    @cached_property
    def call_path_arrays(self) -> tuple[Ints, Ints]:
        """Parent (-1 at the root) and last region of every call path."""
        return path_tree(self.trace)

    @cached_property
    def alike_regions(self) -> Ints:
        """Which region stands for each in a tree of calls: MPI functions and steps of PyTorch's profiler are merged."""
        stands, names = one_for_each_name(self.trace).copy(), self.names.names
        steps = [at for at, name in enumerate(names) if name.startswith(PROFILER_STEP)]
        stands[steps] = steps[:1] * len(steps)
        return stands

    @cached_property
    def alike_paths(self) -> Ints:
        """Which call path stands for each where regions do."""
        return merged_paths(*self.call_path_arrays, self.alike_regions)

    @cached_property
    def call_path_levels(self) -> list[Ints]:
        """The call paths by their depth, the deepest first: in this order sums climb to the roots."""
        parents, _ = self.call_path_arrays
        depth, above = np.zeros(len(parents), dtype=np.int64), parents.copy()
        climbing = np.flatnonzero(above >= 0)
        while len(climbing):
            depth[climbing] += 1
            above[climbing] = parents[above[climbing]]
            climbing = climbing[above[climbing] >= 0]
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[::-1]

    @cached_property
    def series(self) -> list[Series]:
        """Everything that was measured over time.

        But for CPU time of children, which counts at once when they end, and numbers of cores, which do not change.
        """
        parts: dict[tuple[str, str, int, int | None], list[Readings]] = {}
        for each in self.trace.readings():
            if each.metric in (CHILDREN_CPU, CORES, MACHINE_CORES):
                continue
            parts.setdefault((each.metric, each.unit, each.process, each.location), []).append(each)
        return [Series(*key, *_in_order(readings)) for key, readings in parts.items()] + self._allocated()

    def _allocated(self) -> list[Series]:
        """Memory in use over time by process and allocator, from profiles and CUPTI."""
        processes = process_rows(self.trace)
        found = []
        for curve in allocator_curves(self.trace):
            gpu = "" if curve.device is None else f"GPU {curve.device}: "
            who = "PyTorch" if curve.memory in ("GPU", "host") else curve.memory
            time_ns, allocated = steps_of(curve, processes[curve.process].ended_ns)
            values = allocated.astype(np.float64)
            found.append(Series(f"{gpu}allocated ({who})", "bytes", curve.process, None, time_ns, values))
        return found + self._by_category()

    def _by_category(self) -> list[Series]:
        """Memory in use over time by category, where blocks are known: all of a memory have the same times."""
        found = []
        for curve in allocator_curves(self.trace):
            shown = corners_of(curve, _CATEGORY_CORNERS)
            for category, level in (category_levels(self.trace, curve, shown) or {}).items():
                if curve.memory not in CATEGORIES:  # else it is among the curves
                    where = curve.memory if curve.device is None else f"GPU {curve.device}"
                    name = f"{where} memory: {category}"
                    values = level.astype(np.float64)
                    found.append(Series(name, "bytes", curve.process, None, curve.time_ns[shown], values))
        return found

    @cached_property
    def _beginning(self) -> tuple[Trace, str]:
        return beginning_of(self.trace, SOON_SPANS)

    @property
    def read(self) -> Trace:
        """What is read where a question would read all spans: the run, or the beginning of a long one.

        Its processes, locations, regions and call paths have the numbers that they have in the run.
        """
        return self._beginning[0]

    @property
    def read_part(self) -> str:
        """Which part of the run `read` is, in words; "" for all."""
        return self._beginning[1]

    @cached_property
    def _found(self) -> Chosen:
        return Chosen(self.trace, *self._beginning, Asked())

    @property
    def steps(self) -> StepList:
        """The steps that were found."""
        return self._found.steps

    def chosen(self, level: str = "") -> Chosen:
        """The steps that were found, or the iterations of another loop level, by its name (see strobe structure)."""
        if not level:
            return self._found
        chosen = self._chosen.get(level)
        if chosen is None:
            chosen = Chosen(self.trace, *self._beginning, Asked(level=level))
            self._chosen.put(level, chosen)
        return chosen

    @cached_property
    def structure_json(self) -> str:
        """Loops and flow graph as JSON text."""
        return self.read.structure().to_json()

    def flow(self, opened: frozenset[str]) -> OpenedFlow:
        """Return the flow graph of the outermost operators, and what `opened` ones called; `holds`: what can be opened.

        It is made from what is in detail.
        """
        graph, holds = opened_graph(self.read, self.read.structure(), opened)
        return {**graph_dict(graph), "holds": sorted(holds)}

    @cached_property
    def summary_json(self) -> str:
        """The summary as JSON text: the one that the end of the run wrote, where the trace has not changed since."""
        # Of what is being recorded, the folder that was named: it has a summary once the run is over.
        folder = self.trace.path if self.trace.path.is_dir() else self.path
        return written_summary(folder) or self.summary.to_json()

    @cached_property
    def summary(self) -> Summary:
        """The summary of what is read."""
        return summarise_part(self.trace, *self._beginning)

    @cached_property
    def step_phases(self) -> list[Phases]:
        """When the passes of the steps begin and end: what the step trace of the page is made of."""
        return phases(self.read, step_spans(self.read))

    def warm(self) -> None:
        """Read what the first picture needs, so that the page that opens next does not wait for it."""
        _ = (self.version, self.bounds, self.names, self.recorded, self.trace.info)
