"""Sums by call path and by any other key, over spans and over the statistics of what was folded.

Array code: one pass over each location, no Python per span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strobe.model.kinds import RANK_PARADIGMS
from strobe.steps.selection import Selection
from strobe.steps.step_times import known_steps
from strobe.steps.thread_spans import main_location
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.definition_rows import Region, location_rows, path_tree
from strobe.trace.folded import ALL, PART, Folded, bucket_edges_ns
from strobe.trace.spans import PathSums, chosen_spans
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace
from strobe.workers.map_combine import Join, MapCombine, Tables, Workers, over_processes

_JOINS = {
    **dict.fromkeys(("calls", "total_ns", "own_ns"), np.add),
    "min_ns": np.minimum,
    "max_ns": np.maximum,
}
# A function calls another one for so much of its time.
_ONE_CALLER = 0.9
# Parts of the names of files, or of the frames of a stack, that are not the program's own.
OF_LIBRARIES = ("<frozen ", "/lib/python3", "/site-packages/", "/dist-packages/", "/strobe/record/")
_AT_A_TIME = 2  # pieces of work that are done at the same time
_SPANS_OF_PIECE = 200_000  # locations with fewer are read together


@dataclass(frozen=True)
class PathStatistics:
    """Per call path: executions, and ns in all of them (`total`), without their children (`own`), shortest, longest.

    `outermost` is false for a path that holds its last region twice: a sum of `total` over regions must leave it out,
    or recursion would count twice.
    """

    calls: Ints
    total_ns: Ints
    own_ns: Ints
    min_ns: Ints
    max_ns: Ints
    parent: Ints  # -1 at the root
    region: Ints
    outermost: Bools


def path_statistics(trace: Trace, selection: Selection) -> PathStatistics:
    """Sum up by call path what was selected in all locations: spans, and the statistics of what was folded."""
    tasks = all(location["kind"] == "task" for location in trace.definitions.locations)
    # Spans are read by native code without the GIL: threads do what a pool of processes would, which must start first.
    threads = trace.workers.threads if isinstance(trace.workers, Workers) else _AT_A_TIME
    if threads:
        rows = _path_sums(trace, selection, tasks, threads)["rows"]
    else:
        rows = over_processes(trace, _PATH_SUMS, selection=selection, tasks=tasks)["rows"]
    return _statistics(trace, rows)


def _statistics(trace: Trace, rows: pa.Table) -> PathStatistics:
    parent, region = path_tree(trace)
    at = rows.column("call_path").to_numpy()
    columns = {name: np.zeros(len(region), dtype=np.int64) for name in _JOINS}
    for name, column in columns.items():
        column[at] = rows.column(name).to_numpy()
    columns["min_ns"][columns["calls"] == 0] = 0
    return PathStatistics(**columns, parent=parent, region=region, outermost=outermost(parent, region))


def is_own_function(region: Region) -> bool:
    """Whether it is a function of the program itself. Profiles of PyTorch name its files without their folder."""
    of_library = (
        region.file.startswith("torch/")
        or region.name.startswith("<built-in")
        or any(part in region.file for part in OF_LIBRARIES)
    )
    return (region.paradigm, region.role) == ("python", "function") and not of_library


def _is_caller(region: Region) -> bool:
    return is_own_function(region) and not region.name.startswith("nn.Module: ")  # whose place is not known


def caller_of(sums: PathStatistics, regions: Sequence[Region], region_of_call: Ints, region: int) -> str:
    """Return the program's own function that calls another one for nearly all of the time of that, with its place.

    region_of_call: by call path, the region that its last call counts as. "" where there is none, or several.
    """
    own_ns = Counter[int]()
    for path in np.flatnonzero((region_of_call == region) & (sums.own_ns > 0)).tolist():
        above = int(sums.parent[path])
        while above >= 0 and not _is_caller(regions[int(sums.region[above])]):
            above = int(sums.parent[above])
        own_ns[int(sums.region[above]) if above >= 0 else -1] += int(sums.own_ns[path])
    (caller, ns), *_ = own_ns.most_common(1) or [(-1, 0)]
    if caller < 0 or caller == region or ns < _ONE_CALLER * own_ns.total() or regions[caller].name == "<module>":
        return ""
    return f"{regions[caller].name} ({PurePath(regions[caller].file).name}:{regions[caller].line})"


def location_statistics(trace: Trace, selection: Selection, location: int) -> PathStatistics:
    """Sum up by call path what was selected in one location."""
    return _statistics(trace, _path_sums(trace, selection, tasks=True, only=location)["rows"])


def process_sums(trace: Trace, selection: Selection) -> Mapping[str, pa.Table]:
    """Sum up what was selected by process.

    `rows`: process, call path and its time without children in all threads and streams, ns. `outside`: process, and the
    time of its main thread outside of all recorded calls.
    """
    return over_processes(trace, _PROCESS_SUMS, known=known_steps(trace), selection=selection)


def _process_sums(part: Trace, selection: Selection) -> dict[str, pa.Table]:
    rows = _path_sums(part, selection, tasks=False)["rows"].select(["call_path", "own_ns"])
    main = main_location(part, 0)
    inside, elapsed = 0, 0
    if main is not None:
        inside = pc.sum(_path_sums(part, selection, tasks=True, only=main)["rows"].column("own_ns")).as_py() or 0
        facts = location_rows(part)[main]
        begin, end = selection.stretches(main) or (np.array([facts.first_ns]), np.array([facts.last_ns]))
        elapsed = int((end - begin).sum())
    return {
        "rows": rows.append_column("process", pa.array(np.zeros(len(rows), dtype=np.int64))),
        "outside": pa.table({"process": [0], "own_ns": [max(0, elapsed - inside)]}),
    }


_PROCESS_SUMS = MapCombine(_process_sums, Tables({"rows": Join(), "outside": Join()}))


def _path_sums(
    part: Trace, selection: Selection, tasks: bool, threads: int = _AT_A_TIME, only: int | None = None
) -> dict[str, pa.Table]:
    """Return a row for each call path that was selected. `tasks`: whether those are the program's time."""
    count = len(part.call_paths)
    columns = {name: np.zeros(count, dtype=np.int64) for name in _JOINS}
    columns["min_ns"][:] = np.iinfo(np.int64).max
    touched = np.zeros(count, dtype=bool)
    # Tasks (a profiler's row, asynchronous work) are the program's time only if there is nothing else.
    counts = np.array([tasks or location["kind"] != "task" for location in part.definitions.locations], dtype=bool)
    if only is not None:
        counts &= np.arange(len(counts)) == only
    for sums in _sums_of_spans(part, selection, np.flatnonzero(counts).tolist(), threads):
        values: dict[str, Any] = {**sums}
        for name, join in _JOINS.items():
            join(columns[name], values[name], out=columns[name], where=sums["calls"] > 0)
    for chosen in selected_statistics(part, selection):
        folded = chosen.chosen(counts[chosen.location])
        touched[folded.call_path] = True
        executed = folded.chosen(folded.count > 0)
        for name, join in _JOINS.items():
            rows = folded if join is np.add else executed
            join.at(columns[name], rows.call_path, vars(rows)["count" if name == "calls" else name])
    (at,) = np.nonzero(touched | (columns["calls"] > 0))
    return {"rows": pa.table({"call_path": at, **{name: column[at] for name, column in columns.items()}})}


