"""What the order of a sequence of events costs in several encodings, side by side.

The temporal flow graph (t-EFG) is not the smallest of them, zstd on the ids is; it is the one that can be kept in
bounded memory while the program runs, and that has statistics of every transition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.steps.loops.expression import fold
from strobe.steps.loops.flow_graph import build_graph


@dataclass(frozen=True)
class OrderBytes:
    """Bytes for the order of `events` events of `kinds` kinds; what the kinds are called is in none of them.

    raw: ids of 1, 2 or 4 bytes, as few as suffice. zstd: these, compressed at level 19.
    temporal: successors, counts and partitions of the t-EFG. second_level: with tandem repeats of partitions as loops.
    elements: events and LOOPs of the SEQ/LOOP expression (a number, not bytes), runs: trip counts that differ in it.
    """

    events: int
    kinds: int
    raw: int
    zstd: int
    temporal: int
    second_level: int
    elements: int
    runs: int


def order_bytes(ids: npt.NDArray[np.integer]) -> OrderBytes:
    """Measure a sequence; exact for up to 65,535 kinds and 262,144 transitions, and no order is forgotten."""
    values, codes = np.unique(np.asarray(ids), return_inverse=True)
    width = np.min_scalar_type(max(len(values) - 1, 0))
    raw = codes.astype(width).tobytes()
    graph = build_graph(codes, np.arange(len(codes)), partition_bytes=1 << 30)
    expression = fold(codes)
    return OrderBytes(
        events=len(codes),
        kinds=len(values),
        raw=len(raw),
        zstd=len(pa.Codec("zstd", compression_level=19).compress(raw)),
        temporal=graph.native.structure_bytes(False),
        second_level=graph.native.structure_bytes(True),
        elements=len(expression),
        runs=len(expression.trips),
    )
