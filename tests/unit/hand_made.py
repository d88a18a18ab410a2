"""Traces made by hand: a fake at the seam to the native reader, so that tests can be computed on paper.

thread = [span("step", 0, 100, span("aten::mm", 10, 40), span("load", 50, 90, role="data"))]
trace = make_trace({"main": thread})

A thread called "stream 7" is a stream of GPU 0. What only some spans have (the tables ..._spans) is given with them:

span("MPI_Allreduce", 0, 50, paradigm="mpi", role="collective", tables={"collective_spans": {"sent_bytes": 8}})
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from strobe import native
from strobe.api.trace import Trace
from strobe.model.kinds import PARADIGMS, PARTS, ROLES
from strobe.trace.archive import Job
from strobe.trace.processes.process_reader import ALWAYS, NO_REGION, LostSpans

ZERO_NS = 5_000_000  # CLOCK_MONOTONIC at the zero of every hand-made trace: nothing may depend on it


@dataclass(frozen=True)
class Span:
    name: str
    start_ns: int
    end_ns: int
    children: tuple[Span, ...]
    paradigm: str
    role: str
    complete: bool
    tables: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)


def span(
    name: str,
    start_ns: int,
    end_ns: int,
    *children: Span,
    paradigm: str = "",
    role: str = "",
    complete: bool = True,
    tables: Mapping[str, Mapping[str, int | str]] | None = None,
) -> Span:
    """One execution. `aten::...` is an operator of torch, everything else a Python function, unless said otherwise.

    `tables`: by name of a table, the columns that this span has a value in: whole numbers and texts.
    """
    operator = "::" in name
    return Span(
        name,
        start_ns,
        end_ns,
        children,
        paradigm or ("torch" if operator else "python"),
        role or ("operator" if operator else "function"),
        complete,
        tables or {},
    )


class HandMadeProcess:
    """What `strobe._native.ProcessReader` would say about these threads."""

    gpus, has_gpus = None, False

    def __init__(
        self,
        threads: Mapping[str, Sequence[Span]],
        *,
        pid: int = 100,
        parent_pid: int = 1,
        main: bool = True,
        end_state: str = "closed",
        exit_code: int | None = 0,
        ended_ns: int | None = None,
        quality: Mapping[str, int] | None = None,
        metrics: Sequence[Mapping[str, object]] = (),
        rank: int | None = None,
        places: Mapping[str, tuple[str, int]] | None = None,
        loops: Mapping[str, str] | None = None,
        python: str = "3.11.7",
    ) -> None:
        """`places`: file and line of functions by name; `loops`: what their loops call."""
        self._places = dict(places or {})
        self._loops = dict(loops or {})
        self._regions: dict[tuple[str, str, str], int] = {}
        self._paths: dict[tuple[int, int], int] = {}
        self._threads = list(threads)
        self._texts: list[str] = []
        # By table: location, row, and the columns that are given.
        self._tables: dict[str, list[tuple[int, int, Mapping[str, int | str]]]] = {}
        self._spans = [self._rows(location, spans) for location, spans in enumerate(threads.values())]
        last = max((row[1] + row[2] for rows in self._spans for row in rows), default=0)
        self._process = {
            "pid": pid,
            "parent_pid": parent_pid,
            "started_ns": ZERO_NS,
            "ended_ns": ZERO_NS + (last if ended_ns is None else ended_ns),
            "end_state": end_state,
            "exit_code": exit_code,
            "argv": ["python", "train.py"],
            "host": "here",
            "python": python,
            "main": main,
            "rank": rank,
        }
        self._quality = dict(quality or {})
        self._metrics = list(metrics)

    def _rows(self, location: int, spans: Sequence[Span]) -> list[tuple[int, int, int, int, int, int, int]]:
        rows: list[tuple[int, int, int, int, int, int, int]] = []

        def visit(one: Span, parent_row: int, parent_path: int) -> None:
            region = self._regions.setdefault((one.name, one.paradigm, one.role), len(self._regions) + 1)
            path = self._paths.setdefault((parent_path, region), len(self._paths))
            row, duration = len(rows), one.end_ns - one.start_ns
            inside = sum(child.end_ns - child.start_ns for child in one.children)
            rows.append((row, one.start_ns, duration, path, parent_row, duration - inside, one.complete))
            for table, given in one.tables.items():
                self._tables.setdefault(table, []).append((location, row, given))
            for child in one.children:
                visit(child, row, path)

        for one in spans:
            visit(one, -1, NO_REGION)
        return rows

    def process(self) -> dict[str, object]:
        return self._process

    def regions(self) -> list[tuple[int, str, int, int, str, int, str]]:
        return [
            (number, name, PARADIGMS.index(paradigm), ROLES.index(role), *self._places.get(name, ("", 0)), "")
            for (name, paradigm, role), number in self._regions.items()
        ]

    def source_loops(self) -> dict[int, str]:
        return {number: self._loops[name] for (name, _, _), number in self._regions.items() if name in self._loops}

    def locations(self) -> list[dict[str, object]]:
        return [
            {
                "id": number,
                "name": name,
                "thread_id": 1000 + number,
                "kind": "stream" if name.startswith("stream ") else "thread",
                "device": 0 if name.startswith("stream ") else None,
                "span_count": len(rows),
                "first_ns": ZERO_NS + min((row[1] for row in rows), default=0),
                "last_ns": ZERO_NS + max((row[1] + row[2] for row in rows), default=0),
            }
            for number, (name, rows) in enumerate(zip(self._threads, self._spans, strict=True))
        ]

    def call_paths(self) -> dict[str, np.ndarray]:
        parents, regions = [parent for parent, _ in self._paths], [region for _, region in self._paths]
        depths: list[int] = []
        for parent in parents:
            depths.append(0 if parent == NO_REGION else depths[parent] + 1)
        return {
            "parent": np.array(parents, dtype=np.uint32),
            "region": np.array(regions, dtype=np.uint32),
            "depth": np.array(depths, dtype=np.uint32),
        }

    def spans(self, location: int, start_ns: int, end_ns: int) -> dict[str, np.ndarray]:
        rows = [
            (row, start + ZERO_NS, *rest)
            for row, start, *rest in self._spans[location]
            if start + ZERO_NS < end_ns and start + ZERO_NS + rest[0] > start_ns
        ]
        names = ("row", "start_ns", "duration_ns", "call_path", "parent", "self_ns", "complete")
        types = (np.int64, np.int64, np.int64, np.uint32, np.int64, np.int64, np.uint8)
        return {
            name: np.array([row[i] for row in rows], dtype=kind)
            for i, (name, kind) in enumerate(zip(names, types, strict=True))
        }

    def metrics(self) -> list[dict[str, object]]:
        return [
            {
                **metric,
                "time_ns": np.array(metric["time_ns"], dtype=np.int64) + ZERO_NS,
                "value": np.array(metric["value"], dtype=np.float64),
            }
            for metric in self._metrics
        ]

    def lost_spans(self) -> list[LostSpans]:
        return []

    def quality(self) -> dict[str, int]:
        return self._quality

    def tables(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self._tables.items()}

    def table(self, name: str, location: int = -1, first: int = 0, most: int = 1 << 60) -> dict[str, object]:
        rows = [row for row in self._tables[name] if location in (-1, row[0])]
        columns = {}
        for column in sorted({column for _, _, given in rows for column in given}):
            values = [given.get(column) for _, _, given in rows]
            text = any(isinstance(value, str) for value in values)
            numbers = [0 if value is None else self._number(value) if text else value for value in values]
            valid = np.array([value is not None for value in values], dtype=np.uint8)
            columns[column] = ("text" if text else "integer", np.array(numbers, dtype=np.int64), valid)
        return {
            "location": np.array([row[0] for row in rows], dtype=np.uint32),
            "row": np.array([row[1] for row in rows], dtype=np.int64),
            "columns": columns,
            "damaged": 0,
            "chunks": 1,
        }

    def numbers(self, name: str, columns: Sequence[str], number: int, count: int) -> tuple[object, dict[str, object]]:
        raw = self.table(name) if self._tables.get(name) else {"location": [], "columns": {}}
        rows = slice(number * len(raw["location"]) // count, (number + 1) * len(raw["location"]) // count)
        location = np.array(raw["location"], dtype=np.int64)[rows]
        cells = {each: (False, np.full(len(location), -1)) for each in columns}
        for each, (kind, values, valid) in raw["columns"].items():
            cells[each] = (kind == "text", np.where(valid != 0, values, -1)[rows])
        return location, cells

    def _number(self, text: int | str) -> int:
        if text not in self._texts:
            self._texts.append(str(text))
        return self._texts.index(str(text))

    def texts(self) -> list[str]:
        return self._texts

    def loops(self) -> list[dict[str, object]]:
        return []

    def cells(self) -> dict[int, object]:
        return {}

    def gpu_lanes(self) -> dict[int, object]:
        return {}

    def iterations(self) -> dict[str, np.ndarray]:
        times = ("start_ns", "duration_ns", "detail_ns", *(f"{part}_ns" for part in PARTS))
        numbers = ("loop", "events", "path_hash", "class_id", "detail")
        return {name: np.empty(0, dtype=np.int64 if name in times else np.uint32) for name in (*times, *numbers)}

    def classes(self) -> list[list[int]]:
        return []

    def class_paths(self) -> list[list[int]]:
        return [[] for _ in self.classes()]

    def extra_calls(self) -> list[tuple[int, int, int, int]]:
        return []

    def statistics(self) -> dict[str, np.ndarray]:
        sums = ("location", "call_path", "class_id", "count", "total_ns", "own_ns", "min_ns", "max_ns", "sum_squares")
        none = {name: np.empty(0, dtype=np.int64) for name in sums}
        return {**none, "histogram": np.empty((0, 64), dtype=np.uint32), "is_short": np.empty(0, dtype=np.uint8)}

    def graph(self, location: int) -> dict[str, object] | None:
        return None

    window = ALWAYS

    @cached_property
    def core(self) -> native.ProcessReader:
        """These threads as a block file, for what only the native reader does: pictures of many rows."""
        folder = Path(tempfile.mkdtemp(prefix="hand-made-"))
        try:
            out = native.ImportedProcess(str(folder / "process-1.blocks"), 1 << 20)
            paths = self.call_paths()
            for name, paradigm, role in self._regions:
                out.region(name, PARADIGMS.index(paradigm), ROLES.index(role), "", 0, "")
            for number, (thread, rows) in enumerate(zip(self._threads, self._spans, strict=True)):
                where = np.full(len(rows), out.location(thread, 1000 + number, 0, -1), dtype=np.uint32)
                start, duration = (np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2))
                regions = paths["region"][[row[3] for row in rows]].astype(np.uint32)
                cut_off = np.array([not row[6] for row in rows], dtype=np.uint8)
                out.spans(where, start + ZERO_NS, duration, regions, [], cut_off)
            out.finish(1, 0, "{}", "", "closed")
            return native.ProcessReader(str(folder / "process-1.blocks"))
        finally:
            shutil.rmtree(folder)

    def stack_cells(self, location, start_ns, end_ns, width, max_depth):
        """What runs in the middle of each pixel: exact where spans are longer than pixels, as hand-made ones are."""
        paths = self.call_paths()
        rows = self._spans[location]
        depth = min(max_depth, 1 + max((int(paths["depth"][row[3]]) for row in rows), default=-1))
        picture = np.full((depth, width), NO_REGION, dtype=np.uint32)
        for pixel in range(width):
            at = start_ns - ZERO_NS + (end_ns - start_ns) * (pixel + 0.5) / width
            for _, start, duration, path, *_ in rows:
                if start <= at < start + duration and paths["depth"][path] < depth:
                    picture[paths["depth"][path], pixel] = paths["region"][path]
        return picture, np.where(picture == NO_REGION, 0, 255).astype(np.uint8)


def make_trace(
    *threads: Mapping[str, Sequence[Span]] | HandMadeProcess, job: Job | None = None, path: str = "made.strobe"
) -> Trace:
    """Make a trace of one process per argument; the first is the main one."""
    processes = [
        each if isinstance(each, HandMadeProcess) else HandMadeProcess(each, pid=100 + i, main=i == 0)
        for i, each in enumerate(threads)
    ]
    return Trace(Path(path), job or Job(command=("python", "train.py"), zero_ns=ZERO_NS), processes)


MS = 1_000_000
FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
FETCH_ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"  # without workers


def train_steps(
    count: int,
    *,
    wait_ns: int = 1 * MS,
    forward_ns: int = 4 * MS,
    backward_ns: int = 5 * MS,
    optimizer_ns: int = 1 * MS,
    python_ns: int = 1 * MS,
    stalls: Mapping[int, int] | None = None,
    extras: Mapping[int, tuple[str, int]] | None = None,
    making: Mapping[int, int] | None = None,
    loader: str = FETCH,
) -> list[Span]:
    """The main thread of a training: `count` steps, `stalls` adds ns to a step's wait, `extras` a function at its end.

    `making` adds ns between the wait and the call of the model, which is a span only then.

    What a step takes is the sum of its parts; a jitter of some microseconds, always the same,
    keeps it from being too regular.
    """
    spans, now = [], 0
    for step in range(count):
        jitter = 1000 * ((step * 7) % 11)
        parts: list[Span] = []

        def add(name: str, duration_ns: int, *, paradigm: str = "", role: str = "", into: list[Span] = parts) -> None:
            nonlocal now
            into.append(span(name, now, now + duration_ns, paradigm=paradigm, role=role))
            now += duration_ns

        add(loader, wait_ns + jitter + (stalls or {}).get(step, 0), paradigm="torch", role="wait")
        begin, inside = now, []
        add("Optimizer.zero_grad#SGD.zero_grad", 1000, paradigm="torch", role="range", into=inside)
        now += python_ns + (making or {}).get(step, 0)
        add("aten::conv2d", forward_ns, into=inside)
        if making is not None:
            inside[-1] = span("nn.Module: Net", inside[-1].start_ns, now, inside[-1])
        add("autograd::engine::evaluate_function: ConvolutionBackward0", backward_ns, into=inside)
        add("Optimizer.step#SGD.step", optimizer_ns, paradigm="torch", role="range", into=inside)
        parts.append(span("train_step", begin, now, *inside))
        if extras and step in extras:
            name, duration = extras[step]
            add(name, duration)
        spans.extend(parts)
    return spans


def move(each: Span, by_ns: int) -> Span:
    """The same span later."""
    return span(
        each.name,
        each.start_ns + by_ns,
        each.end_ns + by_ns,
        *(move(c, by_ns) for c in each.children),
        paradigm=each.paradigm,
        role=each.role,
    )
