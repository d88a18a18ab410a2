"""What collectives move between ranks, and how fast: by rank, process group and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.collective_traffic import Ints, Line

_NOTHING = (
    "no collective is in this trace; kernels and calls of NCCL and the like, calls of MPI that block and collectives of"
    " gloo are looked at"
)
_HANDED_OVER = (
    "the times of {} collectives are those of NCCL's calls, which hand over to the GPU: without its kernels, no"
    " bandwidth is known"
)
_NO_SIZE = (
    "{} of {} collectives have no bandwidth: the trace does not say how much they move in a group of how many ranks;"
    " recordings do, profiles of newer versions of PyTorch with NCCL, and Score-P's of MPI"
)


def run(trace: Trace, *, rank: int | None = None) -> Table:
    """Sum the collectives of every rank by group, kind and type of elements: times, bytes, bandwidths.

    A collective takes from the start to the end of its kernel (NCCL, RCCL), call (MPI) or execution on a thread of its
    own (gloo), or from its request to its completion (MPI, not blocking). That includes waiting for ranks that come
    later: bandwidths are what the program saw, and the peak, of the fastest single collective, is nearer to what the
    network can do. What kernels of a recording move is what the call of NCCL says in which they were launched; calls of
    a group (ncclGroupStart) are one execution, whose bytes add up. Where NCCL's kernels are not recorded, its calls are
    shown, with their bytes: their time is that of handing over to the GPU.

    in, out = elements times the size of their type (PyTorch), or bytes sent to all and received from all (MPI, as
    Score-P counts). size: as nccl-tests defines it (doc/PERFORMANCE.md): the buffer of an all-reduce, broadcast or
    reduce, all ranks' parts of an all-gather, reduce-scatter or all-to-all. algbw = size / time, of those whose size is
    known (1 GB/s is a byte per ns). busbw = algbw * 2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter,
    all-to-all, gather and scatter, 1 for broadcast, reduce, send and receive; n is the size of the group. Of MPI,
    what is done in place comes out too low by (n-1)/n.
    """
    import pyarrow.compute as pc

    from strobe.errors import UsageError
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table

    ranks = sorted({each for each in trace.processes.column("rank") if isinstance(each, int)})
    if rank is not None and rank not in ranks:
        known = ", ".join(map(str, ranks)) or "none is known in this trace"
        raise UsageError(f"no rank {rank} in this trace", do=f"Ranks: {known}")
    rows = rows_of_processes(trace, _of_process, rank=rank)
    sums = (pc.sum(rows.column(name)).as_py() or 0 for name in ("calls", "without", "handed_over"))
    calls, without, handed_over = sums
    note = _NO_SIZE.format(without, calls) if without else "" if len(rows) else _NOTHING
    if handed_over:
        note = "; ".join(filter(None, (_HANDED_OVER.format(handed_over), note)))
    table = Table(
        rows.drop_columns(["without", "handed_over"]), name="collectives", about=f"{calls} collectives", note=note
    )
    return table.sort("total_ns")


def _of_process(part: Trace, rank: int | None) -> pa.Table:
    """Return the rows of one process.

    `without`: how many executions should have a bandwidth, and have none; `handed_over`: whose time is not known.
    """
    import numpy as np

    from strobe.store.table import make_table
    from strobe.structure.collective_kinds import has_bandwidth
    from strobe.structure.collective_traffic import traffic
    from strobe.structure.groups import Spread

    found = traffic(part)
    times = Spread()
    times.add(np.repeat(np.arange(len(found.lines)), np.diff(found.begin)), found.duration_ns)
    spread = times.summary(len(found.lines))
    rows = []
    for number, line in enumerate(found.lines):
        if rank is not None and line.party.rank != rank:
            continue
        own = slice(found.begin[number], found.begin[number + 1])
        who = (line.party.rank, line.party.process, line.party.device)
        group = (line.group, line.description, line.group_ranks, line.group_size)
        sums = (_known_sum(each[own]) for each in (found.in_bytes, found.out_bytes, found.size_bytes))
        timed = not line.party.hands_over
        bandwidths = _bandwidths(line, found.size_bytes[own], found.duration_ns[own]) if timed else (None, None, None)
        without = int((found.size_bytes[own] < 0).sum()) if timed and has_bandwidth(line.kind) else 0
        lost = without, 0 if timed else own.stop - own.start
        rows.append((*who, *group, line.kind, line.dtype, *spread.cells(number), *sums, *bandwidths, *lost))
    return make_table(_columns(), rows).to_arrow()


def _columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that took part", extra=True),
        Column("device", "int64", "", "number of its GPU, null on the host or where unknown", extra=True),
        Column("group", "string", "", "name of the process group or communicator, null where unknown"),
        Column("description", "string", "", "what the group is for", extra=True),
        Column("group_ranks", "string", "", "ranks of the group, as JSON", extra=True),
        Column("group_size", "int64", "", "ranks in the group (n), null where unknown"),
        Column("collective", "string", "", "its kind: allreduce, allgather, ...; null where unknown"),
        Column("dtype", "string", "", "type of an element, null where unknown"),
        Column("total_ns", "int64", "ns", "sum of the times"),
        Column("calls", "int64", "", "executions"),
        Column("avg_ns", "float64", "ns", "mean time"),
        Column("median_ns", "float64", "ns", "median time", extra=True),
        Column("min_ns", "int64", "ns", "shortest", extra=True),
        Column("max_ns", "int64", "ns", "longest"),
        Column("stddev_ns", "float64", "ns", "standard deviation of the times", extra=True),
        Column("in_bytes", "int64", "bytes", "bytes that the rank put in; null where not known of any"),
        Column("out_bytes", "int64", "bytes", "bytes that the rank got out; null where not known of any"),
        Column("size_bytes", "int64", "bytes", "sum of the sizes that bandwidths are made of", extra=True),
        Column("algbw_gb_s", "float64", "GB/s", "bandwidth of the algorithm: size by time"),
        Column("busbw_gb_s", "float64", "GB/s", "the same times the factor of nccl-tests: what each link carries"),
        Column("peak_busbw_gb_s", "float64", "GB/s", "the same of the fastest collective", extra=True),
        Column("without", "int64", "", "executions without a bandwidth that should have one"),
        Column("handed_over", "int64", "", "calls that hand over to the GPU, and say nothing of its time"),
    )


def _known_sum(values: Ints) -> int | None:
    """Return the sum of the values that are known, None where none is."""
    known = values[values >= 0]
    return int(known.sum()) if len(known) else None


def _bandwidths(line: Line, size: Ints, time: Ints) -> tuple[float | None, float | None, float | None]:
    """Return those of the algorithm and the bus, and the highest on the bus of a single collective."""
    from strobe.structure.collective_kinds import bus_factor

    known = (size >= 0) & (time > 0)
    size, time = size[known], time[known]
    if not len(size):
        return None, None, None
    bandwidth, peak = int(size.sum()) / int(time.sum()), float((size / time).max())
    factor = bus_factor(line.kind, line.group_size or 0)
    return bandwidth, *((None, None) if factor is None else (bandwidth * factor, peak * factor))


ANALYSIS = Analysis(
    "collectives",
    "What do collectives move in each process group, and how fast?",
    run,
    options=(Option("rank", "only this rank", type=int),),
)
