"""Why GPUs had nothing to do: idle time by cause, of each GPU or each of its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from strobe.store.table import Table
    from strobe.store.trace import Trace

_KERNEL_GAP_NS = 30_000


def run(trace: Trace, *, by: str = "device", kernel_gap_ns: int = _KERNEL_GAP_NS) -> Table:
    """Sum the gaps between activities of every GPU (or stream) by what kept the next activity from starting.

    data, sync, copy, host: it was launched only after the gap had begun; until then the launching thread waited for
    data (`data`), for the GPU (`sync`), in a copy that blocks it (`copy`), or did something else (`host`, with the time
    from the launch to the start). kernel: it was launched before, and began less than `kernel_gap_ns` after the one
    before it. other: it was launched before and waited longer (for another stream, mostly), or its launch is unknown.
    The sum of the first four is the `host_wait` of Holistic Trace Analysis, kernel its `kernel_wait`, other its
    `other`, without its rounding to microseconds.
    """
    from strobe.store.map_combine import rows_of_processes
    from strobe.store.table import Table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device

    rows = rows_of_processes(trace, _of_process, by=by, kernel_gap_ns=kernel_gap_ns)
    nothing = "no GPU has two activities with time in between" if devices(trace) else no_device(trace)
    note = folded_note(trace, devices(trace)) if len(rows) else nothing
    about = f"gaps of each {'stream' if by == 'stream' else 'GPU'} from its first to its last activity"
    return Table(rows, name="idle", about=about, note=note)


def _of_process(part: Trace, by: str, kernel_gap_ns: int) -> pa.Table:
    """Return the rows of one process."""
    import numpy as np

    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.device_work import devices
    from strobe.structure.idle import CAUSES, gaps

    names = part.locations.column("name")
    rows: list[tuple[object, ...]] = []
    for device in devices(part):
        time_ns, count = dict[int, np.ndarray](), dict[int, np.ndarray]()
        longest: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        for found in gaps(part, device, per_stream=by == "stream", kernel_gap_ns=kernel_gap_ns):
            for key in np.unique(found.key).tolist():
                time_ns.setdefault(key, np.zeros(len(CAUSES), dtype=np.int64))
                count.setdefault(key, np.zeros(len(CAUSES), dtype=np.int64))
                time_ns[key] += found.time_ns.sum(axis=1)
                count[key] += np.bincount(found.cause, minlength=len(CAUSES))
                for cause in np.unique(found.cause).tolist():
                    at = np.flatnonzero(found.cause == cause)
                    at = at[np.argmax((found.end_ns - found.start_ns)[at])]
                    start = int(found.start_ns[at])
                    one = (int(found.end_ns[at]) - start, start, int(found.location[at]), int(found.row[at]))
                    longest[key, cause] = max(longest.get((key, cause), (0, 0, 0, 0)), one)
        for key in sorted(time_ns):
            whole = max(1, int(time_ns[key].sum()))
            rows += [
                (
                    device.rank,
                    device.process,
                    device.number,
                    *((names[key],) if by == "stream" else ()),
                    cause,
                    int(time_ns[key][k]),
                    int(time_ns[key][k]) / whole,
                    int(count[key][k]),
                    *(longest.get((key, k)) or (None,) * 4),
                )
                for k, cause in enumerate(CAUSES)
                if time_ns[key][k] or count[key][k]
            ]
    columns = (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that used the GPU", extra=True),
        Column("device", "int64", "", "number of the GPU, null where unknown"),
        *((Column("stream", "string", "", "stream of the GPU"),) if by == "stream" else ()),
        Column("cause", "string", "", "data, sync, copy, host, kernel, other: see above"),
        Column("idle_ns", "int64", "ns", "time that this cause takes of the gaps"),
        Column("share", "float64", "", "the same as a part of all idle time of the GPU (or stream), 0 to 1"),
        Column("gaps", "int64", "", "gaps of which this cause takes most"),
        Column("longest_ns", "int64", "ns", "the longest of these gaps"),
        Column("start_ns", "int64", "ns", "when that one began", extra=True),
        Column("location", "uint32", "", "where the activity that ended it ran", extra=True),
        Column("row", "int64", "", "number of that activity's span in its location", extra=True),
    )
    return make_table(columns, rows).to_arrow()


ANALYSIS = Analysis(
    "idle",
    "Why do the GPUs have nothing to do?",
    run,
    options=(
        Option("by", "whose gaps: those of a GPU as a whole, or of each of its streams", default="device",
               choices=("device", "stream")),
        Option("kernel_gap_ns", "longest gap between two launched kernels that is the GPU's own, ns", type=int,
               default=_KERNEL_GAP_NS),
    ),
)  # fmt: skip
