"""Clocks of ranks whose files come from different machines, aligned by the collectives that all of them took part in.

A collective in which every rank needs data of every other one ends on all of them at nearly the same moment, however
late a rank came. The median difference of these ends is the difference of the clocks, their spread its uncertainty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows, ranks_of, region_rows
from strobe.trace.trace import Trace

# Not broadcasts, sends and receives: there, a rank may be done before the others have begun.
_ALL_NEED_ALL = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE)
_LEAST = 3
_Ends = dict[str, Ints]


@dataclass(frozen=True)
class Alignment:
    """By how much the clock of a rank is ahead of the first rank's, ns; 90 % of `matches` collectives agree within
    `error_ns`."""

    ahead_ns: int
    error_ns: int
    matches: int

    @property
    def worth_it(self) -> bool:
        """Whether the difference is larger than its uncertainty."""
        return abs(self.ahead_ns) > self.error_ns


def alignments(trace: Trace) -> dict[int, Alignment]:
    """Return, by rank, how its clock differs from that of the lowest rank; ranks that share too little are not there.

    Looks at collective kernels on GPU streams, one kind of collective at a time, in order; kinds that a rank ran a
    different number of times are left out.
    """
    ends = _ends_by_rank(trace)
    if len(ends) < 2:
        return {}
    first, *others = sorted(ends)
    found = {}
    for rank in others:
        kinds = [kind for kind, at in ends[first].items() if len(ends[rank].get(kind, ())) == len(at)]
        if not kinds:
            continue
        ahead = np.concatenate([ends[rank][kind] - ends[first][kind] for kind in kinds])
        if len(ahead) < _LEAST:
            continue
        middle = int(np.median(ahead))
        spread = int(np.ceil(np.quantile(np.abs(ahead - middle), 0.9)))
        found[rank] = Alignment(middle, spread, len(ahead))
    return found


def _ends_by_rank(trace: Trace) -> dict[int, _Ends]:
    """When the collective kernels of every rank ended, by kind, in the order in which they began."""
    kind_of = {
        row.region: match[0].lower().replace("_", "")
        for row in region_rows(trace)
        if row.role in ("kernel", "collective") and (match := _ALL_NEED_ALL.search(row.name))
    }
    if not kind_of:
        return {}
    ranks = ranks_of(trace)
    wanted = np.array(sorted(kind_of), dtype=np.uint32)
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for row in location_rows(trace):
        rank = ranks[row.process]
        if row.kind != "stream" or rank is None:
            continue
        arrays = trace.span_arrays(row.location)
        mine = np.isin(arrays["region"], wanted)
        start = arrays["start_ns"][mine]
        kinds = [kind_of[region] for region in arrays["region"][mine].tolist()]
        end = start + arrays["duration_ns"][mine]
        spans.setdefault(rank, []).extend(zip(start.tolist(), end.tolist(), kinds, strict=True))
    ends: dict[int, _Ends] = {}
    for rank, found in spans.items():
        by_kind: dict[str, list[int]] = {}
        for _, end_ns, kind in sorted(found):
            by_kind.setdefault(kind, []).append(end_ns)
        ends[rank] = {kind: np.array(times, dtype=np.int64) for kind, times in by_kind.items()}
    return ends
