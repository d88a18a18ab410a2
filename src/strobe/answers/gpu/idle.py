"""Why GPUs had nothing to do: idle time by cause, of each GPU or each of its streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from strobe.analyses.gpu.idle import ANALYSIS
from strobe.gpu.answers import gpu_note, rows_of_gpus
from strobe.gpu.devices import Device
from strobe.gpu.idle import CAUSES, gaps
from strobe.steps.thread_spans import Ints
from strobe.tables.table import Table
from strobe.trace.trace import Trace


class _Gap(NamedTuple):
    """The longest gap of a cause: the longer of two is the greater."""

    longest_ns: int
    start_ns: int
    location: int
    row: int


_NO_GAP = dict.fromkeys(_Gap._fields)


def run(trace: Trace, *, by: str, kernel_gap_ns: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.idle`."""
    per_stream = by == "stream"
    columns = ANALYSIS.columns_with(by=by)
    rows = rows_of_gpus(trace, _of_device, columns, per_stream=per_stream, kernel_gap_ns=kernel_gap_ns)
    note = gpu_note(trace, rows, "no GPU has a gap between two activities")
    about = f"gaps of each {'stream' if per_stream else 'GPU'} from its first to its last activity"
    return Table(rows, about=about, note=note)


def _of_device(trace: Trace, device: Device, per_stream: bool, kernel_gap_ns: int) -> Iterator[Mapping[str, object]]:
    """Yield a row for each cause, of a GPU or of each of its streams."""
    names = trace.locations.column("name")
    time_ns, count = (defaultdict[int, Ints](lambda: np.zeros(len(CAUSES), dtype=np.int64)) for _ in range(2))
    longest: dict[tuple[int, int], _Gap] = {}
    for found in gaps(trace, device, per_stream=per_stream, kernel_gap_ns=kernel_gap_ns):
        for key in np.unique(found.key).tolist():
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
        for k, cause in enumerate(CAUSES):
            if time_ns[key][k] or count[key][k]:
                yield {
                    **device.cells,
                    "stream": names[key] if per_stream else None,
                    "cause": cause,
                    "idle_ns": int(time_ns[key][k]),
                    "share": int(time_ns[key][k]) / whole,
                    "gaps": int(count[key][k]),
                    **(longest[key, k]._asdict() if (key, k) in longest else _NO_GAP),
                }
