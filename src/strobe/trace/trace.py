"""Trace: one recorded run, as everything above reads it. Ids are global, times count from the trace's zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from strobe.model.cancellation import checkpoint
from strobe.model.schema import SPANS
from strobe.tables.column_arrays import Ints
from strobe.tables.lazy_pyarrow import pa
from strobe.tables.table import Table, arrow_schema, make_table
from strobe.trace import archive, side_tables
from strobe.trace.clocks import node_clocks
from strobe.trace.definitions import (
    Definitions,
    LocalLocation,
    call_paths_table,
    locations_table,
    merge,
    processes_table,
)
from strobe.trace.folded import Folded, GpuLanes, Iterations, folded_by_process, read_gpu_lanes, read_iterations
from strobe.trace.info import Info
from strobe.trace.metrics.readings import Readings, metrics_table, readings_of
from strobe.trace.missing_data import first_missing
from strobe.trace.pictures.matching_locations import Place, find_places
from strobe.trace.pictures.pyramid import Pyramid
from strobe.trace.processes.process_reader import LostSpans, ProcessReader, RecordedProcess
from strobe.trace.processes.recorded_processes import RecordedProcesses, Workers, open_processes
from strobe.trace.spans import (
    PathSums,
    SpanArrays,
    Stretches,
    chosen_spans,
    joined_sums,
    record_batch,
    sums_by_path,
    with_global_paths,
)
from strobe.trace.trace_cache import Results, cached_on_trace

_FOREVER = (-(2**63), 2**63 - 1)


class Trace(RecordedProcesses):
    """One recorded run. Reading is lazy: opening reads definitions, spans are read when a question needs them."""

    def __init__(
        self,
        path: Path,
        job: archive.Job,
        readers: Sequence[ProcessReader],
        files: Sequence[archive.ProcessFiles] = (),
        unreadable: Sequence[tuple[int, str]] = (),
        workers: Workers | None = None,
        define: Callable[[Trace], Definitions] | None = None,
    ) -> None:
        """`unreadable`: pid and reason of processes whose file is beyond repair. `workers` answer questions about all
        processes; without them this process does. `define` finds the definitions if the readers should not.
        """
        super().__init__(path, job, readers, files, unreadable)
        self.workers, self._define = workers, define
        self.results: Results = {}

    @classmethod
    def read(cls, folder: Path, workers: Workers | None = None) -> Self:
        """Open a trace folder. A process whose file cannot be read is left out, with the reason in the quality table.

        Raises TraceError if none can be read, or none was recorded.
        """
        opened = open_processes(folder)
        return cls(folder, opened.job, opened.readers, opened.files, opened.unreadable, workers)

    def with_readers(
        self,
        readers: Sequence[ProcessReader],
        files: Sequence[archive.ProcessFiles],
        job: archive.Job | None = None,
        workers: Workers | None = None,
    ) -> Self:
        """Return some processes of the run, or parts of them, as a trace of their own."""
        return type(self)(self.path, job or self.job, readers, files, workers=workers, define=self._define)

    def without_results(self) -> Self:
        """Return the same run without results: for questions that are to use other steps (`choose_steps`)."""
        return type(self)(self.path, self.job, self.readers, self.files, self.unreadable, self.workers, self._define)

    # The run

    @cached_property
    def info(self) -> Info:
        """What was run, where, for how long, and how it ended."""
        return self.info_of(len(self.definitions.homes), self.span_count, self.folded_count)

    @cached_property
    def clocks(self) -> list[str]:
        """By process, the name of the clock of its times: processes of a node share one."""
        return node_clocks.clock_names(self.facts, self.files, self.job) if self.files else []

    def missing(self, needs: Sequence[str]) -> str:
        """Return a sentence about the first of `needs` (keys of RECORDED_WITH) that is missing; "" if none is."""
        executions = self.span_count + self.folded_count
        return first_missing(needs, self.readers, self.definitions.regions, executions)

    # Definitions

    @cached_property
    def definitions(self) -> Definitions:
        """The meaning of the ids of the trace, and their ids in each process."""
        return self._define(self) if self._define else merge(self.readers)

    @cached_property
    def processes(self) -> Table:
        """The processes of the run; number 0 is the one that the user started."""
        return processes_table(self.facts, self.zero_ns)

    @cached_property
    def locations(self) -> Table:
        """The threads and streams that recorded something."""
        return locations_table(self.definitions, self.zero_of)

    @cached_property
    def regions(self) -> Table:
        """Every function, operator, and range that was executed."""
        return make_table("regions", self.definitions.regions)

    @cached_property
    def call_paths(self) -> Table:
        """Every chain of regions that was executed, as a tree: `parent` is the chain without its last region."""
        return call_paths_table(self.definitions)

    @property
    def rows(self) -> list[Place]:
        """The rows of a timeline (main threads, `stream 7` of every process, ...), each with its locations by rank."""
        return self._find_rows()

    @cached_property
    def _find_rows(self) -> Callable[[], list[Place]]:
        # The pyramid keeps this. It must not keep the trace, or only the garbage collector would free both: a server
        # opens a run that is being recorded once a second.
        processes, locations = self.processes, self.locations
        return cache(lambda: find_places(processes.to_pylist(), locations.to_pylist()))

    @cached_property
    def _local_locations(self) -> list[dict[int, int]]:
        """By process, from the ids of its locations to ours."""
        ids: list[dict[int, int]] = [{} for _ in self.readers]
        for location, home in enumerate(self.definitions.homes):
            ids[home.process][home.local_id] = location
        return ids

    def location_of(self, process: int, local_id: int) -> int | None:
        """Return the location with this id in a process."""
        return self._local_locations[process].get(local_id)

    @cached_property
    def lost_spans(self) -> list[LostSpans]:
        """The spans that are known to be lost to damage, with locations of the trace, in ns since its zero."""
        return [
            each._replace(location=location, begin_ns=each.begin_ns - zero, end_ns=each.end_ns - zero)
            for process, reader in enumerate(self.readers)
            for zero in (self.zero_of(process),)
            for each in reader.lost_spans()
            if (location := self.location_of(process, each.location)) is not None
        ]

    def home(self, location: int) -> LocalLocation:
        """Return process and local id of a location of the trace. Raises UsageError if it does not exist."""
        return self.definitions.home(location)

    # Spans, metrics, pictures

    @cached_property
    def span_count(self) -> int:
        """Number of spans in all locations."""
        return sum(location["span_count"] for location in self.definitions.locations)

    @cached_property
    def spans_of_processes(self) -> list[int]:
        """Number of spans of each process."""
        count = [0] * len(self.readers)
        for location in self.definitions.locations:
            count[location["process"]] += location["span_count"]
        return count

    def span_arrays(self, location: int, start_ns: int | None = None, end_ns: int | None = None) -> SpanArrays:
        """Return the spans of a location that overlap [start_ns, end_ns), in order of start: no Arrow, no names.

        `self_ns` is the duration without the spans directly inside that overlap the stretch of time, too: the self time
        of the span only where that lies in the stretch as a whole.
        """
        checkpoint()
        home = self.home(location)
        zero = self.zero_of(home.process)
        lowest = _FOREVER[0] if start_ns is None else start_ns + zero
        highest = _FOREVER[1] if end_ns is None else end_ns + zero
        raw = self.readers[home.process].spans(home.local_id, lowest, highest)
        call_path = self.definitions.path_maps[home.process][raw["call_path"]]
        return {
            "row": raw["row"],
            "start_ns": raw["start_ns"] - zero,
            "duration_ns": raw["duration_ns"],
            "self_ns": raw["self_ns"],
            "region": self.definitions.path_region[call_path],
            "call_path": call_path,
            "depth": self.definitions.path_depth[call_path],
            "parent": raw["parent"],
            "complete": raw["complete"].astype(bool),
        }

    def path_sums(self, location: int | Sequence[int], chosen: Stretches | None = None) -> PathSums:
        """Return sums by call path of the spans of a location, or of several of one process, of which there is one.

        They come straight from the file, at some 10 ns a span.

        `chosen`: only those that begin in one of these stretches [begin, end), which are in order and do not overlap;
        ns. A span's own time is without what lies directly inside of it, chosen or not.
        """
        locations = location if isinstance(location, Sequence) else [location]
        process, paths = self.home(locations[0]).process, len(self.definitions.path_region)
        reader, zero = self.readers[process], self.zero_of(process)
        if not isinstance(reader, RecordedProcess):  # a part of a process: no block file holds its sums
            return joined_sums([sums_by_path(self.span_arrays(each), paths, chosen) for each in locations])
        stretches = [np.ascontiguousarray(each + zero, dtype=np.int64) for each in chosen or ()]
        local: PathSums = reader.path_sums([self.home(each).local_id for each in locations], *stretches)
        return with_global_paths(local, self.definitions.path_maps[process], paths)

    def span_batches(self, location: int, most: int = 1 << 16) -> Iterator[SpanArrays]:
        """Return the spans of a location in order of start, about `most` at a time: for those that fit into no memory.

        `self_ns` is that of `span_arrays`: it is too large for spans that reach from one batch into the next.
        """
        facts = self.definitions.locations[location]
        zero = self.zero_of(facts["process"])
        first, last = facts["first_ns"] - zero, facts["last_ns"] - zero
        width = (last - first) // max(1, -(-facts["span_count"] // most)) + 1
        for begin in range(first, last + 1, width):
            # From the moment before, so that a span without any length is in it; then only what begins there.
            spans = self.span_arrays(location, begin - 1, begin + width)
            inside = spans["start_ns"] >= begin
            if inside.any():
                yield chosen_spans(spans, inside)

    def spans(self, location: int | None = None, start_ns: int | None = None, end_ns: int | None = None) -> Table:
        """Return the spans of one location, or of all, that overlap [start_ns, end_ns), by location and start.

        For `self_ns` of spans that reach beyond that see `span_arrays`.
        """
        wanted = range(len(self.definitions.homes)) if location is None else [location]
        batches = [record_batch(self.span_arrays(each, start_ns, end_ns), each) for each in wanted]
        return Table(pa.Table.from_batches(batches, schema=arrow_schema(SPANS)), name="spans")

    def readings(self, process: int | None = None) -> Iterator[Readings]:
        """Return every reading of every metric as arrays, by metric; of one process, or of all."""
        for each in range(len(self.readers)) if process is None else [process]:
            yield from readings_of(self.readers[each], each, self.zero_of(each), self._local_locations[each])

    def metrics(self) -> Table:
        """Return every reading of every metric: CPU time, memory, ... over time."""
        return metrics_table(self.readings(), self.missing(("metrics",)))

    @cached_property
    def pyramid(self) -> Pyramid:
        """Pictures of any window."""
        zeros = [self.zero_of(process) for process in range(len(self.readers))]
        return Pyramid(self.readers, zeros, self.files, self.definitions, self._find_rows)

    # Attributes that only some spans have, and what has a time but no duration

    def side_table(self, name: str) -> Table:
        """Return a side table (SPAN_TABLES and EVENT_TABLES of model/schema.py): of all locations, in their order."""
        parts = [
            self._side_rows(name, process, reader.table(name))
            for process, reader in enumerate(self.readers)
            if reader.tables().get(name)
        ]
        return Table(pa.concat_tables(parts), name=name) if parts else make_table(name, [])

    def side_batches(self, name: str, location: int) -> Iterator[pa.Table]:
        """Return the rows of a side table that one location has, in order, in pieces that fit into memory."""
        for raw in self.raw_side_batches(name, location):
            yield self._side_rows(name, self.home(location).process, raw)

    def raw_side_batches(self, name: str, location: int) -> Iterator[dict[str, Any]]:
        """Return the same as in the block file: texts by their number in `texts`, times on the process's clock.

        Every piece has `row`, and `columns` by name: type (integer, real, text), values, and whether they are valid.
        """
        home = self.home(location)
        reader = self.readers[home.process]
        if reader.tables().get(name):
            yield from side_tables.raw_batches(name, reader, home.local_id)

    @cached_on_trace
    def texts(self, process: int) -> list[str]:
        """Return the texts of a process that `raw_side_batches` refers to."""
        return self.readers[process].texts()

    def _side_rows(self, name: str, process: int, raw: Mapping[str, Any]) -> pa.Table:
        paths, texts = self.definitions.path_maps[process], partial(self._text_array, process)
        return side_tables.read(name, raw, self._local_locations[process], self.zero_of(process), paths, texts)

    @cached_on_trace
    def _text_array(self, process: int) -> pa.Array:
        return pa.array(self.readers[process].texts(), type=pa.string())

    # Iterations that were folded while the program ran

    @cached_property
    def folded_count(self) -> int:
        """Number of executions that are in the trace as statistics only, in all locations."""
        return sum(int(folded.count.sum()) for folded in self.folded.values())

    @cached_property
    def folded(self) -> dict[int, Folded]:
        """Statistics of what was folded, by process; processes that kept everything are not there."""
        return folded_by_process(self.readers, self.definitions.path_maps, self._local_locations)

    def iterations(self, process: int) -> Iterations:
        """Return the records of a process's iterations; none where no loop was accepted while it ran."""
        return self._records(process)[0]

    def iteration_cells(self, process: int) -> dict[int, Ints] | None:
        """Return where the host time of these iterations went, by part and kind; see `read_iterations`."""
        return self._records(process)[1]

    @cached_on_trace
    def gpu_lanes(self, process: int) -> dict[int | None, GpuLanes]:
        """Return the lanes of these iterations on each GPU, by its number; none where an older strobe recorded."""
        return read_gpu_lanes(self.readers[process], self.zero_of(process))

    @cached_on_trace
    def _records(self, process: int) -> tuple[Iterations, dict[int, Ints] | None]:
        return read_iterations(self.readers[process], self.zero_of(process))

    def __repr__(self) -> str:
        return f"<strobe.Trace {self.path}: {len(self.readers)} processes, {self.span_count} spans>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.results.clear()
        if self.workers is not None:
            self.workers.close()
