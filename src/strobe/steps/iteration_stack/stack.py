"""Iteration stack: every step as a row, every position of the usual path as a column; what differs stands out at once.

    stack = trace.stack()                 # of the process with most steps
    stack.to_numpy("gap")                 # ns before each position: (steps, positions), NaN where absent
    stack.outliers()                      # the cells that stand out, the costliest first

A *position* is one of the outermost events of the path that most steps take, counted from the step's cut. Functions are
looked into where that shows where their time goes, so that the events are operators, waits, kernels of a solver. Each
column is compared with its own median: absolute times would only show which operators are long.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.model.schema import Column
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.finding.step_classes import PARTIAL
from strobe.steps.iteration_stack.alignment import Aligned, align_steps
from strobe.steps.process_steps import ProcessSteps, unknown_class
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints, Stream, occurrences_in_groups, read_streams
from strobe.steps.training_activities import REST
from strobe.tables.column_arrays import Columns
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

Floats = npt.NDArray[np.float32]

METRICS = ("duration", "gap")
MAIN_BAND = "main thread"
# From starts and ends of steps, and which of them are usual, to what happened in them.
Align = Callable[[Ints, Ints, Bools], Aligned]
# From a trace, a process and the spans of its main thread to what aligns each band beside that, by its name.
Bands = Callable[[Trace, int, Stream], Mapping[str, Align]]
END = "end of the step"
# More steps than this are thinned out evenly; outliers stay. So are those of more events in all.
MOST_ROWS = 20_000
MOST_EVENTS = 20_000_000
# A gap is compared with its median only after this share of a usual step was added to both: 3 us instead of 1 us
# are noise where a step takes 50 ms.
GAP_FLOOR = 0.001
LEAST_GAP_FLOOR_NS = 1000.0
# What stands out: so many robust standard deviations above the median of the column (the median absolute deviation
# times 1.4826), and by so much of a usual step that it is worth a look.
DEVIATIONS = 6.0
LEAST_EXCESS = 0.05

_OUTLIER_COLUMNS = (
    Column("step", "int64", "", "number of the step"),
    Column("position", "int64", "", "column of the stack, counted from 0"),
    Column("name", "string", "", "region at this position; the gap is before it"),
    Column("metric", "string", "", "duration or gap"),
    Column("value_ns", "int64", "ns", "how long it took"),
    Column("median_ns", "int64", "ns", "how long it usually takes: the median over all steps"),
    Column("excess_ns", "int64", "ns", "by how much it is longer than usual"),
    Column("deviations", "float64", "", "the same in robust standard deviations of the position"),
    Column("class", "string", "", "class of the step"),
    Column("start_ns", "int64", "ns", "where it begins, since the trace's zero"),
)


@dataclass(frozen=True)
class Extras(Columns):
    """Events that have no position in the usual path: `row` of the stack, region, time, and what follows them."""

    row: Ints
    region: Ints
    start_ns: Ints
    duration_ns: Ints
    gap_ns: Ints
    before: Ints  # the position that comes next


@dataclass(frozen=True)
class PathDifferences:
    """How the paths of the steps differ: the share of cells that are filled, and how many steps take the usual path.

    paths: different ones. absent, extra: names that most steps lack, or have in addition, and how many steps.
    """

    aligned: float
    usual_steps: int
    paths: int
    absent: tuple[tuple[str, int], ...]
    extra: tuple[tuple[str, int], ...]


def _most(steps: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(steps.items(), key=lambda each: -each[1])[:3])


def _no_numbers() -> Ints:
    return np.empty(0, dtype=np.int64)


def _no_times() -> Floats:
    return np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Steps x positions of one process. Rows are the steps with detail, in order of time.

    step, start_ns, step_ns, classes, outlier: of each row. path: which sequence of events the step has, 0 being the
    usual one, numbered by how many steps share it. names: of the positions; the last, `end of the step`, has a gap
    only. regions, parts, modules, bands: of the positions, numbers of regions (-1 for the last), of PARTS, and of
    regions again (-1: in no module); and what they are of: the main thread, another one, a GPU. durations_ns, gaps_ns:
    float32 arrays (rows, positions), NaN where a step lacks a position. offsets_ns: where it begins, since the step's
    start. folded: steps without a row, because only statistics of them were kept; thinned: those left out because
    there are too many. metric: what `to_numpy` and `values` return by default.
    """

    process: int = 0
    metric: str
    step: Ints = field(default_factory=_no_numbers)
    start_ns: Ints = field(default_factory=_no_numbers)
    step_ns: Ints = field(default_factory=_no_numbers)
    classes: tuple[str, ...] = ()
    outlier: Bools = field(default_factory=lambda: np.empty(0, dtype=bool))
    path: Ints = field(default_factory=_no_numbers)
    regions: Ints = field(default_factory=_no_numbers)
    parts: Ints = field(default_factory=_no_numbers)
    modules: Ints = field(default_factory=_no_numbers)
    bands: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    region_names: Sequence[str] = ()
    durations_ns: Floats = field(default_factory=_no_times)
    gaps_ns: Floats = field(default_factory=_no_times)
    offsets_ns: Floats = field(default_factory=_no_times)
    extras: Extras = field(default_factory=lambda: Extras.joined(()))
    folded: int = 0
    thinned: int = 0
    reason: str

    def __len__(self) -> int:
        return len(self.step)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and positions."""
        return len(self.step), len(self.names)

    @cached_property
    def medians_ns(self) -> dict[str, Floats]:
        """Median of each position over all rows that have it, by metric; NaN where none has."""
        return {metric: _medians(self._of(metric)) for metric in METRICS}

    @cached_property
    def extra_counts(self) -> Ints:
        """Events of each row that the usual path does not have."""
        return np.bincount(self.extras.row, minlength=len(self)).astype(np.int64)

    @cached_property
    def floor_ns(self) -> float:
        """What is added to gaps before they are compared."""
        usual_ns = float(np.median(self.step_ns)) if len(self) else 0.0
        return max(LEAST_GAP_FLOOR_NS, GAP_FLOOR * usual_ns)

    def to_numpy(self, metric: str | None = None) -> Floats:
        """Return durations or gaps in nanoseconds as an array (rows, positions), NaN where a step lacks a position."""
        return self._of(metric or self.metric)

    def values(self, metric: str | None = None, columns: Ints | None = None) -> Floats:
        """Return log2(value / median of its position): 1 is twice as long as usual, NaN absent.

        For gaps a small constant, `floor_ns`, is added to both. Positions from one of `columns` (which begin with 0) up
        to the next are summed up first.
        """
        metric = metric or self.metric
        floor = np.float32(self.floor_ns if metric == "gap" else 0.5)
        values, medians = self._of(metric), self.medians_ns[metric]
        if columns is not None and len(columns) < len(medians):
            absent = np.logical_and.reduceat(np.isnan(values), columns, axis=1)
            values = np.where(absent, np.float32(np.nan), np.add.reduceat(np.nan_to_num(values), columns, axis=1))
            medians = _medians(values)
        with np.errstate(invalid="ignore"):
            relative: Floats = np.log2((values + floor) / (medians + floor))
        return relative

    def path_differences(self) -> PathDifferences:
        """Return how the paths of steps differ from the usual one."""
        present = ~np.isnan(self.durations_ns[:, :-1])
        absent = Counter[str]()
        for region in np.unique(self.regions[:-1]).tolist():
            rows = int((~present[:, self.regions[:-1] == region]).any(axis=1).sum())
            absent[self.region_names[region]] += rows
        extra, rows_with = occurrences_in_groups(self.extras.region, self.extras.row)
        return PathDifferences(
            aligned=float(present.mean()) if present.size else 1.0,
            usual_steps=int((self.path == 0).sum()),
            paths=len(np.unique(self.path)),
            absent=_most({name: rows for name, rows in absent.items() if rows}),
            extra=_most({self.region_names[at]: n for at, n in zip(extra.tolist(), rows_with.tolist(), strict=True)}),
        )

    def outliers(self, *, least_share: float = LEAST_EXCESS) -> Table:
        """Return the cells, of both metrics, that take much longer than usual, the costliest first.

        A cell stands out that exceeds the median of its position by 6 robust standard deviations (1.4826 times the
        median absolute deviation) and by `least_share` of a usual step.
        """
        usual_ns = float(np.median(self.step_ns)) if len(self) else 0.0
        found: list[tuple[int, int, str, str, int, int, int, float, str, int]] = []
        for metric in METRICS:
            values = self._of(metric)
            excess = values - self.medians_ns[metric]
            spread = 1.4826 * np.maximum(_medians(np.abs(excess)), self.floor_ns / 10)
            with np.errstate(invalid="ignore"):
                deviations = excess / spread
                cells = np.argwhere((deviations >= DEVIATIONS) & (excess >= least_share * usual_ns))
            for row, position in cells.tolist():
                value, begin = values[row, position], float(self.offsets_ns[row, position])
                start = self.start_ns[row] + begin - (value if metric == "gap" else 0)
                times = (int(value), int(value - excess[row, position]), int(excess[row, position]))
                more = (float(deviations[row, position]), self.classes[row], int(start))
                found.append((int(self.step[row]), position, self.names[position], metric, *times, *more))
        found.sort(key=lambda cell: -cell[6])  # by excess
        note = "" if found or not len(self) else "no cell stands out"
        return make_table(_OUTLIER_COLUMNS, found, name="stack", about=self.reason, note=note, shows=20)

    def to_json(self) -> str:
        """Return positions, rows and the two matrices (whole nanoseconds, null where absent) as JSON text."""
        whole = {metric: np.rint(np.nan_to_num(self._of(metric), nan=-1)).astype(np.int64) for metric in METRICS}
        matrices = {m: [[None if v < 0 else v for v in row] for row in a.tolist()] for m, a in whole.items()}
        body = {
            "process": self.process,
            "reason": self.reason,
            "positions": list(self.names),
            "steps": self.step.tolist(),
            "start_ns": self.start_ns.tolist(),
            "step_ns": self.step_ns.tolist(),
            "class": list(self.classes),
            "path": self.path.tolist(),
            "extra": self.extra_counts.tolist(),
            "folded": self.folded,
            **{f"{metric}_ns": matrix for metric, matrix in matrices.items()},
        }
        return json.dumps(body, allow_nan=False)

    def __repr__(self) -> str:
        return f"<strobe.Stack of process {self.process}: {self.shape[0]} steps x {self.shape[1]} positions>"

    def _of(self, metric: str) -> Floats:
        if metric not in METRICS:
            raise UsageError(f"no metric '{metric}' in a stack", do=f"Metrics: {', '.join(METRICS)}")
        return self.durations_ns if metric == "duration" else self.gaps_ns


def build_stack(
    trace: Trace,
    metric: str = "duration",
    *,
    process: int | None = None,
    class_name: str | None = None,
    asked: Asked | None = None,
    bands: Bands | None = None,
) -> Stack:
    """Stack up the steps of a process (the one with most of them), or only those of a class. Computed once per trace.

    `asked`: what a step is, as for `find_steps`. `bands`: what else has positions beside the main thread. Raises
    UsageError for an unknown metric, process, or class.
    """
    if metric not in METRICS:
        raise UsageError(f"no metric '{metric}' in a stack", do=f"Metrics: {', '.join(METRICS)}")
    return _build(trace, metric, process, class_name, asked, bands)


@cached_on_trace
def _build(
    trace: Trace,
    metric: str,
    process: int | None,
    class_name: str | None,
    asked: Asked | None,
    bands: Bands | None,
) -> Stack:
    found = find_steps(trace, asked)
    having = [each for each in found.processes if process is None or each.process == process]
    if process is not None and not having:
        known = ", ".join(str(each.process) for each in found.processes) or "none"
        raise UsageError(f"process {process} has no steps", do=f"Processes with steps: {known}")
    if not having:
        return Stack(metric=metric, reason=found.reason)
    steps = max(having, key=len)
    stream = next(stream for number, stream in read_streams(trace) if number == steps.process)
    others = bands(trace, steps.process, stream) if bands else {}
    return stack_of(stream, steps, metric, class_name, others)


def stack_of(
    stream: Stream,
    steps: ProcessSteps,
    metric: str = "duration",
    class_name: str | None = None,
    others: Mapping[str, Align] | None = None,
) -> Stack:
    """Stack up the steps of one thread.

    `others` align what else happened in these steps: bands of positions of their own, by their names.
    """
    chosen = _chosen(steps, class_name)
    # A step of which only the end was kept lacks positions that the program did not: it can be compared with nothing.
    rows = chosen[steps.kept[chosen]]
    many, rows = len(rows), _thinned(steps, rows, len(stream) // max(1, len(steps)))
    times = steps.start_ns[rows], steps.end_ns[rows], _usual(steps, rows)
    aligned = align_steps(stream, *times)
    bands = {MAIN_BAND: aligned, **{name: align(*times) for name, align in (others or {}).items()}}
    bands = {name: band for name, band in bands.items() if len(band.regions) or name == MAIN_BAND}
    first = dict(zip(bands, np.cumsum([0, *(len(band.regions) for band in bands.values())]).tolist(), strict=False))
    detailed = aligned.path >= 0
    kept = rows[detailed]
    line = np.where(detailed, np.cumsum(detailed) - 1, -1)  # row of the stack, by number in `rows`
    positions = sum(len(band.regions) for band in bands.values())
    durations, gaps, offsets = (np.full((len(kept), positions + 1), np.nan, np.float32) for _ in range(3))
    for name, band in bands.items():
        placed = (band.position >= 0) & detailed[band.step]
        cells = line[band.step[placed]], band.position[placed] + first[name]
        durations[cells], gaps[cells] = band.duration_ns[placed], band.gap_ns[placed]
        offsets[cells] = (band.start_ns - steps.start_ns[rows][band.step])[placed]
    gaps[:, -1], offsets[:, -1] = aligned.tail_ns[detailed], steps.duration_ns[kept]
    regions, parts, modules = (
        np.concatenate([vars(band)[each] for band in bands.values()]) for each in ("regions", "parts", "modules")
    )
    return Stack(
        process=steps.process,
        metric=metric,
        step=kept + steps.first_number,
        start_ns=steps.start_ns[kept],
        step_ns=steps.duration_ns[kept],
        classes=tuple(steps.classes[row] for row in kept.tolist()),
        outlier=steps.outlier[kept],
        path=aligned.path[detailed],
        regions=np.append(regions, -1),
        parts=np.append(parts, REST),
        modules=np.append(modules, -1),
        bands=(*(name for name, band in bands.items() for _ in band.regions), MAIN_BAND),
        names=(*(stream.names[region] for region in regions.tolist()), END),
        region_names=stream.names,
        durations_ns=durations,
        gaps_ns=gaps,
        offsets_ns=offsets,
        extras=_extras(aligned, line, positions),
        folded=len(chosen) - many + len(rows) - len(kept),
        thinned=many - len(rows),
        reason=f"{steps.confidence}: {steps.reason}",
    )


def _chosen(steps: ProcessSteps, class_name: str | None) -> Ints:
    """Numbers of the steps of a class, or of all."""
    if class_name is None:
        return np.arange(len(steps))
    chosen = np.flatnonzero([name == class_name for name in steps.classes])
    if not len(chosen):
        raise unknown_class(class_name, [steps])
    return chosen


def _thinned(steps: ProcessSteps, rows: Ints, events_a_step: int) -> Ints:
    """Every nth of too many steps, and all outliers as long as there is room."""
    most = max(100, min(MOST_ROWS, MOST_EVENTS // max(1, events_a_step)))
    if len(rows) <= most:
        return rows
    slow = rows[steps.outlier[rows]][: most // 2]
    others = rows[np.linspace(0, len(rows) - 1, most - len(slow)).astype(np.int64)]
    return np.union1d(slow, others)


def _usual(steps: ProcessSteps, rows: Ints) -> Bools:
    """Which rows may define the usual path: those of the most frequent class, but no warm-up and no outliers."""
    classes = steps.class_names[rows]
    most = Counter(name for name in classes.tolist() if name != PARTIAL).most_common(1)
    usual: Bools = (classes == most[0][0]) if most else np.ones(len(rows), dtype=bool)
    calm = usual & ~steps.warm_up[rows] & ~steps.outlier[rows]
    return calm if calm.any() else usual


def _extras(aligned: Aligned, line: Ints, end: int) -> Extras:
    """The events without a position, and the position that follows each; `end` is that of the end of the step."""
    last = len(aligned.regions)
    following = np.where(aligned.position >= 0, aligned.position, last)
    # Positions rise within a step: the smallest of those that come later in it is the next one.
    ahead = following + aligned.step * (last + 1)
    ahead = np.minimum.accumulate(ahead[::-1])[::-1]
    before = np.minimum(ahead - aligned.step * (last + 1), last)
    before = np.where(before == last, end, before)
    extra = np.flatnonzero(aligned.position < 0)
    return Extras(
        row=line[aligned.step[extra]],
        **{name: vars(aligned)[name][extra] for name in ("region", "start_ns", "duration_ns", "gap_ns")},
        before=before[extra],
    )


def _medians(values: Floats) -> Floats:
    """Median of each column over the values that are there, NaN where none is."""
    rows, columns = values.shape
    if not rows:
        return np.full(columns, np.nan, dtype=np.float32)
    ordered = np.sort(values, axis=0)  # NaN comes last
    count = rows - np.isnan(values).sum(axis=0)
    column = np.arange(columns)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, rows - 1)
    medians: Floats = (ordered[low, column] + ordered[high, column]) / np.float32(2)
    return medians
