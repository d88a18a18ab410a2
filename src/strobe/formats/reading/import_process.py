"""One process of an import, filled by columns: the layer of formats in Python over the native ImportedProcess."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from strobe import native
from strobe.formats.reading.sqlite_input import NONE, Batch, combinations, factor
from strobe.model.kinds import PARADIGMS, ROLES
from strobe.model.losses import RECORDS_LEFT_OUT, RECORDS_TAKEN
from strobe.model.plugins import Imported, ImportSource, ImportTarget
from strobe.model.schema import EVENT_TABLES, TABLES

Whole = npt.NDArray[np.int64]
Cells = tuple[Whole, npt.NDArray[np.uint8] | None]  # values, and which of them are there
_Column = tuple[int, Whole, npt.NDArray[np.uint8] | None]  # the same, behind the place of the column
_Layout = tuple[int, dict[str, int]]  # number of the table, and the places of its columns

# Several processes of one file wait for their order at once: each gets a part of the buffer.
_BUFFERS = 8
# Times beyond this, in either direction, are wrong: the sum of two of them would overflow.
_FARTHEST_NS = 2**62
_LARGEST_PID = 2**62
_CELL_TYPES = {"string": 2, "float64": 1}
NO_PATH = 0xFFFFFFFF  # the call path around those at the root
_NO_STREAM = (0xFFFFFFFF, -1, NONE)
_KINDS = {"thread": 0, "stream": 1, "task": 2}


class ImportProcess:
    """Writes the block file of one process. Texts, regions, locations and table layouts are made as they are asked for.

    Columns are int64; `NONE` stands for a cell that is missing. Texts are numbers from `text`, reals are their bits.
    `out` is what writes them, for the little that needs no columns.
    """

    def __init__(self, target: ImportTarget, pid: int, *, buffers: int = _BUFFERS) -> None:
        path = Path(target.folder) / f"process-{target.next_number()}.blocks"
        self.pid = pid
        self.out = native.ImportedProcess(str(path), max(target.buffer_bytes // buffers, 1 << 20))
        self._locations: dict[object, int] = {}
        self._stream_names: dict[str, int] = {}  # the context whose stream has the name
        self._used = False
        self._layouts: dict[str, _Layout] = {}

    @property
    def first_ns(self) -> int:
        """First moment that something was recorded at."""
        return self.out.first_ns

    @property
    def last_ns(self) -> int:
        """Last moment that something was recorded at."""
        return self.out.last_ns

    @property
    def used(self) -> bool:
        """Whether it has any event with a time."""
        return self._used

    def count(self, what: str, n: int = 1) -> None:
        """Add to a number of the quality table."""
        if n:
            self.out.count(what, n)

    def taken(self, n: int = 1) -> None:
        """Count records of the file that were taken."""
        self.count(RECORDS_TAKEN, n)

    def left_out(self, reason: str, n: int = 1) -> None:
        """Count records of the file that were left out, and why."""
        self.count(RECORDS_LEFT_OUT, n)
        self.count(reason, n)

    def text(self, value: str) -> int:
        """Return the number of a text."""
        return self.out.text(value)

    def region(self, name: str, paradigm: str, role: str, module: str = "", file: str = "", line: int = 0) -> int:
        """Return the number of a region."""
        return self.out.region(name, PARADIGMS.index(paradigm), ROLES.index(role), file, line, module)

    def location(
        self,
        key: object,
        name: str,
        thread_id: int,
        kind: Literal["thread", "stream", "task"] = "thread",
        device: int = -1,
    ) -> int:
        """Return the number of the location that was made for `key`; make it the first time."""
        known = self._locations.get(key)
        if known is None:
            wrapped = thread_id & 0xFFFFFFFFFFFFFFFF
            known = self._locations[key] = self.out.location(name, wrapped, _KINDS[kind], device)
        return known

    def streams(self, part: Batch, row: str = "") -> npt.NDArray[np.uint32] | None:
        """Return the location of each row by its device, stream and context; None if it has no such columns.

        `row` names a location beside the stream's, for what does not nest into its work.
        """
        device, stream, context = (part.integers(name) for name in ("deviceId", "streamId", "contextId"))
        if device is None or stream is None:
            return None
        columns = [device, stream] if context is None else [device, stream, context]
        first, codes = combinations(columns)
        made = [self.stream(*(int(column[i]) for column in columns), row=row) for i in first]
        return np.array(made, dtype=np.uint32)[codes]

    def stream(self, device: int, stream: int, context: int = NONE, *, row: str = "") -> int:
        """Return the number of a stream's location; each of the three may be NONE."""
        key = ("stream", device, stream, context, row)
        if key not in self._locations:
            gpu = "GPU" if device == NONE else f"GPU {device}"
            if stream in _NO_STREAM:
                name = gpu if context == NONE else f"{gpu} context {context}"
            else:
                name = f"{gpu} stream {stream}"
                # Streams of several contexts may have one number.
                if self._stream_names.setdefault(name, context) != context:
                    name += f" context {context}"
            number = -1 if device == NONE else device
            self.location(key, f"{name} {row}".rstrip(), max(stream, 0), "task" if row else "stream", number)
        return self._locations[key]

    def words(self, codes: Whole, word_of: Mapping[int, object], shown: Callable[[object], str] = str) -> Cells:
        """Return a column of texts: `word_of` names every value of `codes`; None and NONE mark empty cells."""
        unique, inverse = factor(codes)
        found = [None if code == NONE else word_of.get(code) for code in unique.tolist()]
        numbers = np.array([0 if word is None else self.text(shown(word)) for word in found], dtype=np.int64)
        valid = np.array([word is not None for word in found], dtype=np.uint8)
        return numbers[inverse], None if valid.all() else valid[inverse]

    def spans(
        self,
        location: npt.NDArray[np.uint32],
        start_ns: Whole,
        end_ns: Whole,
        region: npt.NDArray[np.uint32],
        tables: Mapping[str, Mapping[str, Cells]] | None = None,
        arguments: Sequence[tuple[str | Cells, Cells]] = (),
    ) -> int:
        """Add spans with their attributes: columns of side tables, and `arguments` (a key or one for each, values as
        texts).

        Returns how many were added.

        Kept and counted: ends that are missing (`spans_without_end`) or before their start (`negative_durations`), both
        with duration 0. Not kept: starts that are missing or absurd (`events_without_time`, `times_out_of_range`).
        """
        missing, far = start_ns == NONE, _far(start_ns)
        if far.any():
            self.count("events_without_time", int(missing.sum()))
            self.count("times_out_of_range", int((far & ~missing).sum()))
            keep = ~far
            location, region = location[keep], region[keep]
            start_ns, end_ns = start_ns[keep], end_ns[keep]
            tables = {
                name: {column: _kept(cells, keep) for column, cells in columns.items()}
                for name, columns in (tables or {}).items()
            }
            arguments = [
                (key if isinstance(key, str) else _kept(key, keep), _kept(cells, keep)) for key, cells in arguments
            ]
        open_end = _far(end_ns)
        if open_end.any():
            self.count("spans_without_end", int(open_end.sum()))
            end_ns = np.where(open_end, start_ns, end_ns)
        given = [self._given(name, columns) for name, columns in (tables or {}).items() if columns]
        for key, (values, valid) in arguments:
            keys = np.full(len(values), self.text(key), dtype=np.int64) if isinstance(key, str) else key[0]
            given.append(self._given("arguments", {"key": (keys, valid), "value": (values, valid)}))
        self._used = self._used or len(start_ns) > 0
        self.out.spans(location, start_ns, end_ns - start_ns, region, given)
        return len(start_ns)

    def rows(self, table: str, location: npt.NDArray[np.uint32], columns: Mapping[str, Cells]) -> int:
        """Add rows of a table of events, and return how many were added.

        Where they have a time, those without a sound one are counted and left out.
        """
        if "time_ns" in columns and (far := _far(columns["time_ns"][0])).any():
            self.count("events_without_time", int(far.sum()))
            keep = ~far
            location = location[keep]
            columns = {name: _kept(cells, keep) for name, cells in columns.items()}
        layout, cells = self._given(table, columns)
        self.out.rows(layout, location, cells)
        return len(location)

    def marks(
        self, location: npt.NDArray[np.uint32], time_ns: Whole, name: Whole, category: str, arguments: Whole
    ) -> int:
        """Add marks, and return how many; names, and arguments as JSON, are numbers of texts."""
        columns = {"time_ns": time_ns, "name": name, "arguments": arguments}
        columns["category"] = np.full(len(time_ns), self.text(category), dtype=np.int64)
        return self.rows("marks", location, {key: (values, None) for key, values in columns.items()})

    def samples(self, name: str, unit: str, time_ns: Whole, value: npt.NDArray[np.float64]) -> int:
        """Add readings of a metric of the whole process, and return how many were added."""
        sound = ~_far(time_ns)
        self.count("events_without_time", int((~sound).sum()))
        self._used = self._used or bool(sound.any())
        self.out.samples(
            self.out.metric(name, unit), np.ascontiguousarray(time_ns[sound]), np.ascontiguousarray(value[sound])
        )
        return int(sound.sum())

    def finish(self, name: str, source: str, *, main: bool, rank: int | None = None, ranks: int | None = None) -> None:
        """Write everything. `name` is its command or its name in the file."""
        description = {"argv": [name], "main": main, "imported_from": source}
        job = {"rank": rank} if ranks is None else {"rank": rank, "ranks": ranks}
        note = "" if rank is None else json.dumps(job)
        pid = self.pid if abs(self.pid) <= _LARGEST_PID else 0  # else it cannot be the number of a process
        self.out.finish(pid, 0, json.dumps(description), note)

    def _given(self, table: str, columns: Mapping[str, Cells]) -> tuple[int, list[_Column]]:
        """Return the number of a table, and columns as the native side takes them; one without any cell stays here.

        A table has one layout, whatever columns come: only so are its rows written in order of the spans.
        """
        if table not in self._layouts:
            layout = [(c.name, _CELL_TYPES.get(c.type, 0)) for c in TABLES[table] if c.name not in ("location", "row")]
            number = self.out.table(table, layout, table not in EVENT_TABLES)
            self._layouts[table] = number, {name: at for at, (name, _) in enumerate(layout)}
        number, place = self._layouts[table]
        return number, [
            (place[name], np.ascontiguousarray(values), None if valid is None else np.ascontiguousarray(valid))
            for name, (values, valid) in columns.items()
            if valid is None or valid.any()
        ]


