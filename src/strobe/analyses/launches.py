"""How long what GPUs ran took from its call to its end: the call, the queue, the execution; and how long queues are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device

# A stream takes so many launches before the next call blocks.
FULL_QUEUE = 1024
# Parts of an execution; `all` is from the start of the call to the end on the GPU.
_PARTS = ("all", "call", "queue", "run")
_STATISTICS = ("avg", "median", "min", "max", "stddev")
_MEANING = {
    "all": "from the start of the call to the end on the GPU",
    "call": "the call that launched it",
    "queue": "from the end of the call to the start on the GPU, of those that start after it",
    "run": "execution on the GPU",
}
_NO_CALLS = "no call that launched something is in this trace; profiles of PyTorch, Nsight Systems and nvprof hold them"


def run(
    trace: Trace, *, by: str = "kernel", long_call_us: int = 50, late_us: int = 100, full_queue: int = FULL_QUEUE
) -> Table:
    """Sum the executions of kernels, copies and sets of every GPU by name and call (Nsight Systems: kern_exec_sum).

    all = from the start of the launching call to the end on the GPU, which is less than the sum of its parts where
    the GPU begins before the call returns; queue = from the end of the call to the start on the GPU, of the `queued`
    ones that start after it. short = shorter than its call while that is no long one; long calls = those of more
    than `long_call_us`; late = queue time above `late_us` (HTA: launch statistics). Only what has a call in the trace.

    by stream: how many launches wait, looked at after each event: one more at the start of a call, one less at the
    start of what it launched (HTA: queue length). An empty queue means that the GPU waits for the host; while
    `full_queue` launches wait, the host does: the next call does not return (HTA: time blocked on a full queue).
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device

    if by == "stream":
        rows = rows_of_processes(trace, _queues_of_process, full_queue=full_queue)
        about = "launches that wait on each stream"
    else:
        long_ns, late_ns = long_call_us * 1000, late_us * 1000
        rows = rows_of_processes(trace, _executions_of_process, long_call_ns=long_ns, late_ns=late_ns)
        about = "what all GPUs ran, and the calls that launched it"
    note = folded_note(trace, devices(trace)) if len(rows) else _NO_CALLS if devices(trace) else no_device(trace)
    return Table(rows, name="launches", about=about, note=note).sort("launches")


def _queues_of_process(part: Trace, full_queue: int) -> pa.Table:
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices

    rows = [row for device in devices(part) for row in _queues(part, device, full_queue)]
    return make_table(_queue_columns(), rows).to_arrow()


def _executions_of_process(part: Trace, long_call_ns: int, late_ns: int) -> pa.Table:
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices

    rows = [row for device in devices(part) for row in _executions(part, device, long_call_ns, late_ns)]
    return make_table(_execution_columns(), rows).to_arrow()


def _execution_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        *_of_device_columns(),
        Column("kernel", "string", "", "name without result, name spaces, templates and arguments"),
        Column("launches", "int64", "", "executions whose call is known"),
        Column("queued", "int64", "", "those that start on the GPU after the end of their call", extra=True),
        Column("short", "int64", "", "those that are shorter than their call, where that is no long one", extra=True),
        Column("long_calls", "int64", "", "those whose call is longer than --long-call-us", extra=True),
        Column("late", "int64", "", "those that wait longer than --late-us", extra=True),
        *(
            Column(
                f"{part}_{statistic}_ns",
                "int64" if statistic in ("min", "max") else "float64",
                "ns",
                f"{_MEANING[part]}: {statistic}",
                extra=statistic != "avg" or part == "all",
            )
            for statistic in _STATISTICS
            for part in _PARTS
        ),
        Column("call", "string", "", "function that launched it", extra=True),
        Column("name", "string", "", "full name", extra=True),
    )


def _queue_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        *_of_device_columns(),
        Column("stream", "string", "", "stream"),
        Column("launches", "int64", "", "executions whose call is known"),
        Column("count", "int64", "", "how often the queue was looked at: twice a launch", extra=True),
        Column("mean", "float64", "", "mean length of the queue"),
        Column("stddev", "float64", "", "its standard deviation", extra=True),
        Column("min", "int64", "", "shortest"),
        Column("quarter", "float64", "", "a quarter are not longer"),
        Column("median", "float64", "", "half are not longer"),
        Column("three_quarters", "float64", "", "three quarters are not longer"),
        Column("max", "int64", "", "longest; 1024 is where CUDA blocks the next call"),
        Column("full_ns", "int64", "ns", "time in which --full-queue launches or more waited"),
    )


