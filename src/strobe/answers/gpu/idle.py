"""Why GPUs had nothing to do: idle time by cause, of each GPU or each of its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from strobe.analyses.gpu.idle import ANALYSIS
from strobe.breakdown.step_spans import StepSpans, step_spans
from strobe.gpu.answers import rows_of_gpus
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.idle import CAUSES, LongestGap, idle_sums
from strobe.gpu.work import divided
from strobe.steps.folded_time import folded_stretches
from strobe.tables.table import Table
from strobe.trace.trace import Trace

_NO_GAP = dict.fromkeys(LongestGap._fields)


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
    weights = None if stands_for is None else partial(stands_for.weights_at, beside=1.0)
    sums = idle_sums(trace, device, per_stream=per_stream, kernel_gap_ns=kernel_gap_ns, weights=weights)
    if not per_stream and stands_for is not None:  # how long it was idle is known of all steps
        for of_device in sums.values():
            of_device.time_ns *= int(divided(trace, device)[0]) / max(1, of_device.time_ns.sum())
    for key, found in sorted(sums.items()):
        whole = max(1.0, float(found.time_ns.sum()))
        for k, cause in enumerate(CAUSES):
            if found.time_ns[k] or found.gaps[k]:
                yield {
                    **device.cells,
                    "stream": names[key] if per_stream else None,
                    "cause": cause,
                    "idle_ns": round(float(found.time_ns[k])),
                    "share": float(found.time_ns[k]) / whole,
                    "gaps": int(found.gaps[k]),
                    **(found.longest[k]._asdict() if k in found.longest else _NO_GAP),
                }
