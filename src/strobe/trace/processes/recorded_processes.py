"""The recorded processes of a trace: their readers in order, one clock for all, and how each ended."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Protocol

from strobe.errors import TraceError
from strobe.tables.table import Table
from strobe.trace import archive
from strobe.trace.after_run import process_starts
from strobe.trace.after_run.endings import endings
from strobe.trace.after_run.leftovers import remove_windows
from strobe.trace.clocks import node_clocks
from strobe.trace.info import Info
from strobe.trace.metrics import gpu_readings
from strobe.trace.processes.process_facts import ProcessFacts
from strobe.trace.processes.process_reader import ProcessReader, open_process
from strobe.trace.quality import quality_table


@dataclass(frozen=True)
class Opened:
    """The processes of a trace folder; `unreadable`: pid and reason of those whose file is beyond repair."""

    job: archive.Job
    readers: list[ProcessReader]
    files: list[archive.ProcessFiles]
    unreadable: list[tuple[int, str]]


def open_processes(folder: Path) -> Opened:
    """Open the processes of a trace folder. Raises TraceError if none was recorded, or none can be read."""
    job = archive.read_job(folder)
    files = recorded_files(folder, job)
    readers, readable, failures = [], [], []
    for each, reader in zip(files, _readers(files), strict=True):
        if isinstance(reader, TraceError):
            failures.append((each.pid, reader))
        else:
            readers.append(reader)
            readable.append(each)
    if not readers:
        raise failures[0][1]
    if not any(reader.process()["end_state"] == "running" for reader in readers):
        remove_windows(folder)
    job = node_clocks.apply(readers, readable, job, folder)
    attach_gpus(folder, readers, job.node)
    return Opened(job, readers, readable, [(pid, error.what) for pid, error in failures])


def recorded_files(folder: Path, job: archive.Job) -> list[archive.ProcessFiles]:
    """Return the files of the processes of a trace. Raises TraceError if no process was recorded."""
    files = archive.process_files(folder)
    if files:
        return files
    why = process_starts.command_not_recorded(job.command)
    if notes := archive.notes(folder):
        why = f"{notes[0]}. Install strobe with the Python that runs the program."
    raise TraceError(f"'{folder}' holds no recorded process", do=why)


def attach_gpus(folder: Path, readers: Iterable[ProcessReader], node: str) -> None:
    """Give the readers of a trace the GPUs of their nodes; `node` is that of processes without one.

    Readings of whole GPUs are shown with the first process of the node: the main one, or that of the lowest rank.
    """
    by_node = {each.node: each for each in gpu_readings.files(folder)}
    if not by_node:
        return
    seen = set()
    facts = [(reader, reader.process()) for reader in readers]
    for reader, process in sorted(facts, key=lambda each: _rank_and_start(each[1])):
        name = (process.get("node") or node).replace("/", "_")
        if name in by_node:
            reader.gpus, reader.has_gpus = by_node[name], name not in seen
            seen.add(name)


def _rank_and_start(process: ProcessFacts) -> tuple[bool, int, int]:
    rank = process.get("rank")
    return not process.get("main"), rank if isinstance(rank, int) else 1 << 62, process["started_ns"]


def _readers(files: Sequence[archive.ProcessFiles]) -> Iterable[ProcessReader | TraceError]:
    def opened(each: archive.ProcessFiles) -> ProcessReader | TraceError:
        try:
            return open_process(each)
        except TraceError as error:
            return error

    if len(files) == 1:
        return [opened(files[0])]
    from concurrent.futures import ThreadPoolExecutor  # one process need not wait for it

    threads = min(len(files), os.cpu_count() or 1)
    edges = [len(files) * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = pool.map(lambda ends: list(map(opened, files[slice(*ends)])), pairwise(edges))
        return list(chain.from_iterable(parts))


class Workers(Protocol):
    """What answers questions to many processes: see workers/map_combine.py."""

    def close(self) -> None:
        """Release them."""


class RecordedProcesses:
    """The processes of a trace: the main one first, then by rank and start. `files` may be empty (hand-made ones)."""

    def __init__(
        self,
        path: Path,
        job: archive.Job,
        readers: Sequence[ProcessReader],
        files: Sequence[archive.ProcessFiles],
        unreadable: Sequence[tuple[int, str]],
    ) -> None:
        facts: list[ProcessFacts] = [{**reader.process()} for reader in readers]
        notes = [job.processes.get(each.blocks.stem, {}) for each in files] or [{}] * len(readers)
        # Notes beside the block files: offsets of clocks, ranks by file name.
        offsets = [_offset(note, each) for note, each in zip(notes, facts, strict=True)]
        for each, note, offset in zip(facts, notes, offsets, strict=True):
            each["started_ns"] += offset
            each["ended_ns"] += offset
            if note.get("rank") is not None:
                each["rank"] = archive.whole_number(note["rank"])
        ranks = [rank if isinstance(rank := each.get("rank"), int) else len(readers) for each in facts]
        order = sorted(range(len(readers)), key=lambda i: (not facts[i].get("main"), ranks[i], facts[i]["started_ns"]))
        self.path, self.job = path, job
        self.readers = [readers[i] for i in order]
        self.files = [files[i] for i in order] if files else []
        self.facts = [facts[i] for i in order]
        self.unreadable = list(unreadable)
        lost = not job.imported and any(each.get("end_state") == "lost" for each in self.facts)
        self._became = process_starts.became(self.facts, self.starts) if lost else [""] * len(readers)
        for each, program in zip(self.facts, self._became, strict=True):
            if program:
                each["end_state"] = "replaced"
        self._offsets = [offsets[i] for i in order]

    def device_properties(self, process: int | None = None) -> list[dict[str, object]]:
        """Return the properties of the GPUs that a process sees (with its own numbers), or of those of all processes.

        They have the names of `deviceProperties` in PyTorch's profiles.
        """
        facts = self.facts if process is None else [self.facts[process]]
        return [properties for each in facts for properties in each.get("device_properties") or []]

    @cached_property
    def file_states(self) -> list[archive.FileState]:
        """The files of the folder when somebody first asked, none where there is no folder."""
        return archive.states(self.path) if self.path.is_dir() else []

    @cached_property
    def zero_ns(self) -> int:
        """CLOCK_MONOTONIC at the trace's zero."""
        if self.job.zero_ns is not None:
            return self.job.zero_ns
        return min((process["started_ns"] for process in self.facts), default=0)

    def zero_of(self, process: int) -> int:
        """Return the trace's zero on the clock of a process."""
        return self.zero_ns - self._offsets[process]

    def info_of(self, location_count: int, span_count: int, folded_count: int) -> Info:
        """Return facts about the run: the command, the host, the duration, the end."""
        main: ProcessFacts = self.facts[0] if self.facts else {}
        argv = main.get("argv") or ()
        return Info(
            path=str(self.path),
            command=self.job.command or (tuple(argv) if isinstance(argv, (list, tuple)) else (argv,)),
            host=self.job.host or main.get("host", ""),
            working_directory=self.job.working_directory,
            started_unix_ns=self.job.started_unix_ns,
            duration_ns=max((process["ended_ns"] - self.zero_ns for process in self.facts), default=0),
            ended=self._ending(main) if main else "nothing was recorded",
            python=main.get("python", ""),
            process_count=len(self.readers),
            location_count=location_count,
            span_count=span_count,
            folded_count=folded_count,
            size_bytes=sum(archive.sizes(self.files, self.file_states)),
            format_version=self.job.format_version,
            source=archive.source_of(self.job),
        )

    def _ending(self, process: ProcessFacts) -> str:
        """How a process ended in words, or the last program that it became."""
        whose = ("pid", "host", "parent_pid")
        images = [at for at, each in enumerate(self.facts) if all(each.get(key) == process.get(key) for key in whose)]
        last = images[-1]
        return endings([self.facts[last]], [self._became[last]], self.job, self.zero_ns)[0]

    @cached_property
    def endings(self) -> list[str]:
        """How each process ended, in words."""
        return endings(self.facts, self._became, self.job, self.zero_ns)

    @cached_property
    def gpus(self) -> dict[int, gpu_readings.NodeGpus]:
        """By process, the GPUs of the node that are shown with it."""
        with_gpus = {process: reader.gpus for process, reader in enumerate(self.readers) if reader.has_gpus}
        return {process: gpus for process, gpus in with_gpus.items() if gpus is not None}

    @cached_property
    def quality(self) -> Table:
        """What was lost, cut, or spent, and how each process ended."""
        return quality_table(self)

    @cached_property
    def starts(self) -> list[process_starts.Start]:
        """The processes that the program started, as the recorder noted them."""
        return process_starts.starts(self.path) if self.files else []


def _offset(note: Mapping[str, object], process: ProcessFacts) -> int:
    """Return the offset of a clock; 0 if times would become too large for sums."""
    offset = archive.whole_number(note.get("clock_offset_ns")) or 0
    moved = (process["started_ns"] + offset, process["ended_ns"] + offset)
    return offset if all(archive.whole_number(each) is not None for each in moved) else 0
