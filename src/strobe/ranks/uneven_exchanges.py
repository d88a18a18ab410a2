"""All-to-alls on GPUs in which one rank exchanges most and all others wait for it: experts with uneven tokens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from strobe.ranks.collective_columns import Collectives, Party
from strobe.ranks.collective_kinds import kind_of
from strobe.ranks.collectives import collectives
from strobe.ranks.traffic import traffic
from strobe.steps.usual_steps import usual_steps
from strobe.tables.column_arrays import Floats, Ints, rows_by
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_UNEVEN = 1.2  # times the mean: what capacity factors of experts allow (1.25 in Switch Transformers)
_WAITS = 0.15  # the busiest rank waits for others, too: at most this part of what another one waits


@dataclass(frozen=True)
class UnevenExchange:
    """All-to-alls of a group: places in `found`, its parties, of each the bytes (in and out) and the wait, of a step.

    The rank with most bytes computes longest, and is in the all-to-alls only for the transfer: the others wait for as
    long as they are longer in them, whatever their clocks show. transfer_ns: of the rank with most bytes.
    """

    found: Collectives
    at: Ints
    parties: list[Party]
    size: Floats
    wait_ns: Floats
    transfer_ns: float

    @property
    def matched(self) -> bool:
        """Whether the waits are also known from the clocks of the ranks."""
        return bool((self.found.collective[self.at] >= 0).any())


@cached_on_trace
def uneven_exchanges(trace: Trace) -> list[UnevenExchange]:
    """Return the uneven all-to-alls of all groups in steps in detail; none without steps."""
    if (usual := usual_steps(trace)) is None:
        return []
    steps = int(usual.steps.kept.sum())
    found, moved, out = collectives(trace), _bytes(trace), list[UnevenExchange]()
    on_gpu = np.array([each.on_gpu for each in found.parties], dtype=bool)[found.party]
    chosen = found.of_kinds(("alltoall",)) & (found.row >= 0) & on_gpu
    for line, at in rows_by(np.where(chosen, found.line, -1)):
        numbers, party, calls = np.unique(found.party[at], return_inverse=True, return_counts=True)
        if line < 0 or len(numbers) < 2 or (calls != calls[0]).any():
            continue
        parties = [found.parties[each] for each in numbers.tolist()]
        size = np.array([float(moved[found.lines[line][1], each]) for each in parties])
        inside_ns = np.bincount(party, (found.end_ns - found.call_ns)[at]) / steps
        wait_ns = inside_ns - inside_ns.min()
        if wait_ns[size.argmax()] <= _WAITS * wait_ns.max() and size.max() >= _UNEVEN * size.mean():
            out.append(UnevenExchange(found, at, parties, size, wait_ns, float(inside_ns[size.argmax()])))
    return out


def _bytes(trace: Trace) -> Counter[tuple[str | None, Party]]:
    """Return the bytes of all-to-alls, in and out, by group and party."""
    found, out = traffic(trace), Counter[tuple[str | None, Party]]()
    size = np.maximum(found.in_bytes, 0) + np.maximum(found.out_bytes, 0)
    for line, begin, end in zip(found.lines, found.begin[:-1].tolist(), found.begin[1:].tolist(), strict=True):
        if kind_of(line.kind) == "alltoall":
            out[line.group, line.party] += int(size[begin:end].sum())
    return out
