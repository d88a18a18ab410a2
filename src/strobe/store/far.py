"""Traces of more processes than one computer should open: workers open them, and say what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from strobe.errors import TraceError
from strobe.store import gpu_metrics, node_clocks
from strobe.store.archive import Job, ProcessFiles
from strobe.store.folded import no_iterations, no_statistics
from strobe.store.map_combine import (
    Ids,
    MapCombine,
    Numbering,
    Numbers,
    Partial,
    PerProcess,
    Workers,
    ask_all,
    need_folder,
    numbering,
    united,
)
from strobe.store.merge import Definitions, LocalLocation, RegionRow, merge
from strobe.store.raw import NO_REGION, ProcessReader, RecordedProcess, open_process

if TYPE_CHECKING:
    from strobe.store.gpu_metrics import NodeGpus
    from strobe.store.trace import Trace


@dataclass(frozen=True)
class Facts:
    """What is known of a process before its spans are read; `unreadable` says why nothing is."""

    process: int
    described: Mapping[str, object]
    folded: bool = False
    unreadable: str = ""


@dataclass(frozen=True)
class _Locations:
    """The locations of a process, as its file describes them."""

    process: int
    rows: list[dict[str, object]]


@dataclass(frozen=True)
class OpenTask:
    """Look at some files of a trace."""

    folder: Path
    files: tuple[ProcessFiles, ...]

    def run(self) -> Partial:
        """Open the files, and say what they hold."""
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
    return Facts(number, dict(reader.process()), folded)


class FarProcess:
    """The reader of a process that a worker has looked at: it opens the files only for what the worker did not say."""

    is_far = True

    def __init__(self, files: ProcessFiles, facts: Facts) -> None:
        self._files, self._facts = files, facts
        self._reader: ProcessReader | None = None
        self._clock: node_clocks.Columns | None = None
        self.gpus: NodeGpus | None = None  # as RecordedProcess has them
        self.has_gpus = False

    def process(self) -> Mapping[str, object]:
        """Return what is known of the process."""
        facts = self._facts.described
        if self._clock is None:
            return facts
        return {
            **facts,
            **{name: node_clocks.at(self._clock, cast(int, facts[name])) for name in ("started_ns", "ended_ns")},
        }

    def use_clock(self, points: node_clocks.Columns) -> None:
        """Move all times, of what the worker said as of what the files say."""
        self._clock = points

    def iterations(self) -> Mapping[str, Any]:
        """Return the records of iterations."""
        return self._opened().iterations() if self._facts.folded else no_iterations()

    def statistics(self) -> Mapping[str, Any]:
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


def open_far(folder: Path, job: Job, files: Sequence[ProcessFiles], workers: Workers) -> Trace:
    """Open a trace by its workers. Raises TraceError where none of its processes can be read."""
    from strobe.store.trace import Trace

    parts = workers.parts([1] * len(files))
    at = folder.absolute()
    found = workers.answer([OpenTask(at, tuple(files[part.start : part.stop])) for part in parts])
    facts = cast("list[Facts]", found.value)
    there = [each for each in facts if not each.unreadable]
    if not there:
        raise TraceError(facts[0].unreadable)
    readable = [files[each.process] for each in there]
    readers = [FarProcess(own, each) for own, each in zip(readable, there, strict=True)]
    job = node_clocks.apply(cast("list[ProcessReader]", readers), readable, job, folder)
    gpu_metrics.attach(folder, readers, job.node)
    unreadable = [(files[each.process].pid, each.unreadable) for each in facts if each.unreadable]
    return Trace(folder, job, cast("list[ProcessReader]", readers), readable, unreadable, workers)


def is_far(trace: Trace) -> bool:
    """Whether workers opened the trace, all of it."""
    return trace.workers is not None and all(isinstance(reader, FarProcess) for reader in trace.readers)


def definitions(trace: Trace) -> Definitions:
    """Return what the ids of the trace mean, as the workers found."""
    found = ask_all(trace, cast(Workers, trace.workers), LOCATIONS, [1] * len(trace.readers))
    whole, merged = found.numbering, Definitions()
    merged.regions = [cast(RegionRow, (number, *row)) for number, row in enumerate(whole.regions)]
    for parent, region in zip(whole.path_parent.tolist(), whole.path_region.tolist(), strict=True):
        merged.add_path(parent, region)
    for each in cast("list[_Locations]", found.value):
        for row in each.rows:
            merged.homes.append(LocalLocation(each.process, int(str(row["id"]))))
            merged.locations.append({**row, "location": len(merged.homes) - 1, "process": each.process})
    maps = [_Maps(reader, whole) for reader in trace.readers]
    merged.region_maps, merged.path_maps = _Later(maps, "regions"), _Later(maps, "paths")
    return merged


class _Maps:
    """From the ids in the file of a process to those of the trace; the file is read when they are needed."""

    def __init__(self, reader: ProcessReader, whole: Numbering) -> None:
        self._reader, self._whole = reader, whole

    @cached_property
    def _own(self) -> tuple[Definitions, Ids]:
        own = merge([self._reader])
        return own, united([self._whole, numbering(own, 1)])[1][1]

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
    """One kind of the maps of all processes."""

    def __init__(self, maps: Sequence[_Maps], kind: str) -> None:
        self._maps, self._kind = maps, kind

    def __len__(self) -> int:
        return len(self._maps)

    def __getitem__(self, process: Any) -> Any:
        return getattr(self._maps[process], self._kind)


def _locations(part: Trace) -> list[_Locations]:
    rows = [
        {key: value for key, value in row.items() if key not in ("location", "process")}
        for row in part.definitions.locations
    ]
    return [_Locations(0, rows)]


LOCATIONS = MapCombine(_locations, PerProcess())
