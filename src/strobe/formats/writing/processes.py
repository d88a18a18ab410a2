"""Processes and their readings in exports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.trace.definition_rows import Process
from strobe.trace.processes.process_part import exported_loops
from strobe.trace.trace import Trace

_BATCH = 1 << 16


def process_facts(trace: Trace, number: int, row: Process, zero_ns: int) -> dict[str, object]:
    """Return all facts about a process (a `row` of the table), with times from `zero_ns` before the trace's zero.

    native/formats/importing/exported_process.h reads them again.
    """
    facts = trace.readers[number].process()
    loops = exported_loops(trace.readers[number])
    note = {key: value for key, value in (("rank", row.rank), ("ranks", facts.get("ranks"))) if value is not None}
    return {
        "pid": row.pid,
        "parent_pid": row.parent_pid,
        "description": {
            "argv": facts["argv"],
            "host": row.host,
            "python": row.python,
            "main": row.main,
            **({"source_loops": loops} if loops else {}),
        },
        **({"note": note} if note else {}),
        "started_ns": row.started_ns + zero_ns,
        "ended_ns": row.ended_ns + zero_ns,
        "end_state": row.end_state,
        "exit_code": -1 if row.exit_code is None else row.exit_code,
    }


@dataclass(frozen=True)
class Readings:
    """The readings of a metric of a process, or of one of its locations."""

    process: int
    location: int | None
    name: str
    unit: str
    time_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]

    def batches(self) -> Iterator[Iterator[tuple[int, float]]]:
        """Yield times and values, at most 64 k at a time."""
        for at in range(0, len(self.time_ns), _BATCH):
            batch = slice(at, at + _BATCH)
            yield zip(self.time_ns[batch].tolist(), self.value[batch].tolist(), strict=True)


def readings_of(trace: Trace, process: int, zero_ns: int) -> list[Readings]:
    """Return the readings of a process, with times from `zero_ns` before the trace's zero."""
    shift = zero_ns - trace.zero_of(process)
    return [
        Readings(
            process,
            trace.location_of(process, metric["location"]),
            metric["name"],
            metric["unit"],
            metric["time_ns"] + shift,
            metric["value"],
        )
        for metric in trace.readers[process].metrics()
    ]


def process_name(row: Process) -> str:
    """Return the name that readers show for a process: that of Score-P if it has a rank."""
    if row.rank is not None:
        return f"MPI Rank {row.rank}"
    program = re.split(r"\s", (row.argv or "").strip())[0].rpartition("/")[2]
    return f"{program or 'process'} (pid {row.pid})"
