"""The GPUs of a run, as each process used them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strobe.trace.definition_rows import Location, location_rows, ranks_of
from strobe.trace.trace import Trace

# Why a table about GPUs has no rows, if the recorder noted no reason.
_NO_DEVICE = (
    "no GPU did anything in this trace: `strobe doctor` lists what recording it needs; profiles of PyTorch, Nsight "
    "Systems, nvprof and Score-P contain it, too"
)
_LANE = re.compile(r" \(lane \d+\)$")


@dataclass(frozen=True)
class Device:
    """A GPU as one process used it. `number` is None if unknown."""

    process: int
    rank: int | None
    number: int | None
    locations: tuple[int, ...]
    spans: int
    first_ns: int
    last_ns: int

    @property
    def cells(self) -> dict[str, int | None]:
        """The cells of a row about it: `rank`, `process`, `device`."""
        return {"rank": self.rank, "process": self.process, "device": self.number}

    @property
    def name(self) -> str:
        """Its name in tables: `GPU 0`."""
        return "GPU" if self.number is None else f"GPU {self.number}"


def no_device(trace: Trace) -> str:
    """Return a sentence about why a table about GPUs has no rows: the recorder's reason, if it noted one."""
    reasons = [str(row["text"]) for row in trace.quality.to_pylist() if row["what"] == "gpu_failed"]
    return f"no GPU did anything in this trace: {reasons[0]}" if reasons else _NO_DEVICE


def devices(trace: Trace) -> list[Device]:
    """Return the GPUs of every process, in order of process and number."""
    ranks = ranks_of(trace)
    streams: dict[tuple[int, int], list[Location]] = {}
    for each in location_rows(trace):
        if each.kind == "stream" and (each.span_count or _is_folded(trace, each)):
            streams.setdefault((each.process, -1 if each.device is None else each.device), []).append(each)
    return [
        Device(
            process,
            ranks[process],
            None if number < 0 else number,
            tuple(each.location for each in own),
            sum(each.span_count for each in own),
            min(each.first_ns for each in own if each.span_count),
            max(each.last_ns for each in own if each.span_count),
        )
        for (process, number), own in sorted(streams.items())
        if any(each.span_count for each in own)
    ]


def _is_folded(trace: Trace, stream: Location) -> bool:
    """Whether all of a stream is statistics: work that overlaps has a second lane, which may be short."""
    return stream.process in trace.folded and stream.location in trace.folded[stream.process].location


def devices_of_sums(trace: Trace) -> list[Device]:
    """Return the GPUs of a profile, which has sums instead of spans; none of a trace with spans."""
    if trace.span_count:
        return []
    summed = {
        (each.process, each.device): each.location
        for each in location_rows(trace)
        if each.kind == "stream" and _is_folded(trace, each)
    }
    return [
        Device(process, ranks_of(trace)[process], number, (location,), 0, 0, 0)
        for (process, number), location in summed.items()
    ]


def streams_of(trace: Trace, device: Device) -> dict[int, int]:
    """Return, for every location of the device, the first one of the same stream: overlapping work has several."""
    locations = location_rows(trace)
    first: dict[int, int] = {}
    return {each: first.setdefault(locations[each].thread_id, each) for each in sorted(device.locations)}


def stream_name(location: str) -> str:
    """Return the name of the stream of a location: what it ran at once lies in several, `stream 7 (lane 2)`."""
    return _LANE.sub("", location)


def beside_streams(trace: Trace, device: Device) -> list[int]:
    """Return the locations beside a device's streams, which hold what these waited for."""
    return [
        location.location
        for location in location_rows(trace)
        if location.kind == "task" and location.span_count
        if (location.process, location.device) == (device.process, device.number)
    ]