_PATH_SUMS = MapCombine(_path_sums, Tables({"rows": Join(("call_path",), least=("min_ns",), most=("max_ns",))}))


def _sums_of_spans(part: Trace, selection: Selection, locations: Sequence[int], threads: int) -> Iterator[PathSums]:
    """Yield sums whose sum is that of these locations, some of which are read at a time."""
    together = _pieces(part, locations)
    chosen = [selection.stretches(piece[0]) for piece in together]  # those of its process
    if len(together) < 2:
        yield from map(part.path_sums, together, chosen)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(part.path_sums, together, chosen)


def _pieces(part: Trace, locations: Sequence[int]) -> list[list[int]]:
    """Return these locations in pieces, each of one process: a program may have thousands of threads that do little."""
    found, process, spans = list[list[int]](), -1, 0
    for location in locations:
        facts = part.definitions.locations[location]
        if facts["process"] != process or spans + facts["span_count"] > _SPANS_OF_PIECE:
            found.append([])
            process, spans = facts["process"], 0
        found[-1].append(location)
        spans += facts["span_count"]
    return found


def selected_statistics(trace: Trace, selection: Selection) -> Iterator[Folded]:
    """Yield, by process, the rows of statistics that a selection takes, and the corrections of its spans' own time."""
    for process, folded in trace.folded.items():
        if selection.classes is None:
            yield folded
            continue
        of_short = np.isin(folded.class_id, list(selection.short_classes.get(process, ())))
        yield folded.chosen(folded.is_short & of_short)
        corrections = _are_corrections(folded)
        of_steps = np.isin(folded.class_id, list(selection.classes.get(process, ())))
        yield folded.chosen(~folded.is_short & ~corrections & of_steps)
        yield _corrections(trace, selection, process, folded.chosen(corrections))


def _are_corrections(folded: Folded) -> Bools:
    """Return which rows are of spans in detail, inside of which something was folded."""
    are: Bools = ~folded.is_short & (folded.count == 0)
    return are


def _corrections(trace: Trace, selection: Selection, process: int, rows: Folded) -> Folded:
    """Share out what was folded directly inside of spans among them, and keep what falls to the selected ones.

    A span that holds folded iterations lasts longer than a step: the program's main function, an epoch. There is one
    correction per call path and class, for all spans of the path; each span takes it in proportion to the time of
    folded iterations of the class that it covers. Exact where there is one such span, or all are selected.
    """
    own, paths = rows.own_ns.copy(), len(trace.call_paths)
    for each in _holders(trace, process):
        here = (rows.location == each.location) & (rows.class_id == each.class_id)
        mask = selection.keep(each.location, each.start_ns)
        everything = np.bincount(each.call_path, weights=each.weight, minlength=paths)
        selected = np.bincount(each.call_path, each.weight * (1 if mask is None else mask), paths)
        share = (selected / np.maximum(1, everything))[rows.call_path[here]]
        own[here] = np.round(own[here] * share).astype(np.int64)
    return replace(rows, own_ns=own)


