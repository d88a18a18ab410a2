"""Dumps of PyTorch's flight recorder as its C++ writes them with NCCL (FlightRecorder.cpp, version 2.10), with the
answer that each case was made for."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_NS = 1_796_056_169_000_000_000
WORLD = ("0", "default_pg")
TENSOR_PARALLEL, PIPELINE = ("1", "tp"), ("2", "pp")
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
PROGRAM = "/home/user/train.py"

Entry = dict[str, Any]


def entry(
    number: int,
    operation: str = "all_reduce",
    *,
    group: tuple[str, str] = WORLD,
    sequence: int | None = None,
    sizes: Sequence[Sequence[int]] = ((16,),),
    out: Sequence[Sequence[int]] | None = None,
    dtype: str = "Float",
    state: str = "completed",
    line: int = 10,
    at_us: int | None = None,
    is_p2p: bool | None = None,
) -> Entry:
    """The entry with a number on its rank; its sequence number is one more unless given."""
    called_ns = START_NS + (number * 1000 if at_us is None else at_us) * 1000
    is_message = operation.startswith(("send", "recv")) if is_p2p is None else is_p2p
    sequence = number + 1 if sequence is None else sequence
    out = sizes if out is None else out
    called = operation.partition(" ")[0]
    return {
        "frames": [
            {"name": called, "filename": TORCH, "line": 3245},
            {"name": "step", "filename": PROGRAM, "line": line},
            {"name": "<module>", "filename": PROGRAM, "line": 90},
        ],
        "record_id": number,
        "pg_id": int(group[0]),
        "process_group": group,
        "thread_name": "python",
        "thread_id": "140195966016384",
        "collective_seq_id": 0 if is_message else sequence,
        "p2p_seq_id": sequence if is_message else 0,
        "op_id": number + 1,
        "profiling_name": f"nccl:{operation}",
        "time_created_ns": called_ns,
        "input_sizes": [list(shape) for shape in sizes],
        "input_dtypes": [dtype] * len(sizes),
        "output_sizes": [list(shape) for shape in out],
        "output_dtypes": [dtype] * len(out),
        "state": state,
        "time_discovered_started_ns": None if state == "scheduled" else called_ns + 100_000,
        "time_discovered_completed_ns": called_ns + 300_000 if state == "completed" else None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": is_message,
    }


def dump(entries: Sequence[Entry], groups: Mapping[tuple[str, str], Sequence[int]]) -> dict[str, Any]:
    """The dump of a rank in these groups."""
    return {
        "version": "2.10",
        "pg_config": {
            name: {"name": name, "desc": about, "ranks": str(list(ranks))} for (name, about), ranks in groups.items()
        },
        "comm_lib_version": "2.27.5",
        "pg_status": {name: {"last_enqueued_collective": len(entries)} for name, _ in groups},
        "entries": list(entries),
    }


def written(folder: Path, dumps: Mapping[int, dict[str, Any]]) -> Path:
    """Write dumps as a job leaves them, one file per rank; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, each in dumps.items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(each, 2))
    return folder


@dataclass(frozen=True)
class Case:
    """What ranks have in their dumps; the first unfinished operation of each group that it has, by name and sequence:
    who has not called it, and who differs in what."""

    name: str
    dumps: Mapping[int, dict[str, Any]]
    answers: Mapping[tuple[str, int], tuple[set[int], dict[int, str]]] = field(default_factory=dict)


def _world(ranks: int, ends: Mapping[int, Sequence[Entry]], begin: int = 4) -> dict[int, dict[str, Any]]:
    """Dumps of ranks that have done some all-reduces, and then each what is its own."""
    return {
        rank: dump([*map(entry, range(begin)), *ends.get(rank, ())], {WORLD: range(ranks)}) for rank in range(ranks)
    }


def _started(operation: str = "all_reduce", **more: Any) -> list[Entry]:
    return [entry(4, operation, state="started", line=20, **more)]


