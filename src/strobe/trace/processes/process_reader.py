"""The reader of the files of one process, with ids and times of the process; the only user of the native reader."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from strobe.errors import TraceError
from strobe.trace.after_run import symbols
from strobe.trace.archive import ProcessFiles, sound_text
from strobe.trace.metrics.gpu_readings import NodeGpus
from strobe.trace.processes.process_facts import LocationFacts, MetricReadings, ProcessFacts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from strobe import native

    Array = npt.NDArray[Any]
    Image = np.ndarray[tuple[int, int], np.dtype[np.uint32]]

# From this size on, reading a block file from begin to end takes longer than everything else about opening it.
_WORTH_AN_INDEX = 1 << 20  # bytes
NO_REGION = 0xFFFFFFFF  # a pixel in which nothing ran; also the parent of a root call path
GAP = 0xFFFFFFFE  # a mark: time between two spans in which nothing ran


ALWAYS = (-(1 << 61), 1 << 61)  # beyond every clock


class LostSpans(NamedTuple):
    """Spans of a location (id in the process) that are missing: they began in [begin, end), ns on its clock."""

    location: int
    begin_ns: int
    end_ns: int
    spans: int


def joined_ns(lost: Sequence[LostSpans]) -> int:
    """Return the ns in which spans of any location are missing."""
    total, until = 0, -(1 << 62)
    for each in sorted(lost, key=lambda each: each.begin_ns):
        total += max(0, each.end_ns - max(until, each.begin_ns))
        until = max(until, each.end_ns)
    return total


class ProcessReader(Protocol):
    """The reader of a process, or of a part of one. Tests have hand-made ones."""

    gpus: NodeGpus | None
    """The GPUs of its node."""
    has_gpus: bool
    """Whether they are shown with this process."""
    call_sites: symbols.CallSites
    """Where callers of MPI are."""

    @property
    def core(self) -> native.ProcessReader:
        """The native reader itself, for the calls that take those of many processes at once."""

    @property
    def window(self) -> tuple[int, int]:
        """What counts of the process, on its clock: pictures show nothing outside of [begin, end)."""

    def process(self) -> ProcessFacts:
        """Return what is known of the process."""

    def use_clock(self, points: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> None:
        """Move all times: points (ns on the process's clock, ns on the trace's), in order. Once, before reading."""

    def regions(self) -> list[tuple[int, str, int, int, str, int, str]]:
        """Return (id, name, paradigm, role, file, line, module) of every region."""

    def source_loops(self) -> dict[int, str]:
        """Return what the loops of functions call, by region: see native/structure/source_loops.h."""

    def locations(self) -> list[LocationFacts]:
        """Return what is known of every location."""

    def call_paths(self) -> dict[str, Array]:
        """Return parent (0xFFFFFFFF at the root), region, depth, indexed by call path."""

    def spans(self, location: int, start_ns: int, end_ns: int) -> dict[str, Array]:
        """Return every span of a location that overlaps [start_ns, end_ns), in order of start."""

    def spans_before(self, ns: int) -> int:
        """Return how many spans begin before a moment, or some thousands more: it costs nothing."""

    def metrics(self) -> list[MetricReadings]:
        """Return name, unit, location (or -1), time_ns, value of every metric."""

    def quality(self) -> dict[str, int]:
        """Return what was lost, cut, or spent, by name."""

    def lost_spans(self) -> list[LostSpans]:
        """Return the spans that are known to be missing."""

    def loops(self) -> list[dict[str, Any]]:
        """Return the loops that were found while the program ran.

        loop (number), kind (hint, range, optimizer, zero_grad, data_wait, structure), name of the region that marks an
        iteration, accepted_ns, accepted_iteration (iterations seen before), ended_ns (or -1), reason, confidence.
        """

    def iterations(self) -> dict[str, Array]:
        """Return one entry per iteration of these loops, in order.

        loop, start_ns, duration_ns, events (spans of the main thread), path_hash, class_id, detail (0 none, 1 part, 2
        all), detail_ns (from when on, for a part), data_wait_ns, forward_ns, backward_ns, optimizer_ns,
        validation_ns, rest_ns.
        """

    def cells(self) -> dict[int, Array] | None:
        """Return where their host time went, by part * len(HOST_KINDS) + kind; None where older ones have none."""

    def gpu_lanes(self) -> dict[int, tuple[int, Array, dict[int, Array]]]:
        """Return, by device (-1: unknown), the lanes of the iterations from a number on: the number, when they start,
        and how long exactly these kinds of work ran, by set (strobe.gpu.work.KINDS), without sets that never did."""

    def classes(self) -> list[list[int]]:
        """Return per class_id the regions of what its iterations do beyond the usual, in order of first occurrence.

        Region 0 stands for a validation, 1 for what came after the largest number of classes.
        """

    def class_paths(self) -> list[list[int]]:
        """Return their call paths; of a validation, that of a function around it, or 0xFFFFFFFF.

        Empty where an older recorder wrote none.
        """

    def extra_calls(self) -> list[tuple[int, int, int, int]]:
        """Return what is known of what some classes do: (loop, call path, iterations that call it, those at a cost).

        Path 0xFFFFFFFF: iterations that validate.
        """

    def statistics(self) -> dict[str, Array]:
        """Return what was folded: one entry per location, call_path, and class_id (0xFFFFFFFF: of no iteration).

        count, total_ns, own_ns (negative where spans were folded inside of one that stays in detail), min_ns, max_ns,
        sum_squares (of durations in ns), histogram (64 half octaves per entry, see docs/format/blocks.md).
        """

    def graph(self, location: int) -> dict[str, Any] | None:
        """Return the event flow graph of a location, or None if there is none.

        payload (bytes, for the kernels that read graphs: see docs/format/graph.md), and what its nodes are called, as
        arrays: region, caller (region, 0: no part of the name), call_path (0xFFFFFFFF: no part of the name). Node 0
        stands for what found no room.
        """

    def tables(self) -> dict[str, int]:
        """Return the side tables that are there, and how many rows each has."""

    def table(self, name: str, location: int = -1, first: int = 0, most: int = 1 << 60) -> dict[str, Any]:
        """Return location, row (of the span, or -1), columns (name: type, values, valid), damaged, number of chunks;
        on request only those of one location, and some of its chunks.

        Types: integer; real (values are the bits of a double); text (values are numbers of `texts`).
        """

    def numbers(
        self, name: str, columns: Sequence[str], number: int, count: int
    ) -> tuple[npt.NDArray[np.int64], dict[str, tuple[bool, npt.NDArray[np.int64]]]]:
        """Return some columns of the part `number` of `count` of a side table: the location of each row, and by name
        whether its cells are numbers of `texts`, and the cells; -1 is null.

        A part has the rows from one fraction of all chunks to the next; where these are too few, of each chunk.
        """

    def texts(self) -> list[str]:
        """Return the texts that side tables refer to."""

    def stack_cells(self, location: int, start_ns: int, end_ns: int, width: int, max_depth: int) -> tuple[Image, Image]:
        """Return, per depth and pixel, the region with most time, and what all spans of the depth fill in 255ths."""


class RecordedProcess:
    """The files of one process; the JSON texts of the recorder become facts."""

    def __init__(self, files: ProcessFiles) -> None:
        from strobe import native

        self._alive = files.rings is not None and is_alive(files)
        # Rings go when the end is in the file, whoever writes it.
        self._cut = files.rings is None and not native.is_held(str(files.blocks))
        self.core = native.ProcessReader(str(files.blocks), str(files.rings) if files.rings else None)
        self.window = ALWAYS
        self.gpus: NodeGpus | None = None
        self.has_gpus = False
        self._folder = files.blocks.parent
        raw = self.core.process()
        # A process that records, stops, and records again writes one pair of chunks each time.
        self._begun = [_facts(text, _NEEDED) for text in raw["process_json"]]
        self._ended = [_facts(text) for text in raw["end_json"]]
        self._notes: dict[str, Any] = {}
        self._readings: list[tuple[int, int, int]] = []
        self.call_sites: symbols.CallSites = {}
        self.job: dict[str, Any] = {}
        self._written: dict[int, int] = {}
        self._executions: dict[int, int] = {}
        repeated: dict[str, Any] = {}
        for text in raw["note_json"]:
            if thread := _SPANS_OF.fullmatch(text):  # one for each thread that has ended: maybe thousands
                self._written[int(thread[1])] = int(thread[2])
                continue
            facts = _facts(text)
            if "clock" in facts:
                self._readings.append(_reading(facts.pop("clock")))
            if "call_site" in facts:
                site, module, address = _call_site(facts.pop("call_site"))
                self.call_sites[site] = module, address
            if isinstance(job := facts.pop("job", None), dict):
                self.job = job
            repeated = facts.pop("process", None) or repeated
            if "spans_of" in facts:
                location, count = _pair(facts.pop("spans_of"))
                self._written[location] = count
            if "executions" in facts:
                writer, count = _pair(facts.pop("executions"))
                self._executions[writer] = max(count, self._executions.get(writer, 0))
            self._notes.update(facts)
        self._bytes_lost = int(self._notes.get("bytes_lost", 0))  # of a trace that was repaired
        self._described = bool(self._begun or repeated)
        if not self._begun:
            self._begun = [_checked(repeated, _NEEDED) if repeated else _unknown(files, self.core)]
        self._clock: Callable[[int], int] = int
        self._last_ns = int(raw["last_ns"])
        self._kept_from_ns = int(raw["kept_from_ns"])  # 0: from the begin on
        self._failure, self._failed_ns = str(raw["failure"]), int(raw["failed_ns"])

    def process(self) -> ProcessFacts:
        """Return the facts about the process; `ended_ns` is the last moment known to be recorded."""
        return self._facts_of_process

    @cached_property
    def _known_locations(self) -> list[dict[str, Any]]:
        # What is damaged may turn out later; which locations there are does not. There may be thousands.
        return self.core.locations()

    @property
    def _finished(self) -> bool:
        return len(self._ended) >= len(self._begun)

    @cached_property
    def _facts_of_process(self) -> ProcessFacts:
        first, description = self._begun[0], self._begun[0].get("description") or {}
        unfinished: dict[str, Any] = {"end_state": "running" if self._alive else "cut" if self._cut else "lost"}
        last = self._ended[-1] if self._finished else unfinished
        exit_code = last.get("exit_code", -1)
        argv = description.get("argv", [])
        listed = self._notes.get("deviceProperties")
        devices = listed if isinstance(listed, list) else []
        return {
            "pid": first["pid"],
            "parent_pid": first["parent_pid"],
            "started_ns": self._clock(max(first["started_ns"], self._kept_from_ns)),
            "ended_ns": self._clock(max(first["started_ns"], last.get("ended_ns", 0) or self._last_ns)),
            "end_state": sound_text(last.get("end_state", "lost")),
            "exit_code": exit_code if exit_code >= 0 else None,
            "argv": [sound_text(word) for word in argv] if isinstance(argv, list) else sound_text(argv),
            "host": sound_text(description.get("host", "")),
            "python": sound_text(description.get("python", "")),
            "main": bool(description.get("main")) and not first.get("forked"),
            "rank": self._notes.get("rank"),
            "ranks": self._notes.get("ranks"),
            "name": sound_text(self._notes.get("name", "fork" if first.get("forked") else "")),
            "node": sound_text(first.get("node", "")),
            "wall": _reading(first["wall"]) if "wall" in first else None,
            "clock_readings": self._readings,
            "gpu": _sentences(self._notes.get("gpu")),
            "device_properties": [each for each in devices if isinstance(each, dict)],
            "failure": sound_text(last.get("failure", self._failure)),
            "failed_ns": self._clock(last.get("failed_ns", self._failed_ns)),
            "left_out": self._kept_from_ns > 0,
        }

    def use_clock(self, points: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> None:
        """From now on all times are on the trace's axis: points (ns on our clock, ns on the trace's), in order."""
        self.core.use_clock(*points)
        for cached in ("_facts_of_process", "_known_locations"):
            self.__dict__.pop(cached, None)
        self._clock = lambda ns: self.core.on_axis(int(ns))

    def quality(self) -> dict[str, int]:
        """Return the counters of all recordings of the process, and what the recorder probably cost it."""
        total: Counter[str] = Counter()
        for counters in (*(ended.get("counters", {}) for ended in self._ended), self.core.quality()):
            total.update(counters)
        total["bytes_lost"] += self._bytes_lost
        if lost := self.lost_spans():
            total["spans_lost"] = sum(each.spans for each in lost)
            total["spans_missing_ms"] = -(-joined_ns(lost) // 1_000_000)
        if not self._described:
            total["processes_not_described"] = 1
        if self._cut and not self._finished:
            total["ends_lost"] = 1
        folded, known = self._executions_folded()
        if folded > known:
            total["executions_lost"] = folded - known
        # An enter and a leave per execution, at the price that the recorder measured when it started.
        spans = sum(int(location["span_count"]) for location in self._known_locations)
        executions = spans + known
        total["estimated_cost_ns"] = round(2 * executions * float(self._begun[0].get("put_ns", 0)))
        total["estimated_cost_ns"] += total["hook_cost_ns"]
        return dict(total)

    def _executions_folded(self) -> tuple[int, int]:
        """Return how many executions were folded, and of how many the statistics, call path and thread are there."""
        import numpy as np

        rows = self.statistics()
        here = np.isin(rows["location"], [each["id"] for each in self._known_locations])
        here &= rows["call_path"] < len(self.core.call_paths()["region"])
        in_file = int(rows["count"].sum())
        return max(in_file, sum(self._executions.values())), int(rows["count"][here].sum())

    def lost_spans(self) -> list[LostSpans]:
        """Return the spans that are known to be missing: rows of a location are numbered, and counted at its end."""
        first, last = self._facts_of_process["started_ns"], self._facts_of_process["ended_ns"]
        lost = [
            LostSpans(location, max(first, begin), max(first, min(end, last)), spans)
            for location, begin, end, spans in self.core.lost_spans()
        ]
        known = {each["id"]: each for each in self._known_locations}
        for location, written in self._written.items():
            facts = known.get(location)
            found = (facts["span_count"] if facts else 0) + sum(e.spans for e in lost if e.location == location)
            found += facts["left_out"] if facts else 0
            everything_left_out = self._kept_from_ns and not found
            if written > found and not everything_left_out:
                since = facts["last_ns"] if facts and facts["span_count"] else first
                lost.append(LostSpans(location, since, max(since, last), written - found))
        return lost

    def spans_written(self) -> dict[int, int]:
        """Return how many spans each location had, with those that are lost."""
        written = {each["id"]: int(each["span_count"]) for each in self._known_locations}
        for each in self.lost_spans():
            written[each.location] = written.get(each.location, 0) + each.spans
        return written

    @property
    def description(self) -> dict[str, Any]:
        """The first process chunk: what was repeated of it, where it is damaged."""
        return self._begun[0]

    def regions(self) -> list[symbols.Region]:
        """Return id, name, paradigm, role, file, line, module of every region; addresses have names, callers lines."""
        rows = self.core.regions()
        if not self.call_sites and not any(map(symbols.is_address, rows)):
            return rows
        places = symbols.known_places(self._folder)
        return [symbols.with_places(row, places, self.call_sites) for row in rows]

    def texts(self) -> list[str]:
        """Return the texts that side tables refer to; C functions have their names."""
        return symbols.with_names(self.core.texts(), symbols.known_places(self._folder))

    def source_loops(self) -> dict[int, str]:
        """Return what the loops of functions call, by region, as it was recorded, or exported."""
        found: dict[int, str] = self.core.source_loops()
        exported = (self._begun[0].get("description") or {}).get("source_loops")
        if isinstance(exported, list):
            texts = {tuple(row[:3]): row[3] for row in exported if isinstance(row, list) and len(row) == 4}
            for region, name, _, _, file, line, _ in self.regions():
                if isinstance(text := texts.get((name, file, line)), str):
                    found[region] = text
        return found

    def metrics(self) -> list[MetricReadings]:
        """Return the metrics in the block file, and those of the GPUs of its node."""
        own: list[MetricReadings] = self.core.metrics()
        if self.gpus is None:
            return own
        beside = self.gpus.metrics(self._begun[0]["pid"], self.has_gpus)
        for each in beside:
            each["time_ns"] = self._on_axis(each["time_ns"])
        return [*own, *beside]

    def _on_axis(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        import numpy as np

        return times if self._clock is int else np.array([self._clock(int(ns)) for ns in times], dtype=np.int64)

    def __getattr__(self, name: str) -> Any:  # the arrays come as they are
        return getattr(self.core, name)


def _sentences(value: object) -> dict[str, str]:
    """Return the recorder's notes about GPUs: a sentence by subject."""
    notes = value if isinstance(value, dict) else {}
    return {sound_text(subject): sound_text(text) for subject, text in notes.items() if isinstance(text, str)}