def _of_device_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
    )


def _executions(trace: Trace, device: Device, long_ns: int, late_ns: int) -> Iterator[tuple[object, ...]]:
    import numpy as np

    from strobe.structure.device_work import COPY, kind_of_region
    from strobe.structure.groups import Groups, Spread, Weighted
    from strobe.structure.kernel_names import short_name
    from strobe.structure.launches import launches

    groups = Groups()
    spreads = {part: Spread() for part in _PARTS}
    short, long, late = (Weighted() for _ in range(3))
    for found, by_whom in launches(trace, device):
        (at,) = np.nonzero(by_whom.call_row >= 0)
        group = groups.numbers([found.region[at].astype(np.int64), by_whom.call_region[at]])
        start, end = found.start_ns[at], found.end_ns[at]
        called, returned = by_whom.call_start_ns[at], by_whom.call_end_ns[at]
        queued, call, ran = start >= returned, returned - called, end - start
        spreads["all"].add(group, end - called)
        spreads["call"].add(group, call)
        spreads["queue"].add(group[queued], (start - returned)[queued])
        spreads["run"].add(group, ran)
        flags = (ran < call) & (call <= long_ns), call > long_ns, start - returned > late_ns
        for counter, flag in zip((short, long, late), flags, strict=True):
            counter.add(group[flag], ran[flag].astype(np.float64))
    count = len(groups)
    sums = [spreads[part].summary(count) for part in _PARTS]
    flagged = [counter.count(count) for counter in (short, long, late)]
    names, kinds = trace.regions.to_arrow().column("name").to_pylist(), kind_of_region(trace)
    for k, (region, call_region) in enumerate(groups.keys):
        known = [bool(each.count[k]) for each in sums]
        columns = ("average", "median", "least", "most", "stddev")
        cells = [[getattr(each, column).tolist()[k] for each in sums] for column in columns]
        yield (
            *(device.rank, device.process, device.number),
            names[region] if 1 << int(kinds[region]) == COPY else short_name(names[region]),
            *(int(sums[0].count[k]), int(sums[2].count[k]), *(each[k] for each in flagged)),
            *(cell if there else None for row in cells for cell, there in zip(row, known, strict=True)),
            *(names[call_region], names[region]),
        )


def _queues(trace: Trace, device: Device, full: int) -> Iterator[tuple[object, ...]]:
    import numpy as np

    from strobe.structure.groups import Spread
    from strobe.structure.launches import launches
    from strobe.structure.queues import Queue

    streams = trace.locations.to_arrow().column("name").to_pylist()
    lengths = Spread()
    queues = [Queue(k, lengths, full) for k in range(len(device.locations))]
    for found, by_whom in launches(trace, device):
        for location, queue in zip(device.locations, queues, strict=True):
            (at,) = np.nonzero((found.location == location) & (by_whom.call_row >= 0))
            queue.add(by_whom.call_start_ns[at], found.start_ns[at])
    for queue in queues:
        queue.finish()
    sums = lengths.summary(len(queues))
    quarters = [lengths.quantile(part, sums.count) for part in (0.25, 0.75)]
    for k, (location, queue) in enumerate(zip(device.locations, queues, strict=True)):
        if sums.count[k]:
            yield (
                *(device.rank, device.process, device.number, streams[location]),
                *(int(sums.count[k]) // 2, int(sums.count[k]), float(sums.average[k]), float(sums.stddev[k])),
                *(int(sums.least[k]), float(quarters[0][k]), float(sums.median[k]), float(quarters[1][k])),
                *(int(sums.most[k]), queue.full_ns),
            )


ANALYSIS = Analysis(
    "launches",
    "How long do kernels wait from their call to their end, and are enough of them queued?",
    run,
    options=(
        Option(
            "by",
            "one row a kernel and call, or the queue of each stream",
            default="kernel",
            choices=("kernel", "stream"),
        ),
        Option("long_call_us", "microseconds from which on a call is a long one", type=int, default=50),
        Option("full_queue", "launches that wait on a stream when calls begin to block", type=int, default=FULL_QUEUE),
        Option("late_us", "microseconds in the queue from which on a launch is late", type=int, default=100),
    ),
)
