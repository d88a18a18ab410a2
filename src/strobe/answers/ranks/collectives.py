"""What collectives move between ranks, and how fast: by rank, process group and kind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strobe.analyses.ranks.collectives import ANALYSIS
from strobe.errors import UsageError
from strobe.model.schema import Column
from strobe.ranks.collective_kinds import bus_factor, has_bandwidth
from strobe.ranks.flight_recorder.entries import has_dumps
from strobe.ranks.traffic import Line, traffic
from strobe.sums.groups import Spread
from strobe.tables.column_arrays import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace
from strobe.workers.map_combine import rows_of_processes

_FOR_THE_NOTE = (
    Column("without", "int64", "", "executions without a bandwidth that should have one"),
    Column("handed_over", "int64", "", "calls that hand over to the GPU, without its time"),
)
_NOTED = [column.name for column in _FOR_THE_NOTE]
_NOTHING = "no collectives in this trace (of NCCL and similar libraries, blocking calls of MPI, or gloo)"
_HANDED_OVER = (
    "the times of {} collectives are those of NCCL's calls, which hand over to the GPU: without its kernels, no"
    " bandwidth is known"
)
_OF_DUMPS = "a flight recorder's dump has no durations of collectives: of {} no bandwidth is known"
_NO_SIZE = (
    "{} of {} collectives have no bandwidth: their bytes or the size of their group are unknown; recordings have both,"
    " and so do profiles of newer versions of PyTorch with NCCL, and Score-P's of MPI"
)


def run(trace: Trace, *, rank: int | None) -> Table:
    """Return the answer; see `strobe.analyses.ranks.collectives`."""
    ranks = sorted({each for each in trace.processes.column("rank") if isinstance(each, int)})
    if rank is not None and rank not in ranks:
        known = ", ".join(map(str, ranks)) or "none is known in this trace"
        raise UsageError(f"no rank {rank} in this trace", do=f"Ranks: {known}")
    rows = rows_of_processes(trace, _of_process, rank=rank)
    calls, without, handed_over = (pc.sum(rows.column(name)).as_py() or 0 for name in ("calls", *_NOTED))
    note = _NO_SIZE.format(without, calls) if without else "" if len(rows) else _NOTHING
    if handed_over:
        untimed = (_OF_DUMPS if has_dumps(trace) else _HANDED_OVER).format(handed_over)
        note = "; ".join(filter(None, (untimed, note)))
    table = Table(rows.drop_columns(_NOTED), about=f"{calls} collectives", note=note)
    return table.sort("total_ns")


def _of_process(part: Trace, rank: int | None) -> pa.Table:
    """Return the rows of one process, with the columns that the note is made of."""

    found = traffic(part)
    times = Spread()
    times.add(np.repeat(np.arange(len(found.lines)), np.diff(found.begin)), found.duration_ns)
    spread = times.summary(len(found.lines))
    rows = []
    for number, line in enumerate(found.lines):
        if rank is not None and line.party.rank != rank:
            continue
        own = slice(found.begin[number], found.begin[number + 1])
        timed = not line.party.hands_over
        bandwidths = _bandwidths(line, found.size_bytes[own], found.duration_ns[own]) if timed else (None, None, None)
        rows.append(
            {
                **vars(line.party),
                **vars(line),
                "collective": line.kind,
                **spread.cells(number),
                "in_bytes": _known_sum(found.in_bytes[own]),
                "out_bytes": _known_sum(found.out_bytes[own]),
                "size_bytes": _known_sum(found.size_bytes[own]),
                **dict(zip(("algbw_gb_s", "busbw_gb_s", "peak_busbw_gb_s"), bandwidths, strict=True)),
                "without": int((found.size_bytes[own] < 0).sum()) if timed and has_bandwidth(line.kind) else 0,
                "handed_over": 0 if timed else own.stop - own.start,
            }
        )
    return make_table([*ANALYSIS.columns, *_FOR_THE_NOTE], rows).to_arrow()


def _known_sum(values: Ints) -> int | None:
    """Return the sum of the values that are known, None where none is."""
    known = values[values >= 0]
    return int(known.sum()) if len(known) else None


def _bandwidths(line: Line, size: Ints, time: Ints) -> tuple[float | None, float | None, float | None]:
    """Return those of the algorithm and the bus, and the highest on the bus of a single collective."""
    known = (size >= 0) & (time > 0)
    size, time = size[known], time[known]
    if not len(size):
        return None, None, None
    bandwidth, peak = int(size.sum()) / int(time.sum()), float((size / time).max())
    factor = bus_factor(line.kind, line.group_size or 0)
    return bandwidth, *((None, None) if factor is None else (bandwidth * factor, peak * factor))
