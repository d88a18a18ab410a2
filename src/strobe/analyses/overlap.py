"""What the time of a GPU went into: computing, communicating, copying, several at once, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device, Ints


_FOLDED = "of folded steps only sums are known: what ran at the same time there is estimated from the steps in detail"


def run(trace: Trace, *, by: str = "rank") -> Table:
    """Divide the time of every GPU among sets of kinds of work; all ranks and all their GPUs.

    The time from the first start to the last end of a GPU's kernels, copies and memory sets (or one step of its
    process) is cut where anything begins or ends, on any stream. busy = something runs; idle = nothing does. The last
    seven columns (`only_...`) hold the time in which exactly the kinds of their name run: with `idle_ns` they add up to
    `duration_ns`. communication = collectives and messages among GPUs by the names of their kernels
    (NCCL, RCCL, DeepEP, NVSHMEM, MSCCL, custom all-reduces); exposed communication = the part in which nothing
    computes; overlap = the part of communication in which something does, 0 to 1 (HTA: comm_comp_overlap). Folded
    steps count by the sums of what they launched, of which as much runs at the same time as in detail; by step they
    have no rows.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device
    from strobe.structure.steps import known_steps

    per_step = by == "step"
    rows = rows_of_processes(trace, _of_process, known=known_steps(trace) if per_step else None, per_step=per_step)
    about = "steps of each GPU" if per_step else "the whole run of each GPU"
    note = no_device(trace) if not len(rows) else _FOLDED if folded_note(trace, devices(trace)) else ""
    return Table(rows, name="overlap", about=about, note=note)


def _of_process(part: Trace, per_step: bool) -> pa.Table:
    """Return the rows of one process."""
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices, divided

    rows = [
        (device.rank, device.process, device.number, *((step,) if per_step else ()), *_cells(sums))
        for device in devices(part)
        for step, sums in (_of_steps(part, device) if per_step else [(None, divided(part, device))])
        if sums.any()
    ]
    return make_table(_columns(per_step), rows).to_arrow()


def _columns(per_step: bool) -> tuple[Column, ...]:
    from strobe.model.schema import Column
    from strobe.structure.device_work import KINDS, MASKS

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        *((Column("step", "int64", "", "number of the step in its process"),) if per_step else ()),
        Column("duration_ns", "int64", "ns", "first start to last end of its work; with --by step: the step"),
        Column("busy_ns", "int64", "ns", "time in which anything runs on it"),
        Column("idle_ns", "int64", "ns", "time in which nothing does"),
        Column("computation_ns", "int64", "ns", "time in which a kernel computes"),
        Column("communication_ns", "int64", "ns", "time in which a kernel communicates"),
        Column("copy_ns", "int64", "ns", "time in which memory is copied or set"),
        Column("exposed_communication_ns", "int64", "ns", "communication while nothing computes"),
        Column("overlap", "float64", "", "part of the communication while something computes, 0 to 1"),
        *(
            Column(f"only_{name}_ns", "int64", "ns", "time in which exactly these run", extra=True)
            for name in ("_and_".join(kind for k, kind in enumerate(KINDS) if m >> k & 1) for m in range(1, MASKS))
        ),
    )


def _of_steps(trace: Trace, device: Device) -> Iterator[tuple[int, Ints]]:
    """Yield the times of a device in each step of its process."""
    from strobe.structure.device_work import divided

    for step in trace.steps().to_arrow().to_pylist():
        if step["process"] == device.process and step["detail"] != "none":
            begin, end = step["start_ns"], step["start_ns"] + step["duration_ns"]
            yield step["step"], divided(trace, device, begin, end)


def _cells(sums: Ints) -> tuple[object, ...]:
    """Return the columns from `duration_ns` on, from the times by mask."""
    from strobe.structure.device_work import COMMUNICATION, COMPUTATION, COPY

    def holding(kinds: int) -> int:
        return sum(int(time) for mask, time in enumerate(sums) if mask & kinds == kinds)

    duration, communication = int(sums.sum()), holding(COMMUNICATION)
    hidden = holding(COMMUNICATION | COMPUTATION)
    return (
        duration,
        duration - int(sums[0]),
        int(sums[0]),
        holding(COMPUTATION),
        communication,
        holding(COPY),
        communication - hidden,
        hidden / communication if communication else None,
        *(int(time) for time in sums[1:]),
    )


ANALYSIS = Analysis(
    "overlap",
    "What does the time of each GPU go into, and is communication hidden behind computation?",
    run,
    options=(Option("by", "one row a GPU, or one a GPU and step", default="rank", choices=("rank", "step")),),
)