def _reading(value: object) -> tuple[int, int, int]:
    """Return a reading of a clock: three numbers in range. Raises ValueError for anything else."""
    if isinstance(value, list) and len(value) == 3:
        first, second, third = value
        if all(isinstance(each, int) and abs(each) < 1 << 61 for each in value):
            return first, second, third
    raise ValueError("a reading of its clock is not three numbers in range")


def _call_site(value: object) -> list[str]:
    """Return a call site, the path of an object and an address in it. Raises ValueError for anything else."""
    texts = [sound_text(each) for each in value if isinstance(each, str)] if isinstance(value, list) else []
    if len(texts) == 3 and texts[2].startswith("0x"):
        int(texts[2], 16)
        return texts
    raise ValueError("a call site in it is not three texts")


_EXITING = 0x4  # PF_EXITING of the kernel's flags of a process
_DIES_WITHIN_S = 5.0  # a busy machine
# Numbers that are calculated with.
_NUMBERS = ("pid", "parent_pid", "started_ns", "ended_ns", "put_ns", "exit_code", "failed_ns")


_NEEDED = ("pid", "parent_pid", "started_ns")
# As the recorder writes it; other notes are parsed as JSON.
_SPANS_OF = re.compile(r'\{"spans_of": \[([0-9]{1,18}), ([0-9]{1,18})\]\}')


