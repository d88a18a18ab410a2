"""Why GPUs had nothing to do: idle time by cause, of each GPU or each of its streams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from strobe.analyses.gpu.idle import ANALYSIS
from strobe.gpu.devices import devices, no_device
from strobe.gpu.folded_work import folded_note
from strobe.gpu.idle import CAUSES, gaps
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes


class _Gap(NamedTuple):
    """The longest gap of a cause: the longer of two is the greater."""

    longest_ns: int
    start_ns: int
    location: int
    row: int


_NO_GAP = dict.fromkeys(_Gap._fields)


def run(trace: Trace, *, by: str, kernel_gap_ns: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.idle`."""
    rows = rows_of_processes(trace, _of_process, by=by, kernel_gap_ns=kernel_gap_ns)
    nothing = "no GPU has two activities with time in between" if devices(trace) else no_device(trace)
    note = folded_note(trace, devices(trace)) if len(rows) else nothing
    about = f"gaps of each {'stream' if by == 'stream' else 'GPU'} from its first to its last activity"
    return Table(rows, name="idle", about=about, note=note)


def _of_process(part: Trace, by: str, kernel_gap_ns: int) -> pa.Table:
    """Return the rows of one process."""
    names = part.locations.column("name")
    rows: list[dict[str, object]] = []
    for device in devices(part):
        time_ns, count = dict[int, np.ndarray](), dict[int, np.ndarray]()
        longest: dict[tuple[int, int], _Gap] = {}
        for found in gaps(part, device, per_stream=by == "stream", kernel_gap_ns=kernel_gap_ns):
            for key in np.unique(found.key).tolist():
                time_ns.setdefault(key, np.zeros(len(CAUSES), dtype=np.int64))
                count.setdefault(key, np.zeros(len(CAUSES), dtype=np.int64))
                time_ns[key] += found.time_ns.sum(axis=1)
                count[key] += np.bincount(found.cause, minlength=len(CAUSES))
                for cause in np.unique(found.cause).tolist():
                    at = np.flatnonzero(found.cause == cause)
                    at = at[np.argmax((found.end_ns - found.start_ns)[at])]
                    start = int(found.start_ns[at])
                    one = _Gap(int(found.end_ns[at]) - start, start, int(found.location[at]), int(found.row[at]))
                    longest[key, cause] = max(longest.get((key, cause), one), one)
        for key in sorted(time_ns):
            whole = max(1, int(time_ns[key].sum()))
            rows += [
                {
                    **device.cells,
                    "stream": names[key] if by == "stream" else None,
                    "cause": cause,
                    "idle_ns": int(time_ns[key][k]),
                    "share": int(time_ns[key][k]) / whole,
                    "gaps": int(count[key][k]),
                    **(longest[key, k]._asdict() if (key, k) in longest else _NO_GAP),
                }
                for k, cause in enumerate(CAUSES)
                if time_ns[key][k] or count[key][k]
            ]
    return make_table(ANALYSIS.columns_with(by=by), rows).to_arrow()
