"""What rocprofv3 measured inside of kernels: hardware counters by dispatch, and samples of program counters."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from strobe.formats.reading.database_tables import TableImport
from strobe.formats.reading.import_process import NO_PATH, ImportProcess
from strobe.formats.reading.sqlite_input import NONE, Batch, combinations
from strobe.formats.rocm.layouts import KERNELS, LAYOUTS, PLACED, READINGS, SAMPLES
from strobe.gpu.measured_metrics import keep_by_kernel
from strobe.gpu.nvidia.ncu import KernelMetric

# "file.cpp:77", and what it is inlined into behind it.
_PLACE = re.compile(r"(.+?):(\d{1,9})(?!\S)")


@dataclass
class _Counted:
    """What a counter counted in all dispatches of a kernel."""

    dispatches: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add dispatches: at least one."""
        self.dispatches += len(values)
        self.total += float(values.sum())
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))


def read_readings(tables: TableImport, folder: Path) -> None:
    """Add hardware counters of kernels: a reading is what one dispatch counted, at its end.

    Their means by kernel are kept in `folder`, as those of `strobe metrics` are.
    """
    counted: dict[tuple[str, str], _Counted] = {}
    untimed: dict[tuple[ImportProcess, int, str], set[int]] = {}
    for batch in tables.batches(READINGS):
        for process, part in tables.by_process(batch):
            values, ends = part.reals("value"), part.integers_or("end")
            devices, dispatches = part.integers_or("deviceId"), part.integers_or("dispatch")
            if values is None:
                continue
            sound = np.isfinite(values)
            tables.counters["unreadable_values"] += int((~sound).sum())
            first, group = combinations([part.cells("counter"), part.cells("name")])
            for number, row in enumerate(first.tolist()):
                mine = sound & (group == number)
                if not mine.any():
                    continue
                counter, kernel = _word(part, "counter", row, "unnamed counter"), _kernel(part, "name", row)
                counted.setdefault((kernel, counter), _Counted()).add(values[mine])
                timed, without = mine & (ends != NONE), mine & (ends == NONE)
                process.samples(counter, "", ends[timed], values[timed])
                for device, dispatch in zip(devices[without].tolist(), dispatches[without].tolist(), strict=True):
                    untimed.setdefault((process, device, kernel), set()).add(dispatch)
            tables.taken[READINGS] += int(sound.sum())
    for (process, device, kernel), those in untimed.items():  # of ROCm 6.2
        path = process.out.path(NO_PATH, process.region(kernel, "hip", "kernel"))
        process.out.totals(process.stream(device, NONE), path, len(those), 0, 0, 0, 0)
        process.count("kernels_without_time", len(those))
    if counted:
        metrics = (
            KernelMetric(kernel, counter, each.dispatches, each.total / each.dispatches, each.low, each.high, "")
            for (kernel, counter), each in counted.items()
        )
        keep_by_kernel(folder, metrics, add=True)


def read_samples(tables: TableImport) -> None:
    """Add samples of program counters: the kernel, and in it the instruction with its source line."""
    database = tables.database
    if SAMPLES not in database.tables or not database.count(SAMPLES):
        return
    more = {"deviceId": "INTEGER", "streamId": "INTEGER", "kernel": "TEXT"}
    kernels = (
        "SELECT dispatch, processId, min(name) AS kernel, deviceId, streamId "
        f'FROM "{PLACED}{KERNELS}" WHERE dispatch IS NOT NULL GROUP BY dispatch, processId'
    )
    cells = ", ".join([*(f's."{key}"' for key in LAYOUTS[SAMPLES]), *(f"k.{key}" for key in more)])
    database.derive(
        PLACED + SAMPLES,
        f'SELECT {cells} FROM "{SAMPLES}" s LEFT JOIN ({kernels}) k '
        "ON k.dispatch = s.dispatch AND ifnull(k.processId, s.processId) IS ifnull(s.processId, k.processId)",
        {**LAYOUTS[SAMPLES], **more},
    )
    lines: dict[ImportProcess, dict[tuple[int, str, int, str], int]] = {}
    for batch in tables.batches(PLACED + SAMPLES):
        for process, part in tables.by_process(batch):
            locations = tables.locations(process, part, "instructions")
            columns = [part.cells(each) for each in ("kernel", "instruction", "comment")]
            first, group = combinations([locations.astype(np.int64), *columns])
            stacks = {}
            hits = np.bincount(group, minlength=len(first)).tolist()
            for number, row in enumerate(first.tolist()):
                kernel, running = _kernel(part, "kernel", row), _word(part, "instruction", row, "<unknown instruction>")
                known_place = part.cells("instruction")[row] != NONE  # else the comment is an address
                place = _PLACE.match(_word(part, "comment", row, "")) if known_place else None
                if place is not None:
                    running += f" ({place[1]}:{place[2]})"
                    line = int(locations[row]), place[1], int(place[2]), kernel
                    known = lines.setdefault(process, {})
                    known[line] = known.get(line, 0) + hits[number]
                stacks[number] = f"{kernel}\n{running}"
            states = part.cells("state")
            tables.taken[PLACED + SAMPLES] += process.rows(
                "samples",
                locations,
                {
                    "time_ns": (part.integers_or("start"), None),
                    "call_stack": process.words(group, stacks),
                    "state": process.words(states, dict(enumerate(part.words.get("state", [])))),
                },
            )
    for process, known in lines.items():
        places, files, numbers, kernels_of = zip(*known, strict=True)
        process.rows(
            "lines",
            np.array(places, dtype=np.uint32),
            {
                "file": (np.array([process.text(each) for each in files], dtype=np.int64), None),
                "line": (np.array(numbers, dtype=np.int64), None),
                "function": (np.array([process.text(each) for each in kernels_of], dtype=np.int64), None),
                "hits": (np.array(list(known.values()), dtype=np.int64), None),
            },
        )


def _word(part: Batch, column: str, row: int, unknown: str) -> str:
    code = int(part.cells(column)[row])
    return unknown if code == NONE else str(part.words[column][code])


def _kernel(part: Batch, column: str, row: int) -> str:
    return _word(part, column, row, "<unnamed kernel>")
