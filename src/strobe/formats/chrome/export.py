"""A trace as Chrome's trace event JSON, as Kineto writes it: locations one after the other.

Kineto's names are used as far as it has any. Everything else becomes arguments `table.column`, and metadata events that
viewers skip: `native/formats/chrome_own.h` reads both again as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from strobe.formats.chrome.arguments import (
    CATEGORY_OF_TABLE,
    TABLE_OF_CATEGORY,
    SpanArguments,
    allocation_arguments,
    as_json,
    as_real,
    event_arguments,
    is_flow_of_chromes,
    is_mark_of_chromes,
)
from strobe.formats.writing.processes import process_facts, readings_of
from strobe.formats.writing.span_rows import SpanRows
from strobe.gpu.capabilities import imported_files
from strobe.model.kinds import GPU_PARADIGMS, LOCATION_KINDS, PARADIGMS, ROLES
from strobe.model.schema import SPAN_TABLES
from strobe.trace.definition_rows import Region, location_rows, process_rows, region_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

# Those last whose arguments depend on the category, which the others give.
_TABLES = sorted(SPAN_TABLES, key=("collective_spans", "arguments").__contains__)


class Output(Protocol):
    """A file to write to, packed or not."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""


class Writer:
    """One file in the making."""

    def __init__(self, trace: Trace, out: Output, notes: list[str]) -> None:
        self._trace, self._out, self._notes = trace, out, notes
        self._first = True
        self._zero_ns = trace.zero_ns
        self._regions = region_rows(trace)
        self._locations = location_rows(trace)
        self._process_ids = _distinct([each.pid for each in process_rows(trace)])
        self._rows = self._name_rows()
        self._heads: dict[tuple[int, str, bool], str] = {}
        self._incomplete = 0
        self._stacks = _Stacks()
        self._written_stacks: set[tuple[int, int]] = set()  # by process and frame

    def write(self) -> None:
        """Write everything."""
        self._out.write(b"{" + self._properties().encode() + b'"traceEvents": [\n')
        self._definitions()
        for location in range(len(self._locations)):
            self._spans(location)
            for name, write in self._of_tables:
                for batch in self._trace.side_batches(name, location):
                    self._events(event for row in batch.to_pylist() for event in write(location, row))
        self._counters()
        self._out.write(b"\n]")
        self._frames()
        if self._incomplete:
            self._notes.append(f"{self._incomplete} spans that were cut off look like whole ones in other viewers")
        if self._notes:
            self._out.write(f',\n"strobe_left_out": {as_json(self._notes)}'.encode())
        self._out.write(b"\n}\n")

    def _events(self, events: Iterable[str]) -> None:
        text = ",\n".join(events)
        if text:
            self._out.write((text if self._first else ",\n" + text).encode("utf-8", "replace"))
            self._first = False

    # What is written once

    def _properties(self) -> str:
        """The properties of the imported file, and ours."""
        files = imported_files(self._trace)
        properties = dict(files[0].get("properties") or {}) if files else {"schemaVersion": 1}
        frames = ["stackFrames"] if any(each.tables().get("samples") for each in self._trace.readers) else []
        of_one_rank = ["distributedInfo", "traceName"] if len(files) > 1 else []
        for key in ("traceEvents", "strobe", "strobe_left_out", "too_long", *frames, *of_one_rank):
            properties.pop(key, None)
        ranks = [each.rank for each in process_rows(self._trace) if each.rank is not None]
        if len(ranks) == 1 and "distributedInfo" not in properties:
            world = self._trace.readers[0].process().get("ranks")
            properties["distributedInfo"] = {"rank": ranks[0], **({"world_size": world} if world is not None else {})}
        if self._trace.job.started_unix_ns:
            properties["baseTimeNanoseconds"] = self._trace.job.started_unix_ns - self._zero_ns
        properties["strobe"] = {"version": 1, "zero_ns": self._zero_ns}
        return "".join(f"{as_json(key)}: {as_json(value)},\n" for key, value in properties.items())

    def _definitions(self) -> None:
        """Name processes and rows, for viewers and for ourselves."""
        processes = process_rows(self._trace)
        self._events(
            _meta("strobe_process", self._process_ids[i], 0, **process_facts(self._trace, i, row, self._zero_ns))
            for i, row in enumerate(processes)
        )
        self._events(
            _meta(
                "strobe_region",
                0,
                0,
                id=i,
                name=row.name,
                paradigm=PARADIGMS.index(row.paradigm),
                role=ROLES.index(row.role),
                file=row.file,
                line=row.line,
                module=row.module,
            )
            for i, row in enumerate(self._regions)
        )
        seen: dict[tuple[str, str], int] = {}
        for location, (pid, tid) in zip(self._locations, self._rows, strict=True):
            if (pid, tid) in seen:
                continue
            seen[pid, tid] = len(seen)
            device = location.device
            own = {"process": location.process, "name": location.name, "thread_id": location.thread_id}
            kind = LOCATION_KINDS.index(location.kind)
            events = [_meta("strobe_row", pid, tid, **own, kind=kind, device=-1 if device is None else device)]
            name = f"stream {location.thread_id}" if location.kind == "stream" else location.name
            events.append(_meta("thread_name", pid, tid, name=name))
            self._events(events)
        devices = {
            pid for location, (pid, _) in zip(self._locations, self._rows, strict=True) if location.kind == "stream"
        }
        for number, row in zip(self._process_ids, processes, strict=True):
            rank = "" if row.rank is None else f" rank {row.rank}"
            self._events([_meta("process_name", number, 0, name=f"{row.argv or 'process'}{rank}")])
        for pid in sorted(devices - {str(each) for each in self._process_ids}):
            of_gpu = (("process_name", {"name": "GPU"}), ("process_labels", {"labels": f"GPU {pid}"}))
            self._events(_meta(what, pid, 0, **label) for what, label in of_gpu)
        self._row_numbers = seen

    def _name_rows(self) -> list[tuple[str, str]]:
        """Return pid and tid of every location, as JSON. Lanes of a row share its numbers, as they did in the file."""
        used: set[tuple[object, object]] = set()
        rows: list[tuple[str, str]] = []
        location_of: dict[tuple[object, ...], int] = {}
        for number, location in enumerate(self._locations):
            process, name, kind = location.process, location.name, location.kind
            same = (process, location.thread_id, kind, location.device)
            lane = re.fullmatch(r"(.*) \(lane \d+\)", name)
            if lane and (*same, lane[1]) in location_of:
                rows.append(rows[location_of[*same, lane[1]]])
                continue
            location_of[*same, name] = number
            pid: Any
            tid: Any
            if kind == "stream":
                pid, tid = location.device or 0, location.thread_id
                while (pid, tid) in used:
                    pid += 1_000_000  # the GPU of another process
            elif kind == "task":
                pid, tid = "Spans", name
                while (pid, tid) in used:
                    pid += "+"
            else:
                pid, tid = self._process_ids[process], location.thread_id
                while (pid, tid) in used:
                    tid = f"{tid} {name}"
            used.add((pid, tid))
            rows.append((as_json(pid), as_json(tid)))
        return rows

    # Events

    def _spans(self, location: int) -> None:
        pid, tid = self._rows[location]
        gpu = self._locations[location].kind == "stream"
        tables = {name: SpanRows(self._trace, name, location) for name in _TABLES}
        for spans in self._trace.span_batches(location):
            until = int(spans["row"][-1]) + 1
            args = SpanArguments()
            category_of = self._categories(spans, args, gpu)
            for name, rows in tables.items():
                for batch in rows.before(until):
                    args.add(name, batch, category_of)
            self._incomplete += int((~spans["complete"]).sum())
            starts = (spans["start_ns"] + self._zero_ns).tolist()
            events = []
            columns = (spans[name].tolist() for name in ("row", "duration_ns", "region", "complete"))
            for start, row, duration, region, complete in zip(starts, *columns, strict=True):
                head = self._head(region, args.table.get(row, ""), gpu)
                found = args.of.get(row)
                tail = f', "args": {{{", ".join(found)}}}}}' if found else "}"
                cut = "" if complete else ', "cut": 1'
                times = f'"ts": {_us(start)}, "dur": {_us(duration)}'
                events.append(f'{head}, "pid": {pid}, "tid": {tid}, {times}{cut}{tail}')
            self._events(events)

    def _categories(self, spans: SpanArrays, args: SpanArguments, gpu: bool) -> Callable[[int], str]:
        """Return the category of the span of each row; `args` has all tables but collectives and arguments."""
        regions: dict[int, int] = {}  # made for the few batches that ask

        def category_of(row: int) -> str:
            if not regions:
                regions.update(zip(spans["row"].tolist(), spans["region"].tolist(), strict=True))
            return _category_of(self._regions[regions[row]], args.table.get(row, ""), gpu)

        return category_of

    def _head(self, region: int, table: str, gpu: bool) -> str:
        known = self._heads.get((region, table, gpu))
        if known is None:
            row = self._regions[region]
            category = _category_of(row, table, gpu)
            name = row.name
            if category == "python_function" and row.file:
                name = f"{row.file}({row.line}): {name}"
            known = f'{{"ph": "X", "cat": {as_json(category)}, "name": {as_json(name)}, "reg": {region}'
            self._heads[region, table, gpu] = known
        return known

    # Rows with a time of their own

    @property
    def _of_tables(self) -> Sequence[tuple[str, Callable[[int, Mapping[str, Any]], Iterable[str]]]]:
        return (
            ("allocations", self._allocation),
            ("memory_blocks", self._block),
            ("samples", self._sample),
            ("messages", self._message),
            ("marks", self._mark),
            ("flows", self._flow),
        )

    def _at(self, location: int, row: Mapping[str, Any]) -> str:
        pid, tid = self._rows[location]
        return f'"pid": {pid}, "tid": {tid}, "ts": {_us(row["time_ns"] + self._zero_ns)}'

    def _instant(self, location: int, table: str, name: str, row: Mapping[str, Any]) -> str:
        head = f'{{"ph": "i", "s": "t", "cat": "{table}", "name": {as_json(name)}'
        return f'{head}, {self._at(location, row)}, "args": {event_arguments(table, row)}}}'

    def _allocation(self, location: int, row: Mapping[str, Any]) -> Iterator[str]:
        head = '{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"'
        yield f'{head}, {self._at(location, row)}, "args": {{{allocation_arguments(row)}}}}}'

    def _block(self, location: int, row: Mapping[str, Any]) -> Iterator[str]:
        yield self._instant(location, "memory_blocks", "block of memory", row)

    def _sample(self, location: int, row: Mapping[str, Any]) -> Iterator[str]:
        frame, stack = "", row["call_stack"]
        if stack is not None:
            number, process = self._stacks.frame(stack), self._locations[location].process
            frame = f', "sf": {number}'
            if (process, number) not in self._written_stacks:
                self._written_stacks.add((process, number))
                yield _meta("strobe_stack", 0, 0, process=process, sf=number, stack=stack)
        args = event_arguments("samples", {**row, "call_stack": None})
        head = f'{{"ph": "P", "cat": "samples", "name": "sample"{frame}'
        yield f'{head}, {self._at(location, row)}, "args": {args}}}'

    def _message(self, location: int, row: Mapping[str, Any]) -> Iterator[str]:
        rank = "" if row["peer_rank"] is None else f" {row['peer_rank']}"
        yield self._instant(location, "messages", f"{row['direction'] or 'message'}{rank}", row)

    def _mark(self, location: int, row: Mapping[str, Any]) -> Iterator[str]:
        if not is_mark_of_chromes(row):
            yield self._instant(location, "marks", row["name"] or "mark", row)
            return
        head = f'{{"ph": "i", "s": "t", "cat": {as_json(row["category"])}, "name": {as_json(row["name"])}'
        args = "" if row["arguments"] is None else f', "args": {row["arguments"]}'
        yield f"{head}, {self._at(location, row)}{args}}}"

    def _flow(self, location: int, row: Mapping[str, Any]) -> Iterator[str]:
        if not is_flow_of_chromes(row):
            yield self._instant(location, "flows", row["name"] or "flow", row)
            return
        number = row["flow"] if row["flow"] is not None else row["flow_name"]
        id = "" if number is None else f', "id": {as_json(number)}'
        binds = ', "bp": "e"' if row["phase"] == "f" else ""
        head = f'{{"ph": "{row["phase"]}"{id}, "cat": {as_json(row["category"])}, "name": {as_json(row["name"])}'
        yield f"{head}, {self._at(location, row)}{binds}}}"

    def _frames(self) -> None:
        """Write the frames of samples for viewers; strobe reads the stacks that were written before."""
        before = ',\n"stackFrames": {\n'
        for frame in self._stacks.frames():
            self._out.write((before + frame).encode("utf-8", "replace"))
            before = ",\n"
        if before == ",\n":
            self._out.write(b"\n}")

    def _counters(self) -> None:
        processes = range(len(self._process_ids))
        metrics = (each for process in processes for each in readings_of(self._trace, process, self._zero_ns))
        for number, metric in enumerate(metrics):
            pid = as_json(self._process_ids[metric.process])
            row = -1 if metric.location is None else self._row_numbers[self._rows[metric.location]]
            own = {"id": number, "process": metric.process, "name": metric.name, "unit": metric.unit, "row": row}
            self._events([_meta("strobe_metric", 0, 0, **own)])
            where = "" if metric.location is None else f" ({self._locations[metric.location].name})"
            head = f'{{"ph": "C", "name": {as_json(metric.name + where)}, "met": {number}, "pid": {pid}, "tid": 0'
            for batch in metric.batches():
                self._events(f'{head}, "ts": {_us(ns)}, "args": {{"value": {as_real(v)}}}}}' for ns, v in batch)


