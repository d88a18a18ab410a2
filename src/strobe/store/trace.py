"""Trace: one recorded run, as everything above reads it. Ids are global, times count from the trace's zero."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe import registry
from strobe.errors import TraceError, UsageError
from strobe.model.cancellation import checkpoint
from strobe.model.kinds import RECORDED_WITH
from strobe.model.losses import sentence
from strobe.model.plugins import Analysis
from strobe.model.schema import SPANS, TABLES
from strobe.store import (
    archive,
    cut,
    engine,
    exports,
    far,
    gpu_metrics,
    node_clocks,
    parts,
    recover,
    side_tables,
    sql,
    started,
    workers,
)
from strobe.store.folded import (
    Folded,
    Iterations,
    RecordedLoop,
    read_extras,
    read_iterations,
    read_loops,
    read_statistics,
)
from strobe.store.info import Info
from strobe.store.merge import Definitions, LocalLocation, merge
from strobe.store.places import Place, find_places
from strobe.store.pyramid import Pyramid, Window, has_tiles
from strobe.store.raw import NO_REGION, ProcessReader, RecordedProcess, open_process
from strobe.store.table import Table, arrow_schema, make_table

if TYPE_CHECKING:
    from types import TracebackType

    from strobe.store.map_combine import Workers
    from strobe.structure.stack import Stack
    from strobe.structure.structure import Structure


class SpanArrays(TypedDict):
    """Spans of one location as numpy arrays: the columns of schema `spans`; `parent` is -1 at the root."""

    row: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]
    duration_ns: npt.NDArray[np.int64]
    self_ns: npt.NDArray[np.int64]
    region: npt.NDArray[np.uint32]
    call_path: npt.NDArray[np.uint32]
    depth: npt.NDArray[np.uint16]
    parent: npt.NDArray[np.int64]
    complete: npt.NDArray[np.bool_]


class PathSums(TypedDict):
    """Sums by call path: executions, ns in all of them, without what is directly inside, shortest, longest (or 0)."""

    calls: npt.NDArray[np.int64]
    total_ns: npt.NDArray[np.int64]
    own_ns: npt.NDArray[np.int64]
    min_ns: npt.NDArray[np.int64]
    max_ns: npt.NDArray[np.int64]


Stretches = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

_FOREVER = (-(2**63), 2**63 - 1)
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Readings:
    """What one metric of a process, or of a location of it, read: in order of time, ns since the trace's zero."""

    metric: str
    unit: str
    process: int
    location: int | None
    time_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class Trace:
    """One recorded run. Reading is lazy: opening reads definitions, spans are read when a question needs them.

    Every analysis is a method: `trace.operators(by="name")` runs analyses/operators.py. Use as a context manager, or
    just drop it.
    """

    def __init__(
        self,
        path: Path,
        job: archive.Job,
        readers: Sequence[ProcessReader],
        files: Sequence[archive.ProcessFiles] = (),
        unreadable: Sequence[tuple[int, str]] = (),
        workers: Workers | None = None,
    ) -> None:
        described = [dict(reader.process()) for reader in readers]
        notes = [job.processes.get(each.blocks.stem, {}) for each in files] or [{}] * len(readers)
        # What is known beside the block files: clocks that do not count from the same moment, ranks by file name.
        offsets = [_offset(note, each) for note, each in zip(notes, described, strict=True)]
        for each, note, offset in zip(described, notes, offsets, strict=True):
            each["started_ns"] = cast(int, each["started_ns"]) + offset
            each["ended_ns"] = cast(int, each["ended_ns"]) + offset
            if note.get("rank") is not None:
                each["rank"] = _whole(note["rank"])
        ranks = [each["rank"] if isinstance(each.get("rank"), int) else len(readers) for each in described]
        order = sorted(
            range(len(readers)), key=lambda i: (not described[i].get("main"), ranks[i], described[i]["started_ns"])
        )
        self.path, self.job = path, job
        self._offsets = [offsets[i] for i in order]
        self.readers = [readers[i] for i in order]
        self._described = [described[i] for i in order]
        self.files = [files[i] for i in order] if files else []
        self._unreadable = list(unreadable)  # (pid, why) of processes whose file is beyond repair
        self.workers = workers  # who answers questions to all processes; None: we do, one after the other
        self._memory: dict[object, object] = {}
        self._making: dict[object, threading.RLock] = {}
        self._lock = threading.Lock()

    # What it is

    @cached_property
    def zero_ns(self) -> int:
        """CLOCK_MONOTONIC at the trace's zero."""
        if self.job.zero_ns is not None:
            return self.job.zero_ns
        return min((cast(int, process["started_ns"]) for process in self._described), default=0)

    @cached_property
    def info(self) -> Info:
        """What was run, where, for how long, and how it ended."""
        main = self._described[0] if self._described else {}
        ends = [cast(int, process["ended_ns"]) - self.zero_ns for process in self._described]
        argv = main.get("argv") or ()
        return Info(
            path=str(self.path),
            command=self.job.command or (tuple(argv) if isinstance(argv, (list, tuple)) else (str(argv),)),
            host=self.job.host or str(main.get("host", "")),
            working_directory=self.job.working_directory,
            started_unix_ns=self.job.started_unix_ns,
            duration_ns=max(ends, default=0),
            ended=self._ending(main) if main else "nothing was recorded",
            python=str(main.get("python", "")),
            process_count=len(self.readers),
            location_count=len(self.definitions.homes),
            span_count=self.span_count,
            folded_count=self.folded_count,
            size_bytes=sum(files.size_bytes for files in self.files),
            format_version=self.job.format_version,
            source=archive.source_of(self.job),
        )

    @cached_property
    def device_properties(self) -> list[dict[str, object]]:
        """What the recorder knows of GPUs, by the names that PyTorch's profiles have (`deviceProperties`)."""
        return [
            each
            for described in self._described
            for each in cast("list[Any]", described.get("device_properties") or [])
        ]

    def device_properties_of(self, process: int) -> list[dict[str, object]]:
        """What the recorder knows of the GPUs that a process sees: these have numbers of its own."""
        return list(cast("list[Any]", self._described[process].get("device_properties") or []))

    @cached_property
    def span_count(self) -> int:
        """Number of spans in all locations."""
        return sum(cast(int, location["span_count"]) for location in self.definitions.locations)

    @cached_property
    def quality(self) -> Table:
        """What was lost, cut, or spent, and how each process ended."""
        rows: list[tuple[object, ...]] = []
        for process, (reader, described) in enumerate(zip(self.readers, self._described, strict=True)):
            pid = described["pid"]
            rows.append((process, pid, "ended", None, self._ending(described)))
            counted = sorted(reader.quality().items())
            rows.extend(
                (process, pid, what, value, (value and sentence(what, value)) or None) for what, value in counted
            )
            said = cast("Mapping[str, str]", described.get("gpu") or {})
            rows.extend((process, pid, f"gpu_{what}".replace(" ", "_"), None, text) for what, text in said.items())
            if self.files:
                rows.append((process, pid, "size_bytes", self.files[process].size_bytes, None))
                note = self.job.processes.get(self.files[process].blocks.stem, {})
                if "clock" in note:
                    rows.append((process, pid, "clock_error_ns", _whole(note.get("clock_error_ns")), note["clock"]))
        rows.extend((None, pid, "unreadable", None, why) for pid, why in self._unreadable)
        checked = node_clocks.read_repairs(self.path).checked
        rows.extend((None, None, what, value, sentence(what, value) or None) for what, value in checked.items())
        notes = archive.notes(self.path)
        rows.extend((None, None, "unrecorded", None, note) for note in notes)
        for gpus in self.gpus.values():
            told = gpus.content
            if told.bytes_lost:
                rows.append((None, None, "bytes_lost", told.bytes_lost, sentence("bytes_lost", told.bytes_lost)))
            rows.extend((None, None, "gpus_not_read", None, each) for each in told.missing)
            rows.extend((None, None, "gpu_metrics_refused", None, each) for each in told.refused)
        missing = started.unrecorded(self._starts, self._described, notes)
        rows.extend((None, None, "unrecorded", None, sentence) for sentence in missing.pythons)
        for what, commands, say in (
            ("other_pythons", missing.left_out, started.names_of_left_out),
            ("other_programs", missing.others, started.names_of),
        ):
            if commands:
                rows.append((None, None, what, sum(commands.values()), say(commands)))
        return make_table("quality", rows)

    @cached_property
    def _starts(self) -> list[started.Start]:
        return started.starts(self.path) if self.files else []

    @cached_property
    def _became(self) -> dict[tuple[str, int], started.Start]:
        return started.replaced_by(self._starts)

    def _ending(self, described: Mapping[str, object]) -> str:
        became = self._became.get((str(described.get("host", "")), cast(int, described["pid"])))
        after = became.command if became and became.at_ns >= cast(int, described["started_ns"]) else ""
        return recover.ending(described, self.job, self.zero_ns, after)

    @cached_property
    def gpus(self) -> dict[int, gpu_metrics.NodeGpus]:
        """By process, the GPUs of the node that are shown with it."""
        there = enumerate(self.readers)
        return {process: reader.gpus for process, reader in there if getattr(reader, "has_gpus", False)}  # type: ignore[attr-defined]

    # Definitions

    @cached_property
    def definitions(self) -> Definitions:
        """What the ids of the trace mean, and what they are called in each process."""
        return far.definitions(self) if far.is_far(self) else merge(self.readers)

    @cached_property
    def spans_of_processes(self) -> list[int]:
        """Number of spans of each process."""
        count = [0] * len(self.readers)
        for location in self.definitions.locations:
            count[cast(int, location["process"])] += cast(int, location["span_count"])
        return count

    @cached_property
    def processes(self) -> Table:
        """The processes of the run; number 0 is the one that the user started."""
        rows = []
        for process, d in enumerate(self._described):
            argv = d.get("argv")
            shown = " ".join(map(str, argv)) if isinstance(argv, (list, tuple)) else argv
            started, ended = (cast(int, d[key]) - self.zero_ns for key in ("started_ns", "ended_ns"))
            facts = (bool(d.get("main")), started, ended, d["end_state"], d.get("exit_code"), shown)
            rows.append((process, d["pid"], d["parent_pid"], *facts, *map(d.get, ("host", "python", "rank", "name"))))
        return make_table("processes", rows)

    @cached_property
    def locations(self) -> Table:
        """The threads and streams that recorded something."""
        columns = TABLES["locations"]
        zeroed = []
        for at in self.definitions.locations:
            zero, device = self.zero_of(cast(int, at["process"])), _whole(at.get("device"))
            if not at["span_count"]:
                zero = cast(int, at["first_ns"])
            first, last = cast(int, at["first_ns"]) - zero, cast(int, at["last_ns"]) - zero
            on_gpu = device if device is not None and device >= 0 else None
            zeroed.append({**at, "first_ns": first, "last_ns": last, "device": on_gpu})
        return make_table("locations", [tuple(at[column.name] for column in columns) for at in zeroed])

    @cached_property
    def regions(self) -> Table:
        """Every function, operator, and range that was executed."""
        return make_table("regions", self.definitions.regions)

    @cached_property
    def call_paths(self) -> Table:
        """Every chain of regions that was executed, as a tree: `parent` is the chain without its last region."""
        merged = self.definitions
        parents = [None if parent == NO_REGION else parent for parent in merged.path_parent]
        values = {
            "call_path": np.arange(len(parents), dtype=np.uint32),
            "parent": parents,
            "region": np.array(merged.path_region, dtype=np.uint32),
            "depth": np.array(merged.path_depth, dtype=np.uint16),
        }
        return make_table("call_paths", values)

    # Spans and metrics

    def span_arrays(self, location: int, start_ns: int | None = None, end_ns: int | None = None) -> SpanArrays:
        """Return the spans of a location that overlap [start_ns, end_ns), in order of start: no Arrow, no names.

        `self_ns` is the duration without the spans directly inside that overlap the stretch of time, too: the self time
        of the span only where that lies in the stretch as a whole.
        """
        checkpoint()
        home = self._home(location)
        zero = self.zero_of(home.process)
        lowest = _FOREVER[0] if start_ns is None else start_ns + zero
        highest = _FOREVER[1] if end_ns is None else end_ns + zero
        raw = cast(SpanArrays, self.readers[home.process].spans(home.local_id, lowest, highest))
        call_path = self.definitions.path_maps[home.process][raw["call_path"]]
        return {
            "row": raw["row"],
            "start_ns": raw["start_ns"] - zero,
            "duration_ns": raw["duration_ns"],
            "self_ns": raw["self_ns"],
            "region": self._path_region[call_path],
            "call_path": call_path,
            "depth": self._path_depth[call_path],
            "parent": raw["parent"],
            "complete": raw["complete"].astype(bool),
        }

    def path_sums(self, location: int, chosen: Stretches | None = None) -> PathSums:
        """Return sums by call path of the spans of a location: straight from the file, at some 10 ns a span.

        `chosen`: only those that begin in one of these stretches [begin, end), which are in order and do not overlap;
        ns. A span's own time is without what lies directly inside of it, chosen or not.
        """
        home = self._home(location)
        reader, zero, count = self.readers[home.process], self.zero_of(home.process), len(self._path_region)
        if not isinstance(reader, RecordedProcess):
            return _summed(self.span_arrays(location), count, chosen)
        stretches = [np.ascontiguousarray(each + zero, dtype=np.int64) for each in chosen or ()]
        local = reader.path_sums(home.local_id, *stretches)
        paths = self.definitions.path_maps[home.process]
        found = {name: np.zeros(count, dtype=np.int64) for name in local}
        for name in ("calls", "total_ns", "own_ns"):
            np.add.at(found[name], paths, local[name])
        some = local["calls"] > 0
        found["min_ns"][paths[some]] = np.iinfo(np.int64).max
        np.minimum.at(found["min_ns"], paths[some], local["min_ns"][some])
        np.maximum.at(found["max_ns"], paths[some], local["max_ns"][some])
        return cast(PathSums, found)

    def span_batches(self, location: int, most: int = 1 << 16) -> Iterator[SpanArrays]:
        """Return the spans of a location in order of start, about `most` at a time: for those that fit into no memory.

        `self_ns` is that of `span_arrays`, so it says nothing of spans that reach from one batch into the next.
        """
        facts = self.definitions.locations[location]
        zero = self.zero_of(cast(int, facts["process"]))
        first, last = cast(int, facts["first_ns"]) - zero, cast(int, facts["last_ns"]) - zero
        width = (last - first) // max(1, -(-cast(int, facts["span_count"]) // most)) + 1
        for begin in range(first, last + 1, width):
            # From the moment before, so that a span without any length is in it; then only what begins there.
            spans = self.span_arrays(location, begin - 1, begin + width)
            inside = spans["start_ns"] >= begin
            if inside.any():
                arrays = cast("dict[str, npt.NDArray[Any]]", spans)
                yield cast(SpanArrays, {name: values[inside] for name, values in arrays.items()})

    def spans(self, location: int | None = None, start_ns: int | None = None, end_ns: int | None = None) -> Table:
        """Return the spans of one location, or of all, that overlap [start_ns, end_ns), by location and start.

        For `self_ns` of spans that reach beyond that see `span_arrays`.
        """
        wanted = range(len(self.definitions.homes)) if location is None else [location]
        batches = [self._span_batch(at, start_ns, end_ns) for at in wanted]
        return Table(pa.Table.from_batches(batches, schema=arrow_schema(SPANS)), name="spans")

    def readings(self) -> Iterator[Readings]:
        """Return every reading of every metric as arrays, by metric."""
        for process, reader in enumerate(self.readers):
            of_process, zero = self._local_locations(process), self.zero_of(process)
            for metric in reader.metrics():
                times = np.asarray(metric["time_ns"], dtype=np.int64) - zero
                values = np.asarray(metric["value"], dtype=np.float64)
                location = of_process.get(cast(int, metric["location"]))
                yield Readings(str(metric["name"]), str(metric["unit"]), process, location, times, values)

    def metrics(self) -> Table:
        """Return every reading of every metric: CPU time, memory, ... over time."""
        parts = []
        for each in self.readings():
            count = len(each.time_ns)
            values = {
                "metric": [each.metric] * count,
                "process": [each.process] * count,
                "location": [each.location] * count,
                "time_ns": each.time_ns,
                "value": each.values,
                "unit": [each.unit] * count,
            }
            parts.append(make_table("metrics", values).to_arrow())
        if not parts:
            return make_table("metrics", [], note=self.missing(("metrics",)))
        return Table(pa.concat_tables(parts), name="metrics")

    # Attributes that only some spans have, and what has a time but no duration

    def side_table(self, name: str) -> Table:
        """Return a side table (SPAN_TABLES and EVENT_TABLES of model/schema.py): of all locations, in their order."""
        local_rows = [reader.tables().get(name, 0) for reader in self.readers]
        parts = [
            self._side_rows(name, process, self.readers[process].table(name))
            for process, rows in enumerate(local_rows)
            if rows
        ]
        if not parts:
            return make_table(name, [])
        return Table(pa.concat_tables(parts), name=name)

    def side_batches(self, name: str, location: int) -> Iterator[pa.Table]:
        """Return the rows of a side table that one location has, in order, in pieces that fit into memory."""
        home = self._home(location)
        reader = self.readers[home.process]
        if reader.tables().get(name):
            for raw in side_tables.raw_batches(name, reader, home.local_id):
                yield self._side_rows(name, home.process, raw)

    def raw_side_batches(self, name: str, location: int) -> Iterator[dict[str, Any]]:
        """Return the same as the block file has it: texts by their number in `texts`, times on the process's clock.

        Every piece is `row`, and `columns`: type (integer, real, text), values, and whether they are there, by name.
        """
        home = self._home(location)
        reader = self.readers[home.process]
        if reader.tables().get(name):
            yield from side_tables.raw_batches(name, reader, home.local_id)

    def texts(self, process: int) -> list[str]:
        """Return the texts of a process that `raw_side_batches` refers to."""
        return self.once(("list of texts", process), self.readers[process].texts)

    def _side_rows(self, name: str, process: int, raw: Mapping[str, Any]) -> pa.Table:
        def texts() -> pa.Array:
            return self.once(("texts", process), lambda: pa.array(self.readers[process].texts(), type=pa.string()))

        paths = self.definitions.path_maps[process]
        return side_tables.read(name, raw, self._local_locations(process), self.zero_of(process), paths, texts)

    # Iterations that were folded while the program ran

    @cached_property
    def folded_count(self) -> int:
        """Number of executions that are in the trace as statistics only, in all locations."""
        return sum(int(folded.count.sum()) for folded in self.folded.values())

    @cached_property
    def folded(self) -> dict[int, Folded]:
        """Statistics of what was folded, by process; processes that kept everything are not there."""
        found = {}
        for process, reader in enumerate(self.readers):
            if not len(reader.statistics()["count"]):
                continue
            local = self._local_locations(process)
            statistics = read_statistics(reader, self.definitions.path_maps[process], local)
            if statistics is not None:
                found[process] = statistics
        return found

    def iterations(self, process: int) -> Iterations:
        """Return the records of a process's iterations; none where no loop was accepted while it ran."""
        reader, zero = self.readers[process], self.zero_of(process)
        return self.once(("iterations", process), lambda: read_iterations(reader, zero))

    def recorded_loops(self, process: int) -> tuple[RecordedLoop, ...]:
        """Return the main loops that were accepted while a process ran."""
        return read_loops(self.readers[process], self.zero_of(process))

    def extras(self, process: int) -> tuple[tuple[int, ...], ...]:
        """Return, by class of a process's iterations, the regions that it enters beyond the usual (-1: validation)."""
        return read_extras(self.readers[process], self.definitions.region_maps[process])

    def recorded_graph(self, location: int) -> tuple[bytes, npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """Return the event flow graph of a location that was recorded while it ran, None where none was.

        The payload (see docs/format/graph.md), and by node the region and the region of its caller; -1: neither is
        known.
        """
        home = self._home(location)
        read = getattr(self.readers[home.process], "graph", None)
        raw = read(home.local_id) if read is not None else None
        if raw is None:
            return None
        table = self.definitions.region_maps[home.process].astype(np.int64)

        def mapped(local: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
            known = (local > 0) & (local < len(table))
            found: npt.NDArray[np.int64] = np.where(known, table[np.where(known, local, 0)], -1)
            return found

        return raw["payload"], mapped(raw["region"]), mapped(raw["caller"])

    def step_of(self, location: int, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return, for moments in a location, the step that its process was in; -1 outside of every step."""
        process = self._home(location).process
        step, begin_ns, end_ns = self.steps_of(process)
        if not len(step):
            return np.full(len(time_ns), -1, dtype=np.int64)
        at = np.searchsorted(begin_ns, time_ns, side="right") - 1
        found: npt.NDArray[np.int64] = np.where((at >= 0) & (time_ns < end_ns[at]), step[at], -1)
        return found

    # Pictures

    def cells(
        self, locations: Iterable[int], start_ns: int, end_ns: int, width: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
        """Return, per location and pixel of [start_ns, end_ns), the innermost region with most time, its share, a mark.

        Three arrays (locations, width): region (NO_REGION where nothing ran), its share of the pixel in 255ths, and the
        region of the longest exceptional stretch in the pixel (NO_REGION where there is none, GAP for a gap).
        """
        self._locations_exist(wanted := list(locations))
        return self._pyramid.cells(wanted, Window(start_ns, end_ns, width))

    def group_shares(self, locations: Iterable[int], start_ns: int, end_ns: int, width: int) -> npt.NDArray[np.uint8]:
        """Return, per location and pixel of [start_ns, end_ns), what each group of model.kinds.GROUPS fills of it.

        One array (locations, width, groups), in 255ths of the pixel, each rounded by itself. What counts is the
        innermost region.
        """
        self._locations_exist(wanted := list(locations))
        return self._pyramid.group_shares(wanted, Window(start_ns, end_ns, width))

    def window_profile(
        self, locations: Iterable[int], start_ns: int, end_ns: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return, per location and region, the executions that begin in [start_ns, end_ns), and exclusive ns in it.

        Two arrays (locations, regions), exact.
        """
        self._locations_exist(wanted := list(locations))
        return self._pyramid.profile(wanted, start_ns, end_ns)

    @cached_property
    def rows(self) -> list[Place]:
        """The places of the run (main threads, `stream 7` of every process, ...), each with its locations by rank."""
        return find_places(self.processes.to_pylist(), self.locations.to_pylist())

    def row_cells(
        self, place: int, row_level: int, first: int, count: int, start_ns: int, end_ns: int, width: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
        """Return group shares and marks of rows of a place, where a row stands for 8**row_level of its locations.

        Rows are numbered from 0, row i being the locations from i * 8**row_level on; those behind the last are empty.
        Two arrays: shares of groups (count, width, groups), in 255ths of the pixel, the mean of the locations; marks
        (count, width) as `cells` gives them, the longest of all locations.
        """
        if not 0 <= place < len(self.rows):
            raise UsageError(f"no place {place}: this trace has {len(self.rows)}, numbered from 0")
        return self._pyramid.row_cells(place, row_level, first, count, Window(start_ns, end_ns, width))

    def has_tiles(self, *, of_rows: bool = False) -> bool:
        """Return whether all tiles are there, with `of_rows` also those of `row_cells`: else a picture builds some."""
        return has_tiles(self.files, self.rows if of_rows else ())

    def build_pyramid(self) -> None:
        """Build the tiles that pictures are made from, where they are missing or out of date.

        Otherwise the first picture does so. Where the folder cannot be written, there are none.
        """
        self._pyramid.build()

    def stack_cells(
        self, location: int, start_ns: int, end_ns: int, width: int, max_depth: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
        """Return, per depth and pixel of [start_ns, end_ns), the region with most time, and how full the pixel is.

        Two arrays (depths, width): region (0xFFFFFFFF where nothing ran), and what all spans of the depth together
        fill of the pixel, in 255ths. No more than `width` blocks of 4096 spans are read: where more are in the window,
        the one in the middle of each pixel stands for all of it.
        """
        home = self._home(location)
        zero = self.zero_of(home.process)
        low, high = start_ns + zero, end_ns + zero
        local, filled = self.readers[home.process].stack_cells(home.local_id, low, high, width, max_depth)
        return self._global_regions(home.process, local), cast("npt.NDArray[np.uint8]", filled)

    # Questions

    def ask(self, name: str, **options: object) -> Table:
        """Run an analysis by name. `trace.NAME(**options)` is the same."""
        if name not in registry.names("analyses"):
            known = ", ".join(registry.names("analyses"))
            raise UsageError(f"no analysis '{name}'", do=f"Analyses: {known}")
        analysis = cast(Analysis, registry.load("analyses", name))
        unknown = set(options) - {option.name for option in analysis.options}
        if unknown:
            known = ", ".join(option.name for option in analysis.options) or "none"
            raise UsageError(f"{name} has no option '{sorted(unknown)[0]}'", do=f"Options: {known}")
        table = cast(Table, analysis.run(self, **options))
        note = table.note if len(table) or table.note else self.missing(analysis.needs) or "nothing matches"
        return Table(
            table.to_arrow(), name=table.name or name, about=table.about, note=note, shows=table.shows or analysis.shows
        )

    def stack(self, metric: str = "duration", *, process: int | None = None, class_name: str | None = None) -> Stack:
        """Return the iteration stack: steps x positions, by `duration` or by the `gap` before each position."""
        return cast("Stack", registry.answer("stack")(self, metric, process=process, class_name=class_name))

    def structure(
        self,
        process: int | None = None,
        stream: str = "auto",
        *,
        step_level: str | None = None,
        step_at: str | None = None,
    ) -> Structure:
        """Return the loops of a process: the nest, which of them is the step and why, the flow graph.

        `stream`: look at `calls`, `operators`, `kernels`, or `mpi` alone. `step_level` (`+1`, `-1`, the name of a loop)
        and
        `step_at` (the name of an event) say what a step is.
        """
        made = registry.answer("structure")(self, process, stream, step_level=step_level, step_at=step_at)
        return cast("Structure", made)

    def op_analyse(self, op_name: str | Sequence[str], device_id: int | None = None) -> str:
        """Return what operators of a type (or name) cost by shapes of their inputs: JSON with MindSpore's keys.

        See `strobe.structure.op_analyse`. `op_analyze` is the same.
        """
        return cast(str, registry.answer("op_analyse")(self, op_name, device_id))

    op_analyze = op_analyse

    def sql(self, text: str, *, timeout_s: float | None = None) -> Table:
        """Answer one SELECT. Tables: those of model/schema.py, and every analysis by its name."""
        found = engine.query(text, sql.tables(self, text), sql.VIEWS, timeout_s=timeout_s)
        return Table(found, name="sql", note=sql.note(self, text))

    def missing(self, needs: Sequence[str]) -> str:
        """Say which of `needs` (keys of RECORDED_WITH) is missing, and what would have recorded it; "" if none is."""
        for need in needs:
            if not self._has(need):
                what, option = RECORDED_WITH[need]
                return f"no {what} in this trace; record them with: strobe run {option}"
        return ""

    def part(
        self,
        *,
        ranks: tuple[int, int] | None = None,
        steps: tuple[int, int] | None = None,
        time_ns: tuple[int, int] | None = None,
    ) -> Trace:
        """Return a part of the run as a trace of its own: of some ranks (and their children), steps, or times.

        Ranges hold both their ends, but for times: [begin, end). Spans that reach beyond end at the edge, and are not
        `complete`. Statistics of folded steps cannot be divided: they are left out of processes that are cut in time.
        Raises UsageError where nothing is in the range.
        """
        return parts.part_of(self, ranks, steps, time_ns)

    def beginning(self, most_spans: int) -> tuple[Trace, str]:
        """Return the run, or where it has more spans its first processes, as many as have no more together; of a first
        one that has more, its begin. Numbers of processes, locations, regions and call paths stay as they are. Also say
        in words which part it is, "" for all.
        """
        return parts.beginning_of(self, most_spans)

    def export(self, path: str | os.PathLike[str], to: str = "", **options: object) -> list[str]:
        """Write the run to a file (or folder) of another format; "" for `to`: the one that the suffix of `path` says.

        Returns sentences about what the format cannot hold. Raises UsageError where there is no such format.
        """
        return exports.export(self, Path(path), to, options)

    def cut(self, path: str | os.PathLike[str], *, anonymise: bool = False) -> list[str]:
        """Write the run, or the part of it that this is, as a trace folder; return sentences about what that lacks.

        `anonymise` replaces names, paths, hosts, command lines and texts by pseudonyms: see `store/anonymous.py`.
        """
        return cut.cut(self, Path(path), anonymise=anonymise)

    def anew(self) -> Trace:
        """Return the same run with nothing found yet: for questions that are to use other steps (`choose_steps`)."""
        return Trace(self.path, self.job, self.readers, self.files, self._unreadable, self.workers)

    def once(self, key: object, make: Callable[[], _Value]) -> _Value:
        """Return what `make` gave the first time this key was asked for: for results that several questions share."""
        with self._lock:
            if key in self._memory:
                return cast(_Value, self._memory[key])
            making = self._making.setdefault(key, threading.RLock())
        # A lock for each key: who waits for a result does not keep others from theirs.
        with making:
            with self._lock:
                if key in self._memory:
                    return cast(_Value, self._memory[key])
            value = make()
            with self._lock:
                self._memory[key] = value
                self._making.pop(key, None)
            return value

    def __getattr__(self, name: str) -> Callable[..., Table]:
        if name.startswith("_") or name not in registry.names("analyses"):
            raise AttributeError(f"Trace has no attribute or analysis '{name}'")
        return lambda **options: self.ask(name, **options)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *registry.names("analyses")})

    def _repr_html_(self) -> str:
        return cast(str, registry.answer("card")(self))

    def __repr__(self) -> str:
        return f"<strobe.Trace {self.path}: {len(self.readers)} processes, {self.span_count} spans>"

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._memory.clear()
        if self.workers is not None:
            self.workers.close()

    # Helpers

    @cached_property
    def _path_region(self) -> npt.NDArray[np.uint32]:
        return np.array(self.definitions.path_region, dtype=np.uint32)

    @cached_property
    def _path_depth(self) -> npt.NDArray[np.uint16]:
        return np.array(self.definitions.path_depth, dtype=np.uint16)

    @cached_property
    def clocks(self) -> list[str]:
        """By process, the name of the clock that its times were taken of: processes of a node share one."""
        return node_clocks.clock_names(self._described, self.files, self.job) if self.files else []

    def zero_of(self, process: int) -> int:
        """The trace's zero on the clock of a process."""
        return self.zero_ns - self._offsets[process]

    def _home(self, location: int) -> LocalLocation:
        self._locations_exist([location])
        return self.definitions.homes[location]

    def _locations_exist(self, locations: Iterable[int]) -> None:
        count = len(self.definitions.homes)
        for location in locations:
            if not 0 <= location < count:
                raise UsageError(f"no location {location}: this trace has {count}, numbered from 0")

    def _local_locations(self, process: int) -> dict[int, int]:
        """From the ids of a process's locations to ours."""
        return self.once("local locations", self._locations_by_process)[process]

    def _locations_by_process(self) -> list[dict[int, int]]:
        found: list[dict[int, int]] = [{} for _ in self.readers]
        for location, home in enumerate(self.definitions.homes):
            found[home.process][home.local_id] = location
        return found

    def region_map(self, process: int) -> npt.NDArray[np.uint32]:
        """Return, by the number that a process has for it, the region of the trace."""
        return self.definitions.region_maps[process]

    def location_of(self, process: int, local_id: int) -> int | None:
        """Return the location that a process has under a number of its own."""
        return self._local_locations(process).get(local_id)

    def _global_regions(self, process: int, local: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Map an image of local regions to global ones; pixels without a region stay so."""
        table = self.definitions.region_maps[process]
        inside = local < len(table)
        mapped: npt.NDArray[np.uint32] = np.where(
            inside, table[np.where(inside, local, 0)] if len(table) else 0, NO_REGION
        )
        return mapped.astype(np.uint32)

    @property
    def _pyramid(self) -> Pyramid:
        def make() -> Pyramid:
            zeros = [self.zero_of(process) for process in range(len(self.readers))]
            return Pyramid(self.readers, zeros, self.files, self.definitions, self.rows)

        return self.once("pyramid", make)

    def steps_of(self, process: int) -> tuple[npt.NDArray[np.int64], ...]:
        """Return number, begin and end of the steps that a process lives in, in order."""
        by_process = self.once("steps by process", self._steps_by_process)
        if not by_process:
            return tuple(np.empty(0, dtype=np.int64) for _ in range(3))
        # A worker of the loader, say, lives in the steps of the first that has some.
        return by_process.get(process, by_process[min(by_process)])

    def _steps_by_process(self) -> dict[int, tuple[npt.NDArray[np.int64], ...]]:
        steps = self.ask("steps").to_arrow().sort_by([("process", "ascending"), ("start_ns", "ascending")])
        names = ("process", "step", "start_ns", "duration_ns")
        process, step, begin, duration = (steps.column(name).to_numpy().astype(np.int64) for name in names)
        own, first = np.unique(process, return_index=True)
        if not len(own):
            return {}
        columns = (np.split(column, first[1:]) for column in (step, begin, begin + duration))
        return dict(zip(own.tolist(), zip(*columns, strict=True), strict=True))

    def _span_batch(self, location: int, start_ns: int | None, end_ns: int | None) -> pa.RecordBatch:
        arrays = self.span_arrays(location, start_ns, end_ns)
        schema = arrow_schema(SPANS)
        columns = []
        for field in schema:
            if field.name == "location":
                columns.append(pa.array(np.full(len(arrays["row"]), location, dtype=np.uint32)))
            elif field.name == "parent":
                columns.append(pa.array(arrays["parent"], type=field.type, mask=arrays["parent"] < 0))
            else:
                columns.append(pa.array(cast("dict[str, object]", arrays)[field.name], type=field.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _has(self, need: str) -> bool:
        if need == "metrics":
            return any(len(cast("list[float]", m["value"])) for reader in self.readers for m in reader.metrics())
        if need == "lines":
            return any(reader.tables().get("lines") for reader in self.readers)
        if need == "spans":
            return self.span_count + self.folded_count > 0
        paradigms = {row[2] for row in self.definitions.regions}
        # PyTorch speaks through ITT and NVTX; its operators are known by their role.
        return need in paradigms or (need == "torch" and any(row[3] == "operator" for row in self.definitions.regions))


def _summed(spans: SpanArrays, count: int, chosen: Stretches | None) -> PathSums:
    """Sum up by call path what no block file holds: a part of a process."""
    path, duration, own = spans["call_path"], spans["duration_ns"], spans["self_ns"]
    if chosen is not None:
        begin, end = chosen
        at = np.searchsorted(begin, spans["start_ns"], side="right") - 1
        mask = (at >= 0) & (spans["start_ns"] < end[at]) if len(begin) else np.zeros(len(path), dtype=bool)
        path, duration, own = path[mask], duration[mask], own[mask]
    shortest, longest = np.full(count, np.iinfo(np.int64).max), np.zeros(count, dtype=np.int64)
    np.minimum.at(shortest, path, duration)
    np.maximum.at(longest, path, duration)
    calls = np.bincount(path, minlength=count).astype(np.int64)
    shortest[calls == 0] = 0
    # bincount sums in float64: exact below 2^53 ns, which is 104 days.
    return {
        "calls": calls,
        "total_ns": np.bincount(path, weights=duration, minlength=count).astype(np.int64),
        "own_ns": np.bincount(path, weights=own, minlength=count).astype(np.int64),
        "min_ns": shortest,
        "max_ns": longest,
    }


def open_trace(
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    scheduler: str = "",
    cluster: str = "",
    cluster_options: Mapping[str, str | int] | None = None,
) -> Trace:
    """Open a trace: a path, or a name of a run (`last`, `last~2`). Raises TraceError with one sentence otherwise.

    A process whose file cannot be read is left out, and the quality table says so; only if none can be, it is an error.

    The rest says who answers questions to all processes. jobs: processes on this computer, 1 for none; by default as
    many as there are CPUs, for questions to big traces. scheduler: address of a Dask scheduler whose workers see the
    files, too. cluster: `slurm` starts a Dask cluster of `jobs` jobs, with `cluster_options` (queue, cores, memory,
    ...) for dask-jobqueue. These last until the trace is left (`with strobe.open(...) as trace`), or the program ends.
    """
    folder = archive.find(path)
    if not archive.is_trace(folder):
        from strobe.store import imports

        folder = imports.opened(folder)
    job = archive.read_job(folder)
    files = archive.process_files(folder)
    if not files:
        why = started.command_not_recorded(job.command)
        if notes := archive.notes(folder):
            why = f"{notes[0]}. Install strobe with the Python that runs the program."
        raise TraceError(f"'{folder}' holds no recorded process", do=why)
    hired = workers.hire(jobs, scheduler, cluster, cluster_options or {})
    if scheduler or cluster:
        return far.open_far(folder, job, files, hired)
    readers, readable, failures = [], [], []
    for each, reader in zip(files, _opened(files), strict=True):
        if isinstance(reader, TraceError):
            failures.append((each.pid, reader))
        else:
            readers.append(reader)
            readable.append(each)
    if not readers:
        raise failures[0][1]
    job = node_clocks.apply(readers, readable, job, folder)
    gpu_metrics.attach(folder, cast("list[RecordedProcess]", readers), job.node)
    return Trace(folder, job, readers, readable, [(pid, error.what) for pid, error in failures], hired)


def _opened(files: Sequence[archive.ProcessFiles]) -> Iterable[ProcessReader | TraceError]:
    def opened(each: archive.ProcessFiles) -> ProcessReader | TraceError:
        try:
            return open_process(each)
        except TraceError as error:
            return error

    if len(files) == 1:
        return [opened(files[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(files), os.cpu_count() or 1)) as pool:
        return list(pool.map(opened, files))


def last(n: int = 0) -> Trace:
    """Open the newest run in this folder, or with `n` the one n runs before it."""
    return open_trace(f"last~{n}")


def _offset(note: Mapping[str, object], process: Mapping[str, object]) -> int:
    """Return how far a clock is to be moved; not at all where that leads beyond what can be subtracted."""
    offset = _whole(note.get("clock_offset_ns")) or 0
    moved = (cast(int, process[name]) + offset for name in ("started_ns", "ended_ns"))
    return offset if all(_whole(each) is not None for each in moved) else 0


def _whole(value: object) -> int | None:
    """Return what is a whole number that sums may be made of; None otherwise."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None
