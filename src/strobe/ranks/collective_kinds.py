"""Kinds of collectives: by name, with their sizes and bandwidths on the bus."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from strobe.tables.column_arrays import Ints

# Of kernels (`ncclDevKernel_AllReduce_Sum_f32_RING_LL`), of PyTorch (`_allgather_base`, `gloo:all_reduce`),
# of calls of MPI and of OTF2's collectives. What comes first in a name counts; of names that begin alike, the longer.
_KIND = re.compile(
    r"(?:neighbor_)?(?:all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|broadcast|bcast|barrier|fence|send_?recv"
    r"|gather|scatter|exscan|scan|send|recv)|cross_device_reduce|reduce",
    re.IGNORECASE,
)
_SAME = {"bcast": "broadcast", "crossdevicereduce": "allreduce"}  # the latter: kernels of vLLM
_Factor = Callable[[int], float]

# Bandwidth on the bus by bandwidth of the algorithm, of n ranks: nccl-tests, doc/PERFORMANCE.md (and the sources of its
# gather, scatter and sendrecv).
_BUS_FACTORS: dict[str, _Factor] = {
    "allreduce": lambda n: 2 * (n - 1) / n,
    **dict.fromkeys(("allgather", "reducescatter", "alltoall", "gather", "scatter"), lambda n: (n - 1) / n),
    **dict.fromkeys(("broadcast", "reduce", "send", "recv", "sendrecv"), lambda n: 1.0),
}


def kind_of(name: str | None) -> str | None:
    """Return the kind of collective in a name: `allreduce`, `broadcast`, ...; None for other names."""
    found = _KIND.search(name or "")
    if not found:
        return None
    plain = found[0].lower().replace("_", "")
    return _SAME.get(plain, plain)


def bus_factor(kind: str | None, ranks: int) -> float | None:
    """Return the factor from the algorithm's bandwidth to the bus's; None if the kind or the ranks are unknown."""
    factor = _BUS_FACTORS.get(kind or "")
    return factor(ranks) if factor and ranks > 0 else None


def has_bandwidth(kind: str | None) -> bool:
    """Return whether a kind may have a bandwidth: not barriers, nor kinds that nccl-tests does not measure (scan)."""
    return kind is None or kind in _BUS_FACTORS


def size_of_buffers(kind: str | None, in_bytes: Ints, out_bytes: Ints) -> Ints:
    """Return the size of collectives of a kind as nccl-tests counts it, from a rank's own buffers; -1 if unknown.

    It is the larger one: what an all-gather puts out, what a reduce-scatter takes in, either of an all-reduce.
    """
    return np.maximum(in_bytes, out_bytes) if kind in _BUS_FACTORS else np.full_like(in_bytes, -1)


def size_of_messages(kind: str | None, ranks: int, sent: Ints, received: Ints) -> Ints:
    """Return the same from the bytes that a rank sends to all and receives from all, as Score-P counts them for MPI.

    Of an all-reduce that is the buffer once for every rank; of a broadcast the root sends it to every rank and itself,
    and every rank receives it once; of a reduction the other way round. Of gather and scatter the root knows all parts,
    the others take theirs for one of equal ones. What is done in place counts without the own part, which nobody writes
    down: its size comes out by one of `ranks` parts too small. -1 if unknown, also without a number of ranks.
    """
    larger = np.maximum(sent, received)
    sizes = {
        "allreduce": larger // max(1, ranks),
        "allgather": received,
        "reducescatter": sent,
        "alltoall": larger,
        "broadcast": received,
        "reduce": sent,
        "gather": np.where(received > 0, received, sent * ranks),
        "scatter": np.where(sent > 0, sent, received * ranks),
    }
    size = sizes.get(kind or "")
    return np.full_like(sent, -1) if size is None or ranks < 1 else np.where(larger < 0, -1, size)
