"""How long what GPUs ran took from its call to its end: the call, the queue, the execution; and how long queues are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from strobe.analyses.gpu.launches import ANALYSIS
from strobe.gpu.answers import gpu_note, rows_of_gpus
from strobe.gpu.devices import Device, stream_name, streams_of
from strobe.gpu.kernel_names import short_name, with_short_names
from strobe.gpu.launch_queues import Queue
from strobe.gpu.launches import launches
from strobe.gpu.work import COPY, kind_of_region
from strobe.sums.groups import Groups, Spread, Weighted
from strobe.tables.table import Table
from strobe.trace.trace import Trace

# Statistics of the parts of an execution: the columns are PART_STATISTIC_ns.
_PARTS = ("all", "call", "queue", "run")
_NO_CALLS = "no launching calls in this trace; profiles of PyTorch, Nsight Systems and nvprof have them"


def run(trace: Trace, *, by: str, long_call_us: int, late_us: int, full_queue: int) -> Table:
    """Return the answer; see `strobe.analyses.gpu.launches`."""
    columns = ANALYSIS.columns_with(by=by)
    if by == "stream":
        rows = rows_of_gpus(trace, _queues, columns, full=full_queue)
        about = "launches that wait on each stream"
    else:
        rows = rows_of_gpus(trace, _executions, columns, long_ns=long_call_us * 1000, late_ns=late_us * 1000)
        rows = with_short_names(rows)
        about = "what all GPUs ran, and the calls that launched it"
    note = gpu_note(trace, rows, _NO_CALLS)
    return Table(rows, about=about, note=note).sort("launches")


def _executions(trace: Trace, device: Device, long_ns: int, late_ns: int) -> Iterator[Mapping[str, object]]:
    groups = Groups()
    spreads = {part: Spread() for part in _PARTS}
    short, long, late = (Weighted() for _ in range(3))
    for found, by_whom in launches(trace, device):
        (at,) = np.nonzero(by_whom.call.row >= 0)
        group = groups.numbers([found.region[at].astype(np.int64), by_whom.call.region[at]])
        start, end = found.start_ns[at], found.end_ns[at]
        called, returned = by_whom.call.start_ns[at], by_whom.call.end_ns[at]
        queued, call, ran = start >= returned, returned - called, end - start
        spreads["all"].add(group, end - called)
        spreads["call"].add(group, call)
        spreads["queue"].add(group[queued], (start - returned)[queued])
        spreads["run"].add(group, ran)
        flags = (ran < call) & (call <= long_ns), call > long_ns, start - returned > late_ns
        for counter, flag in zip((short, long, late), flags, strict=True):
            counter.add(group[flag], ran[flag].astype(np.float64))
    count = len(groups)
    sums = {part: spread.summary(count) for part, spread in spreads.items()}
    shorter, longer, later = (counter.count(count) for counter in (short, long, late))
    names, kinds = trace.regions.to_arrow().column("name").to_pylist(), kind_of_region(trace)
    for k, (region, call_region) in enumerate(groups.keys):
        yield {
            **device.cells,
            "kernel": names[region] if 1 << int(kinds[region]) == COPY else short_name(names[region]),
            "launches": int(sums["all"].count[k]),
            "queued": int(sums["queue"].count[k]),
            "short": shorter[k],
            "long_calls": longer[k],
            "late": later[k],
            **{
                f"{part}_{cell}": value if each.count[k] else None
                for part, each in sums.items()
                for cell, value in each.cells(k).items()
            },
            "call": names[call_region],
            "name": names[region],
        }


def _queues(trace: Trace, device: Device, full: int) -> Iterator[Mapping[str, object]]:
    streams = trace.locations.to_arrow().column("name").to_pylist()
    lengths = Spread()
    first = streams_of(trace, device)
    places = sorted(set(first.values()))
    queues = [Queue(k, lengths, full) for k in range(len(places))]
    for found, by_whom in launches(trace, device):
        for place, queue in zip(places, queues, strict=True):
            own = [location for location, of in first.items() if of == place]
            (at,) = np.nonzero(np.isin(found.location, own) & (by_whom.call.row >= 0))
            queue.add(by_whom.call.start_ns[at], found.start_ns[at])
    for queue in queues:
        queue.finish()
    sums = lengths.summary(len(queues))
    quarters = [lengths.quantile(part, sums.count) for part in (0.25, 0.75)]
    for k, (location, queue) in enumerate(zip(places, queues, strict=True)):
        if sums.count[k]:
            yield {
                **device.cells,
                "stream": stream_name(streams[location]),
                "launches": int(sums.count[k]) // 2,
                "count": int(sums.count[k]),
                "mean": float(sums.average[k]),
                "stddev": float(sums.stddev[k]),
                "min": int(sums.least[k]),
                "quarter": float(quarters[0][k]),
                "median": float(sums.median[k]),
                "three_quarters": float(quarters[1][k]),
                "max": int(sums.most[k]),
                "full_ns": queue.full_ns,
            }
