"""Which calls of CUDA, HIP, OpenCL or OpenACC take the time of the host: launches, copies, allocations, waits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from strobe.analyses.gpu.calls import ANALYSIS
from strobe.gpu.launches import with_calls
from strobe.model.kinds import GPU_CALL_PARADIGMS
from strobe.sums.folded_durations import with_folded
from strobe.sums.groups import Groups, Spread
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import location_rows, path_tree, ranks_of, region_rows, regions_where
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes

_NO_CALLS = ("kernel", "copy", "range")
_NOTHING = (
    "no calls of CUDA, HIP, OpenCL or OpenACC are in this trace: `strobe run` records those of programs that use NVIDIA"
    " GPUs (`strobe doctor` checks what that needs), OpenCL or OpenACC; profiles of PyTorch, Nsight Systems and nvprof"
    " (.nvvp) hold them, too"
)


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.gpu.calls`."""
    rows = rows_of_processes(trace, _of_process, by=by)
    about = "calls of CUDA, HIP, OpenCL or OpenACC of all processes"
    return Table(rows, about=about, note="" if len(rows) else _NOTHING).sort("total_ns")


def _of_process(part: Trace, by: str) -> pa.Table:
    regions, ranks, threads = region_rows(part), ranks_of(part), location_rows(part)
    wanted = regions_where(part, lambda r: r.paradigm in GPU_CALL_PARADIGMS and r.role not in _NO_CALLS)
    # Calls that were reported late lie beside their threads.
    beside = with_calls(part, [each.location for each in threads if each.kind == "task"])
    groups, durations = Groups(), Spread()
    for thread in threads if wanted.any() else ():
        if thread.kind != "thread" and thread.location not in beside:
            continue
        for spans in part.span_batches(thread.location):
            (at,) = np.nonzero(wanted[spans["region"]])
            process, where = (np.full(len(at), number) for number in (thread.process, thread.location))
            key = [process, spans["region"][at].astype(np.int64), *([where] if by == "thread" else [])]
            durations.add(groups.numbers(key), spans["duration_ns"][at])
    folded = next(iter(part.folded.values()), None)  # of this one process
    if folded is None:
        sums = durations.summary(len(groups))
    else:
        region = path_tree(part)[1][folded.call_path]
        counted = folded.chosen(wanted[region] & (folded.count > 0))
        region = region[wanted[region] & (folded.count > 0)]
        process = np.array([threads[each].process for each in counted.location], dtype=np.int64)
        key = [process, region.astype(np.int64), *([counted.location] if by == "thread" else [])]
        group = groups.numbers(key)
        sums = with_folded(durations, len(groups), group, counted)
    everything = Counter[int]()
    for key_of, total in zip(groups.keys, sums.total.tolist(), strict=True):
        everything[key_of[0]] += total
    rows = [
        {
            "rank": ranks[process],
            "process": process,
            "name": regions[region].name,
            "thread": threads[thread[0]].name if thread else None,
            "waits": regions[region].role in ("sync", "wait"),
            "share": int(sums.total[k]) / max(1, everything[process]),
            **sums.cells(k),
            "library": regions[region].module,
        }
        for k, (process, region, *thread) in enumerate(groups.keys)
    ]
    return make_table(ANALYSIS.columns_with(by=by), rows).to_arrow()