class _Stacks:
    """Call stacks as the Trace Event Format has them: frames that know the one that called them, numbered from 1."""

    def __init__(self) -> None:
        self._frames: dict[tuple[int, str], int] = {}
        self._known: dict[str, int] = {}

    def frame(self, stack: str) -> int:
        """Return the number of the innermost frame of a stack, which has a line for each, outermost first."""
        known = self._known.get(stack)
        if known is None:
            known = 0
            for line in stack.split("\n"):
                known = self._frames.setdefault((known, line), len(self._frames) + 1)
            self._known[stack] = known
        return known

    def frames(self) -> Iterator[str]:
        for (parent, line), number in self._frames.items():
            above = f'"parent": "{parent}", ' if parent else ""
            yield f'"{number}": {{{above}"category": "samples", "name": {as_json(line)}}}'


def _category_of(region: Region, table: str, gpu: bool) -> str:
    """Return the category of an event with which its arguments are read into a table."""
    category = _category(region, gpu)
    return CATEGORY_OF_TABLE[table] if table and TABLE_OF_CATEGORY.get(category) != table else category


def _category(region: Region, gpu: bool) -> str:
    """Return Kineto's category of a region (on a `gpu`), or one of our own."""
    name, paradigm, role = region.name, region.paradigm, region.role
    if paradigm in GPU_PARADIGMS:
        if role == "kernel":
            return "kernel"
        if role == "copy":
            return "gpu_memset" if name.lower().startswith("memset") else "gpu_memcpy"
        return "cuda_driver" if re.match(r"cu[A-Z]", name) else "cuda_runtime"
    if paradigm == "torch":
        if gpu:
            return "gpu_user_annotation"
        own = ("Optimizer.", "ProfilerStep#", "enumerate(DataLoader)#", "nccl:", "gloo:")
        return "user_annotation" if name.startswith(own) else "cpu_op"
    if paradigm == "other":
        return region.module or ""
    return {"user": "user_annotation", "python": "python_function", "strobe": "overhead"}.get(paradigm, paradigm)


def _distinct(numbers: Sequence[int]) -> list[int]:
    """The same numbers without repetitions: processes of several machines may share numbers."""
    found: list[int] = []
    for number in numbers:
        while number in found:
            number += 10_000_000
        found.append(number)
    return found


def _meta(what: str, pid: object, tid: object, /, **args: object) -> str:
    ids = (each if isinstance(each, str) else as_json(each) for each in (pid, tid))
    return '{{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "ts": 0, "args": {}}}'.format(what, *ids, as_json(args))


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}" if ns >= 0 else f"-{-ns // 1000}.{-ns % 1000:03}"