@dataclass(frozen=True)
class _Holders:
    """The spans of a location that hold folded iterations of a class. weight: ns of these; without records, of all."""

    location: int
    class_id: int
    start_ns: Ints
    call_path: npt.NDArray[np.uint32]
    weight: Floats


@cached_on_trace
def _holders(trace: Trace, process: int) -> list[_Holders]:
    """Return the spans among which corrections are shared out. Each question about the run needs them."""
    folded, found = trace.folded[process], list[_Holders]()
    rows, iterations = folded.chosen(_are_corrections(folded)), trace.iterations(process)
    folded_until = np.where(
        iterations.detail == PART, iterations.detail_ns, iterations.start_ns + iterations.duration_ns
    )
    folded_ns = (folded_until - iterations.start_ns) * (iterations.detail != ALL)
    moments = np.column_stack((iterations.start_ns, iterations.start_ns + folded_ns)).ravel()
    for location in np.unique(rows.location).tolist():
        spans, here = trace.span_arrays(location), rows.location == location
        corrected = np.zeros(len(trace.call_paths), dtype=bool)
        corrected[rows.call_path[here]] = True  # a few: what else is in detail holds nothing that was folded
        spans = chosen_spans(spans, corrected[spans["call_path"]])
        start_ns = spans["start_ns"]
        for class_id in np.unique(rows.class_id[here]).tolist():
            of_class = folded_ns * (iterations.class_id == class_id)
            until = np.column_stack((np.cumsum(of_class) - of_class, np.cumsum(of_class))).ravel()
            weight = spans["duration_ns"].astype(np.float64)  # where the records of iterations are lost
            if len(moments):
                ended = np.interp(start_ns + spans["duration_ns"], moments, until)
                weight = ended - np.interp(start_ns, moments, until)
            (at,) = np.nonzero(weight)
            found.append(
                _Holders(location, class_id, start_ns[at], spans["call_path"][at].astype(np.int64), weight[at])
            )
    return found


def median_of(histogram: Ints, low_ns: int, high_ns: int) -> float:
    """Estimate a median from the counts of a histogram's buckets: in its bucket, which is half an octave (41 %) wide.

    Within the bucket it is where durations spread evenly (over the logarithm) would have it; never beyond the shortest
    and the longest. NaN if nothing was counted: profiles of other tools may have sums alone.
    """
    edges = bucket_edges_ns()
    counted = np.cumsum(histogram)
    if not counted[-1]:
        return float("nan")
    half = counted[-1] / 2
    bucket = int(np.searchsorted(counted, half))
    before = counted[bucket] - histogram[bucket]
    inside = (half - before) / histogram[bucket]
    return float(np.clip(edges[bucket] * (edges[bucket + 1] / edges[bucket]) ** inside, low_ns, high_ns))


def histogram_of(duration_ns: Ints) -> Ints:
    """Count durations in the buckets of `bucket_edges_ns`."""
    edges = bucket_edges_ns()
    bucket = np.searchsorted(edges[1:-1], duration_ns, side="right")
    return np.bincount(bucket, minlength=len(edges) - 1).astype(np.int64)


def one_for_each_name(trace: Trace) -> Ints:
    """Return which region stands for each: itself, or one for each function of MPI or OpenSHMEM, whoever calls it."""
    regions = trace.regions.to_arrow()
    first: dict[object, int] = {}
    names, paradigms = regions.column("name").to_pylist(), regions.column("paradigm").to_pylist()
    named = enumerate(zip(names, paradigms, strict=True))
    alike = (name if paradigm in RANK_PARADIGMS else i for i, (name, paradigm) in named)
    return np.array([first.setdefault(key, i) for i, key in enumerate(alike)], dtype=np.int64)


def merged_paths(parent: Ints, region: Ints, region_of: Ints) -> Ints:
    """Return which call path stands for each: the first with the same regions, where some stand for others.

    `parent`, `region`: of every path, after its parent; `region_of`: what stands for each region.
    """
    stands = np.arange(len(parent))
    if np.array_equal(region_of, np.arange(len(region_of))):
        return stands
    first: dict[tuple[int, int], int] = {}
    found: list[int] = []
    for path, (above, last) in enumerate(zip(parent.tolist(), region_of[region].tolist(), strict=True)):
        found.append(first.setdefault((found[above] if above >= 0 else -1, last), path))
    return np.array(found, dtype=np.int64)


def outermost(parent: Ints, key: Ints) -> Bools:
    """Return for each call path whether its key (its last region, for example) occurs nowhere above it."""
    result = np.ones(len(parent), dtype=bool)
    paths, above = np.arange(len(parent)), parent
    # Paths climb one level at a time, until they meet their key: in a deep recursion that is soon.
    while len(paths := paths[inner := above >= 0]):
        above = above[inner]
        result[paths] = other = key[above] != key[paths]
        paths, above = paths[other], parent[above[other]]
    return result
