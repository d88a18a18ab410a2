"""What each rank does at each moment: computing, communicating, or idle, because it waits for another rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import Device, devices
from strobe.gpu.work import KINDS, work
from strobe.ranks.mesh.groups import communication
from strobe.ranks.mesh.intervals import Intervals
from strobe.ranks.waits.message_calls import spans_of
from strobe.steps.folded_time import folded_stretches
from strobe.steps.thread_spans import main_location
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import ranks_of, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@dataclass(frozen=True)
class RankTime:
    """The time of a rank. communicating: in calls or kernels of communication, which no computation hides, without
    idle; idle: of these, the waits for another rank, and on a GPU the time in which nothing runs. The rest it computes.
    """

    process: int
    rank: int
    communicating: Intervals
    idle: Intervals

    @property
    def outside(self) -> Intervals:
        """The moments in which it does not compute."""
        return Intervals.of(
            np.append(self.communicating.begin_ns, self.idle.begin_ns),
            np.append(self.communicating.end_ns, self.idle.end_ns),
        )


@cached_on_trace
def rank_times(trace: Trace) -> dict[int, RankTime]:
    """Return what the main thread of each rank, or its GPU, does; by process. Computed once per open trace."""
    calls = communication(trace).calls
    on_gpus = {device.process: device for device in devices(trace)}
    talks = regions_where(trace, lambda region: region.group == "communication")
    found = dict[int, RankTime]()
    for process, rank in enumerate(ranks_of(trace)):
        if rank is None:
            continue
        (own,) = np.nonzero(calls.process == process)
        waits = Intervals.of(calls.begin_ns[own], (calls.begin_ns + calls.wait_ns)[own])
        if process in on_gpus:
            communicating, idle = _of_gpu(trace, on_gpus[process], waits)
        else:
            (folded,) = np.nonzero(_in_folded(trace, process, calls.begin_ns[own]))
            folded = own[folded]
            main = main_location(trace, process)
            if main is None:
                continue
            spans = spans_of(trace, main, talks)
            begin, end = (
                np.append(spans.start_ns, calls.begin_ns[folded]),
                np.append(spans.end_ns, calls.end_ns[folded]),
            )
            every = Intervals.of(begin, end)
            idle = every & waits
            communicating = every - idle
        found[process] = RankTime(process, rank, communicating, idle)
    return found


def _in_folded(trace: Trace, process: int, times_ns: Ints) -> Ints:
    stretches = folded_stretches(trace, process)
    return np.asarray(Intervals.of(stretches.begin_ns, stretches.end_ns).within(times_ns, times_ns + 1))


def _of_gpu(trace: Trace, device: Device, waits: Intervals) -> tuple[Intervals, Intervals]:
    """Return when a GPU communicates without computing, and when it does neither, or waits for another rank."""
    found = work(trace, device)
    of_kind = [found.kind == at for at in range(len(KINDS))]
    computes, communicates, copies = (Intervals.of(found.start_ns[each], found.end_ns[each]) for each in of_kind)
    busy = Intervals.of(
        np.concatenate((computes.begin_ns, copies.begin_ns)), np.concatenate((computes.end_ns, copies.end_ns))
    )
    exposed = communicates - busy
    waiting = exposed & waits
    whole = Intervals(np.array([device.first_ns]), np.array([device.last_ns]))
    nothing = (whole - busy) - communicates
    idle = Intervals.of(np.append(waiting.begin_ns, nothing.begin_ns), np.append(waiting.end_ns, nothing.end_ns))
    return exposed - waiting, idle
