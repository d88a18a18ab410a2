"""Traces of more processes than one computer should open: workers open them, and return their contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from strobe.errors import TraceError
from strobe.trace.archive import ProcessFiles, read_job
from strobe.trace.clocks import node_clocks
from strobe.trace.definitions import Definitions, Ids, Numbering, Numbers, RegionRow, Union, merge
from strobe.trace.folded import no_iterations, no_statistics
from strobe.trace.metrics.gpu_readings import NodeGpus
from strobe.trace.processes.process_facts import LocationFacts, ProcessFacts
from strobe.trace.processes.process_reader import NO_REGION, ProcessReader, RecordedProcess, open_process
from strobe.trace.processes.recorded_processes import attach_gpus, recorded_files
from strobe.trace.trace import Trace
from strobe.workers.map_combine import MapCombine, Partial, PerProcess, Workers, ask_all, need_folder, numbering

_Trace = TypeVar("_Trace", bound=Trace)


@dataclass(frozen=True)
class Facts:
    """Facts about a process before its spans are read; `unreadable` is the reason if there are none."""

    process: int
    described: ProcessFacts
    folded: bool = False
    unreadable: str = ""


@dataclass(frozen=True)
class _Locations:
    """The locations of a process, as its file describes them."""

    process: int
    rows: list[LocationFacts]


@dataclass(frozen=True)
class OpenTask:
    """The task to open some files of a trace."""

    folder: Path
    files: tuple[ProcessFiles, ...]

    def run(self) -> Partial:
        """Open the files, and return facts about them."""
        need_folder(self.folder)
        facts = [_facts(number, each) for number, each in enumerate(self.files)]
        none = np.zeros(0, dtype=np.uint32)
        return Partial(PerProcess(), facts, Numbering([], none, none, len(facts), 0))


def _facts(number: int, files: ProcessFiles) -> Facts:
    try:
        reader = open_process(files)
    except TraceError as error:
        return Facts(number, {}, unreadable=error.what)
    folded = len(reader.iterations()["start_ns"]) + len(reader.statistics()["count"]) > 0
    return Facts(number, reader.process(), folded)


class RemoteProcess:
    """The reader of a process that a worker has opened. It opens the files only for what the worker did not return."""

    def __init__(self, files: ProcessFiles, facts: Facts) -> None:
        self._files, self._facts = files, facts
        self._reader: ProcessReader | None = None
        self._clock: node_clocks.Columns | None = None
        self.gpus: NodeGpus | None = None  # as RecordedProcess has them
        self.has_gpus = False

    def process(self) -> ProcessFacts:
        """Return what is known of the process."""
        facts = self._facts.described
        if self._clock is None:
            return facts
        started_ns, ended_ns = (
            node_clocks.time_on_axis(self._clock, ns) for ns in (facts["started_ns"], facts["ended_ns"])
        )
        return {**facts, "started_ns": started_ns, "ended_ns": ended_ns}

    def use_clock(self, points: node_clocks.Columns) -> None:
        """Move all times: those of the worker's facts, and those of the files."""
        self._clock = points

    def iterations(self) -> dict[str, Any]:
        """Return the records of iterations."""
        return self._opened().iterations() if self._facts.folded else no_iterations()

    def cells(self) -> dict[int, Any] | None:
        """Return where their host time went."""
        return self._opened().cells() if self._facts.folded else {}

    def gpu_lanes(self) -> dict[int, Any]:
        """Return where the time of its GPUs went in these."""
        return self._opened().gpu_lanes() if self._facts.folded else {}

    def statistics(self) -> dict[str, Any]:
        """Return what was folded."""
        return self._opened().statistics() if self._facts.folded else no_statistics()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened(), name)

    def _opened(self) -> ProcessReader:
        if self._reader is None:
            self._reader = open_process(self._files)
            if self._clock is not None:
                self._reader.use_clock(self._clock)
            if isinstance(self._reader, RecordedProcess):
                self._reader.gpus, self._reader.has_gpus = self.gpus, self.has_gpus
        return self._reader


def open_remote(kind: type[_Trace], folder: Path, workers: Workers) -> _Trace:
    """Let workers open a trace. Raises TraceError if none of its processes can be read."""
    job = read_job(folder)
    files = recorded_files(folder, job)
    parts = workers.parts([1] * len(files))
    at = folder.absolute()
    answer = workers.answer([OpenTask(at, tuple(files[part.start : part.stop])) for part in parts])
    facts: list[Facts] = answer.value
    sound = [each for each in facts if not each.unreadable]
    if not sound:
        raise TraceError(facts[0].unreadable)
    readable = [files[each.process] for each in sound]
    readers = [cast(ProcessReader, RemoteProcess(own, each)) for own, each in zip(readable, sound, strict=True)]
    job = node_clocks.apply(readers, readable, job, folder)
    attach_gpus(folder, readers, job.node)
    unreadable = [(files[each.process].pid, each.unreadable) for each in facts if each.unreadable]
    return kind(folder, job, readers, readable, unreadable, workers, definitions)


def definitions(trace: Trace) -> Definitions:
    """Return the definitions of the trace, from the workers; of a part with other readers, from these."""
    workers = trace.workers
    if not isinstance(workers, Workers) or not all(isinstance(reader, RemoteProcess) for reader in trace.readers):
        return merge(trace.readers)
    found = ask_all(trace, workers, LOCATIONS, [1] * len(trace.readers))
    whole = found.numbering
    merged = Definitions([cast(RegionRow, (number, *row)) for number, row in enumerate(whole.regions)], whole)
    for each in cast("list[_Locations]", found.value):
        merged.add_locations(each.process, each.rows)
    maps = [_Maps(reader, whole) for reader in trace.readers]
    merged.region_maps = _Later(maps, lambda each: each.regions)
    merged.path_maps = _Later(maps, lambda each: each.paths)
    return merged


class _Maps:
    """From the ids in the file of a process to those of the trace; the file is read when they are needed."""

    def __init__(self, reader: ProcessReader, whole: Numbering) -> None:
        self._reader, self._whole = reader, whole

    @cached_property
    def _own(self) -> tuple[Definitions, Ids]:
        own, union = merge([self._reader]), Union()
        union.add(self._whole)
        return own, union.add(numbering(own, 1))

    @cached_property
    def regions(self) -> Numbers:
        own, ids = self._own
        there = own.region_maps[0] != NO_REGION
        found = np.full(len(there), NO_REGION, dtype=np.uint32)
        found[there] = ids.region[own.region_maps[0][there]]
        return found

    @cached_property
    def paths(self) -> Numbers:
        own, ids = self._own
        return ids.call_path[own.path_maps[0]]


class _Later(Sequence[Numbers]):
    """Maps of all processes, each made when it is needed."""

    def __init__(self, maps: Sequence[_Maps], one: Callable[[_Maps], Numbers]) -> None:
        self._maps, self._one = maps, one

    def __len__(self) -> int:
        return len(self._maps)

    def __getitem__(self, process: Any) -> Any:
        return self._one(self._maps[process])


def _locations(part: Trace) -> list[_Locations]:
    return [_Locations(0, part.definitions.locations)]


LOCATIONS = MapCombine(_locations, PerProcess())