def _two_groups() -> dict[int, dict[str, Any]]:
    """Ranks 0 and 1 are in one tensor-parallel group: rank 1 hangs there, and so comes late to the world's."""
    world, pair = {WORLD: range(4)}, {WORLD: range(4), TENSOR_PARALLEL: (0, 1)}
    usual = [*map(entry, range(4))]
    inner = entry(
        4, "all_gather", group=TENSOR_PARALLEL, sequence=1, out=((32,),), state="started", line=30, at_us=9000
    )
    outer = entry(4, sequence=5, state="started", line=20, at_us=8000)
    return {
        0: dump([*usual, entry(4, sequence=5, state="scheduled", line=40, at_us=9500)], pair),
        1: dump([*usual, inner], pair),
        2: dump([*usual, outer], world),
        3: dump([*usual, outer], world),
    }


def _pair(first: Sequence[Entry], second: Sequence[Entry]) -> dict[int, dict[str, Any]]:
    groups = {PIPELINE: (0, 1)}
    return {0: dump(first, groups), 1: dump(second, groups)}


def _message(number: int, operation: str, **more: Any) -> Entry:
    return entry(number, operation, group=PIPELINE, **more)


def _coalesced(number: int, *operations: str) -> list[Entry]:
    """Messages of one batch_isend_irecv: PyTorch follows only the whole, which has a number of its own."""
    inner = [_message(number + i, each, sequence=1, state="scheduled") for i, each in enumerate(operations)]
    return [*inner, _message(number + len(inner), "coalesced", sequence=1, sizes=(), is_p2p=True)]


_UNEVEN = {rank: _started("all_to_all", sizes=((4 + 2 * rank,),), out=((5,),)) for rank in range(2)}

CASES = [
    Case("complete", _world(4, {})),
    Case(
        "missing",
        _world(4, {rank: _started() for rank in (0, 1, 3)}),
        {("0", 5): ({2}, {})},
    ),
    Case(
        "operation",
        _world(4, {rank: _started("broadcast" if rank == 3 else "all_reduce") for rank in range(4)}),
        {("0", 5): (set(), {3: "operation"})},
    ),
    Case(
        "size",
        _world(4, {rank: _started(sizes=((8 if rank == 2 else 16,),)) for rank in range(4)}),
        {("0", 5): (set(), {2: "size"})},
    ),
    Case(
        "dtype",
        _world(4, {rank: _started(dtype="Double" if rank == 1 else "Float") for rank in range(4)}),
        {("0", 5): (set(), {1: "dtype"})},
    ),
    Case("alike", _world(2, {rank: _started() for rank in range(2)}), {("0", 5): (set(), {})}),
    Case(
        "outputs of the root",
        _world(2, {0: _started("gather", out=((16,), (16,))), 1: _started("gather", out=())}),
        {("0", 5): (set(), {})},
    ),
    Case("uneven all-to-all", _world(2, _UNEVEN), {("0", 5): (set(), {})}),
    Case(
        "all-to-all with too few bytes",
        _world(2, _UNEVEN | {1: _started("all_to_all", sizes=((9,),), out=((5,),))}),
        {("0", 5): (set(), {0: "size", 1: "size"})},
    ),
    Case("two groups", _two_groups(), {("1", 1): ({0}, {}), ("0", 5): ({1}, {})}),
    Case(
        "wrapped",
        {
            0: dump([*(entry(i) for i in range(5, 9)), entry(9, state="started", line=20)], {WORLD: range(3)}),
            1: dump([*(entry(i) for i in range(7, 9)), entry(9, state="started", line=20)], {WORLD: range(3)}),
            2: dump([entry(i) for i in range(4, 9)], {WORLD: range(3)}),
        },
        {("0", 10): ({2}, {})},
    ),
    Case(
        "no receive",
        _pair([_message(0, "send 0->1", state="started", line=50)], []),
        {("2", 1): ({1}, {})},
    ),
    Case(
        "another size received",
        _pair(
            [_message(0, "send 0->1", state="started")],
            [_message(0, "recv 1<-0", state="started", sizes=((8,),), at_us=5)],
        ),
        {("2", 1): (set(), {1: "size"})},
    ),
    Case("coalesced messages", _pair(_coalesced(0, "send 0->1", "recv 0<-1"), _coalesced(0, "recv 1<-0", "send 1->0"))),
]