def finish_all(
    processes: Mapping[int, ImportProcess],
    source: ImportSource,
    name_of: Callable[[int], str],
    *,
    counters: Mapping[str, int],
    properties: Mapping[str, object],
    base_ns: int | None = None,
    host: str = "",
    ranks: Mapping[int, int] | None = None,
) -> Imported:
    """Write the processes of a file, by their keys, and return the facts about it. `counters` are those of the file."""
    ranks = ranks or {}
    counted = {what: n for what, n in counters.items() if n}
    first = next(iter(processes.values()))
    for what, n in counted.items():  # shown with the first process: the file has no row of its own
        first.count(what, n)
    for key, process in processes.items():
        process.finish(name_of(key), source.name, main=process is first, rank=ranks.get(key))
    used = [process for process in processes.values() if process.used]
    ranked = [rank for key, rank in ranks.items() if key in processes]
    return Imported(
        processes=len(processes),
        first_ns=min((process.first_ns for process in used), default=0),
        last_ns=max((process.last_ns for process in used), default=0),
        base_ns=base_ns,
        rank=ranked[0] if len(ranked) == 1 else None,
        host=host,
        properties=properties,
        counters=counted,
    )


def present_columns(part: Batch, columns: Mapping[str, str]) -> dict[str, Cells]:
    """Return those of some columns of integers that a table has, under the names that they have in ours."""
    found = ((to, part.integers(column)) for column, to in columns.items())
    return {to: present(values) for to, values in found if values is not None}


def present(values: Whole) -> Cells:
    """Return a column of integers with its missing cells marked."""
    valid = values != NONE
    return values, None if valid.all() else valid.astype(np.uint8)


def _far(times: Whole) -> npt.NDArray[np.bool_]:
    return (times > _FARTHEST_NS) | (times < -_FARTHEST_NS)


def _kept(cells: Cells, keep: npt.NDArray[np.bool_]) -> Cells:
    values, valid = cells
    return values[keep], None if valid is None else valid[keep]
