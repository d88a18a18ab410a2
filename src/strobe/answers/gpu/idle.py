"""Why GPUs had nothing to do: idle time by cause, of each GPU or each of its streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from strobe.analyses.gpu.idle import ANALYSIS
from strobe.breakdown.step_spans import StepSpans, step_spans
from strobe.gpu.answers import rows_of_gpus
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.idle import CAUSES, gaps
from strobe.gpu.work import divided
from strobe.steps.folded_time import folded_stretches
from strobe.steps.thread_spans import Ints
from strobe.tables.column_arrays import Floats
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
    gpus = devices(trace)
    folded = {device.process for device in gpus if len(folded_stretches(trace, device.process))}
    steps = {each.process: each for each in step_spans(trace) if each.process in folded} if folded else {}
    rows = rows_of_gpus(trace, _of_device, columns, per_stream=per_stream, kernel_gap_ns=kernel_gap_ns, steps=steps)
    note = ""
    if not len(rows):
        note = "no GPU has a gap between two activities" if gpus else no_device(trace)
    elif folded:
        note = "why GPUs are idle in folded steps is estimated by the kept steps of their class"
    about = f"gaps of each {'stream' if per_stream else 'GPU'} from its first to its last activity"
    return Table(rows, about=about, note=note)


def _of_device(
    trace: Trace, device: Device, per_stream: bool, kernel_gap_ns: int, steps: Mapping[int, StepSpans]
) -> Iterator[Mapping[str, object]]:
    """Yield a row for each cause, of a GPU or of each of its streams."""
    names = trace.locations.column("name")
    stands_for = steps.get(device.process)
    count = defaultdict[int, Ints](lambda: np.zeros(len(CAUSES), dtype=np.int64))
    time_ns = defaultdict[int, Floats](lambda: np.zeros(len(CAUSES)))
    longest: dict[tuple[int, int], _Gap] = {}
    for found in gaps(trace, device, per_stream=per_stream, kernel_gap_ns=kernel_gap_ns):
        weighted = found.time_ns if stands_for is None else found.time_ns * _weights(stands_for, found.end_ns)
        for key in np.unique(found.key).tolist():
            time_ns[key] += weighted.sum(axis=1)
            count[key] += np.bincount(found.cause, minlength=len(CAUSES))
            for cause in np.unique(found.cause).tolist():
                at = np.flatnonzero(found.cause == cause)
                at = at[np.argmax((found.end_ns - found.start_ns)[at])]
                start = int(found.start_ns[at])
                one = _Gap(int(found.end_ns[at]) - start, start, int(found.location[at]), int(found.row[at]))
                longest[key, cause] = max(longest.get((key, cause), one), one)
    if not per_stream and stands_for is not None:  # how long it was idle is known of all steps
        for of_device in time_ns.values():
            of_device *= int(divided(trace, device)[0]) / max(1, of_device.sum())
    for key in sorted(time_ns):
        whole = max(1.0, float(time_ns[key].sum()))
        for k, cause in enumerate(CAUSES):
            if time_ns[key][k] or count[key][k]:
                yield {
                    **device.cells,
                    "stream": names[key] if per_stream else None,
                    "cause": cause,
                    "idle_ns": round(float(time_ns[key][k])),
                    "share": float(time_ns[key][k]) / whole,
                    "gaps": int(count[key][k]),
                    **(longest[key, k]._asdict() if (key, k) in longest else _NO_GAP),
                }


def _weights(steps: StepSpans, end_ns: Ints) -> Floats:
    """Return how many steps of the run the one stands for in which each gap ends; 1 outside of steps."""
    at = np.searchsorted(steps.start_ns, end_ns, side="left") - 1
    inside = (at >= 0) & (end_ns <= steps.end_ns[at]) & steps.counted[at]
    return np.where(inside, steps.weight[at], 1.0)
