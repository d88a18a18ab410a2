"""What else happened in the steps of an iteration stack: the thread of the backward pass, and the kernels of each GPU.

Each is a band of positions of its own, aligned by itself. A kernel belongs to the step that launched it, and kernels
come in the order of their launches: that is the same in every step, whatever the streams do meanwhile.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import launches
from strobe.steps.iteration_stack.alignment import (
    Aligned,
    StepEvents,
    align_events,
    align_steps,
    paths_without_numbers,
)
from strobe.steps.iteration_stack.stack import Align
from strobe.steps.thread_spans import Stream, backward_stream, main_location
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.trace import Trace

BACKWARD_BAND = "backward thread"


def bands_of(trace: Trace, process: int, stream: Stream) -> dict[str, Align]:
    """Return what aligns the bands of a process beside its main thread, whose spans are `stream`, by their names."""
    backward = backward_stream(trace, process, stream)
    bands: dict[str, Align] = (
        {} if backward is None else {BACKWARD_BAND: partial(align_steps, backward, elsewhere=True)}
    )
    for device in devices(trace):
        if device.process == process:
            bands[device.name] = partial(_align_kernels, trace, device, stream)
    return bands


def _align_kernels(trace: Trace, device: Device, stream: Stream, start_ns: Ints, end_ns: Ints, usual: Bools) -> Aligned:
    """Align the kernels and copies of a GPU that each step launched."""
    paths = np.append(paths_without_numbers(stream), -1)
    main = main_location(trace, device.process)
    parts, launched_ns = [StepEvents.joined(())], [np.empty(0, dtype=np.int64)]
    for found, launched in launches(trace, device):
        when = np.where(launched.call.start_ns >= 0, launched.call.start_ns, found.start_ns)
        step = np.searchsorted(start_ns, when, side="right") - 1
        inside = (step >= 0) & (when < end_ns[step])
        region = found.region.astype(np.int64)
        elsewhere = (launched.call.location >= 0) & (launched.call.location != main)
        code = paths[launched.path]
        events = StepEvents(step, region, region, code, found.start_ns, found.end_ns, elsewhere)
        parts.append(events.chosen(inside))
        launched_ns.append(when[inside])
    events = StepEvents.joined(parts)
    order = np.lexsort((events.start_ns, np.concatenate(launched_ns), events.step))
    return align_events(stream, events.chosen(order), start_ns, end_ns, usual)