def _facts(text: str, needs: Sequence[str] = ()) -> dict[str, Any]:
    """Parse one of the JSON texts of a block file. Raises ValueError if it is not a text of the recorder."""
    try:
        return _checked(json.loads(text), needs)
    except RecursionError as error:
        raise ValueError("a description in it is nested too deeply") from error


def _unknown(files: ProcessFiles, core: native.ProcessReader) -> dict[str, Any]:
    """Return what is left to know of a process whose description is damaged. Raises ValueError if nothing else is."""
    times = [each["first_ns"] for each in core.locations() if each["span_count"]]
    if not times:
        raise ValueError("it ends before its first chunk")
    return {"pid": files.pid, "parent_pid": 0, "started_ns": min(times)}


def _pair(value: object) -> tuple[int, int]:
    """Return a location and a count. Raises ValueError for anything else."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(each, int) and each >= 0 for each in value):
        return value[0], value[1]
    raise ValueError("a count in it is not two numbers")


def _checked(facts: dict[str, Any], needs: Sequence[str] = ()) -> dict[str, Any]:
    sound = isinstance(facts, dict) and all(
        isinstance(facts.get(name, {}), dict) for name in ("description", "counters")
    )
    if not sound or any(name not in facts for name in needs):
        raise ValueError("a description in it is incomplete")
    numbers = {name: facts[name] for name in _NUMBERS if name in facts} | facts.get("counters", {})
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= 1 << 62:
            raise ValueError(f"'{name[:40]}' is not a number in range")
    return facts


def open_process(files: ProcessFiles) -> ProcessReader:
    """Open the files of one process; what a torn block file still holds is there, up to its last sound block."""
    try:
        reader = RecordedProcess(files)
        if files.blocks.stat().st_size >= _WORTH_AN_INDEX:
            reader.write_index()
        return cast(ProcessReader, reader)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"cannot read '{files.blocks.name}': {reason}", where=str(files.blocks.parent)) from error
    except ValueError as error:
        raise TraceError(
            f"'{files.blocks.name}' is not a sound block file: {error}",
            where=str(files.blocks.parent),
            do="Everything else in the folder may still be readable: move this file away and open the trace again.",
        ) from error


def recover(files: ProcessFiles, end_state: str = "lost") -> int:
    """Move the records in the rings of a dead process, or copies of those of a running one, into its block file.

    Return how many they were. Rings of a process that had written its end are only removed. `end_state`: how it ended.
    """
    from strobe import native

    return int(native.recover(str(files.blocks), str(files.rings), end_state))


def is_alive(files: ProcessFiles) -> bool:
    """Return whether a process still runs.

    One that was killed is waited for: until the kernel lets go of its block file, what it left of GPUs is not read.
    """
    from strobe import native

    until = time.monotonic() + _DIES_WITHIN_S
    while not (lives := runs(files.pid)) and native.is_held(str(files.blocks)) and time.monotonic() < until:
        time.sleep(0.001)
    return lives or native.is_held(str(files.blocks))


def runs(pid: int) -> bool:
    """Return whether there is a process that is not about to end: a killed one keeps its number for a while."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            facts = stream.read().rpartition(b")")[2].split()
    except OSError:
        return True
    if len(facts) < 29:
        return True
    state, flags, pending = facts[0], int(facts[6]), int(facts[28])
    return not (state in (b"Z", b"X") or flags & _EXITING or pending >> signal.SIGKILL - 1 & 1)
