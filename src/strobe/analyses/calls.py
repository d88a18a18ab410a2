"""Which calls of CUDA or HIP the host spends its time in: launches, copies, allocations, and waits for the GPU."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from strobe.store.table import Table
    from strobe.store.trace import Trace

_LIBRARIES = ("cuda", "hip")


def run(trace: Trace, *, by: str = "name") -> Table:
    """Sum the calls of the runtime and the driver of CUDA or HIP, of every process; by name, or by name and thread.

    share = total / total of all calls of the process (Nsight Systems, cuda_api_sum); a driver's call inside a runtime's
    counts in both. stddev is that of a sample, 0 for one call. A call that waits lasts until the GPU, or a part of its
    work, is done: kernels that ran meanwhile are in its time.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table

    rows = rows_of_processes(trace, _of_process, by=by)
    note = "" if len(rows) else (
        "no calls of CUDA or HIP are in this trace: `strobe run` records those of programs that use NVIDIA GPUs "
        "(`strobe doctor` says what that needs); profiles of PyTorch, Nsight Systems and nvprof (.nvvp) hold them, too"
    )  # fmt: skip
    return Table(rows, name="calls", about="calls of CUDA or HIP of all processes", note=note).sort("total_ns")


def _of_process(part: Trace, by: str) -> pa.Table:
    """Return the rows of one process."""
    import numpy as np

    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.groups import Groups, Spread
    from strobe.structure.launches import with_calls

    regions = part.regions.to_arrow().to_pylist()
    wanted = np.array(
        [r["paradigm"] in _LIBRARIES and r["role"] not in ("kernel", "copy") for r in regions], dtype=bool
    )
    ranks = part.processes.column("rank")
    threads = part.locations.to_arrow().to_pylist()
    # Calls that were told late lie beside their threads.
    beside = with_calls(part, [each["location"] for each in threads if each["kind"] == "task"])
    groups, durations = Groups(), Spread()
    for thread in threads if wanted.any() else ():
        location = thread["location"]
        if thread["kind"] != "thread" and location not in beside:
            continue
        for spans in part.span_batches(location):
            (at,) = np.nonzero(wanted[spans["region"]])
            process, where = (np.full(len(at), number, dtype=np.int64) for number in (thread["process"], location))
            key = [process, spans["region"][at].astype(np.int64), *([where] if by == "thread" else [])]
            durations.add(groups.numbers(key), spans["duration_ns"][at])
    sums = durations.summary(len(groups))
    everything = Counter[int]()
    for key_of, total in zip(groups.keys, sums.total.tolist(), strict=True):
        everything[key_of[0]] += total
    rows = [
        (
            ranks[process],
            process,
            regions[region]["name"],
            *(threads[at]["name"] for at in thread),
            regions[region]["role"] in ("sync", "wait"),
            int(sums.total[k]) / max(1, everything[process]),
            *sums.cells(k),
            regions[region]["module"],
        )
        for k, (process, region, *thread) in enumerate(groups.keys)
    ]
    columns = (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that called", extra=True),
        Column("name", "string", "", "function that was called"),
        *((Column("thread", "string", "", "thread that called"),) if by == "thread" else ()),
        Column("waits", "bool", "", "whether it waits for the GPU, or asks whether it is done"),
        Column("share", "float64", "", "part of the time of all calls of the process, 0 to 1"),
        Column("total_ns", "int64", "ns", "sum of the durations"),
        Column("calls", "int64", "", "executions"),
        Column("avg_ns", "float64", "ns", "mean duration"),
        Column("median_ns", "float64", "ns", "median duration", extra=True),
        Column("min_ns", "int64", "ns", "shortest", extra=True),
        Column("max_ns", "int64", "ns", "longest"),
        Column("stddev_ns", "float64", "ns", "standard deviation of the durations", extra=True),
        Column("library", "string", "", "CUDA runtime or driver, where the file says so", extra=True),
    )
    return make_table(columns, rows).to_arrow()


ANALYSIS = Analysis(
    "calls",
    "Which calls of CUDA or HIP take the time of the host?",
    run,
    options=(Option("by", "one row a function, or a function and thread", default="name", choices=("name", "thread")),),
)
