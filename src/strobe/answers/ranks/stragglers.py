"""Which rank is late: who comes last to collectives, by how much, and what the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from strobe.analyses.ranks.stragglers import ANALYSIS
from strobe.model.units import format_count, format_ns, format_share
from strobe.ranks.collective_columns import NOBODY, Collectives
from strobe.ranks.collectives import collectives
from strobe.ranks.flight_recorder.unfinished import unfinished
from strobe.steps.thread_spans import Ints
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_ONE_RANK = "this trace has one rank, and lateness needs two: strobe import takes the files of all ranks, or a folder"
_NO_COLLECTIVE = (
    "no collective in this trace has two ranks (of NCCL and similar libraries, blocking calls of MPI, or gloo)"
)
# A rank is the late one if it causes this part of the delays. Of two that are alike, one may well cause more than half.
_MOST, _MOST_OF_TWO = 1 / 2, 2 / 3
# Columns of a line of collectives.
_LINE = ("kind", "group")


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.stragglers`."""
    found = _all_came(trace, collectives(trace))
    arrivals = _Arrivals(found)
    rows = {"rank": _by_rank, "kind": _by_kind, "collective": _by_collective}[by](found, arrivals)
    several = len(found.parties) > 1 or len({*trace.processes.column("rank")} - {None}) > 1
    note = arrivals.verdict() if arrivals.count else _NO_COLLECTIVE if several else _ONE_RANK
    return make_table(ANALYSIS.columns_with(by=by), rows, about=f"{arrivals.count} collectives", note=note)


def _all_came(trace: Trace, found: Collectives) -> Collectives:
    """Return collectives without those in which a job hangs: nobody came last there."""
    came = found.collective.copy()
    for one in unfinished(trace):
        lines = [number for number, (_, group) in enumerate(found.lines) if group == one.group.name]
        came[np.isin(found.line, lines) & (found.sequence >= one.sequence)] = -1
    return replace(found, collective=came)


class _Arrivals:
    """Arrivals at matched collectives, in order of collective and arrival; and by collective who was last.

    Only of collectives in which somebody needs another one, as far as known (of a broadcast: with its root). The last
    one is the last that somebody needs.
    """

    def __init__(self, found: Collectives) -> None:

        awaited, _ = found.awaited()
        needed = np.zeros(int(found.collective.max(initial=-1)) + 2, dtype=bool)
        needed[found.collective[awaited != NOBODY]] = True
        (at,) = np.nonzero((found.collective >= 0) & needed[found.collective])
        at = at[np.lexsort((found.start_ns[at], found.collective[at]))]
        self.at, start, awaited = at, found.start_ns[at], awaited[at]
        self.begin = np.flatnonzero(np.diff(found.collective[at], prepend=-1))
        self.ranks = np.diff(self.begin, append=len(at))
        self.count = len(self.begin)
        self.last = self.begin
        self.wait_ns = np.maximum(0, awaited - start)
        self.delay_ns = start[self.begin]
        if self.count:
            last_ns = np.repeat(np.maximum.reduceat(awaited, self.begin), self.ranks)
            self.last = self.begin + np.add.reduceat((start <= last_ns).astype(np.int64), self.begin) - 1
            waited = np.maximum.reduceat(self.wait_ns, self.begin) > 0
            self.delay_ns = np.where(waited, start[self.last] - start[np.maximum(self.last - 1, self.begin)], 0)
        self.late_ns = start - np.repeat(start[self.begin + (self.ranks - 1) // 2], self.ranks)
        error = found.clock_error_ns[found.party[at]]
        others = error.copy()
        others[self.last] = 0
        self.error_ns = error[self.last] + (np.maximum.reduceat(others, self.begin) if self.count else 0)
        self.counts = self.delay_ns > self.error_ns
        self._found = found

    def verdict(self) -> str:
        """Return a sentence about who is late."""

        found, party = self._found, self._found.party[self.at]
        last = party[self.last][self.counts]
        by_party = np.bincount(last, self.delay_ns[self.counts], len(found.parties))
        whole, worst = float(by_party.sum()), int(by_party.argmax())
        if not whole:
            return f"no rank is later than the error of the clocks allows: up to {format_ns(int(self.error_ns.max()))}"
        name, part = found.parties[worst].name, by_party[worst] / whole
        if part < (_MOST if len(np.unique(party)) > 2 else _MOST_OF_TWO):
            return (
                f"no single rank is late: of {format_ns(whole)} that collectives waited for their last rank alone,"
                f" {name} caused the most, {format_share(part)}"
            )
        late = float(np.median(self.late_ns[party == worst]))
        return (
            f"{name} is late: it came last to {format_count(int((last == worst).sum()))} of"
            f" {format_count(int((party == worst).sum()))} collectives, which could have begun"
            f" {format_ns(by_party[worst])} sooner in all; at the median it comes"
            f" {format_ns(late)} after the middle rank"
        )


def _by_rank(found: Collectives, arrivals: _Arrivals) -> Iterator[Mapping[str, object]]:
    for k, cells in _sums(found, arrivals, found.party):
        yield {**vars(found.parties[k]), **cells}


def _by_kind(found: Collectives, arrivals: _Arrivals) -> Iterator[Mapping[str, object]]:
    for code, cells in _sums(found, arrivals, found.party * max(1, len(found.lines)) + found.line):
        party, line = divmod(code, len(found.lines))
        yield {**vars(found.parties[party]), **dict(zip(_LINE, found.lines[line], strict=True)), **cells}


def _sums(found: Collectives, arrivals: _Arrivals, group: Ints) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield every group of executions that has a matched one, and the cells that are sums of it."""
    delay = np.zeros(len(arrivals.at), dtype=np.int64)
    delay[arrivals.last[arrivals.counts]] = arrivals.delay_ns[arrivals.counts]
    error = found.clock_error_ns[found.party[arrivals.at]]
    unmatched = np.bincount(group[found.collective < 0], minlength=int(group.max(initial=-1)) + 1)
    groups = group[arrivals.at]
    order = np.argsort(groups, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else ():
        k, late = int(groups[own[0]]), arrivals.late_ns[own]
        yield (
            k,
            {
                "collectives": len(own),
                "last": int((delay[own] > 0).sum()),
                "delay_ns": int(delay[own].sum()),
                "late_mean_ns": float(late.mean()),
                "late_median_ns": float(np.median(late)),
                "late_max_ns": int(late.max()),
                "wait_ns": int(arrivals.wait_ns[own].sum()),
                "clock_error_ns": int(error[own[0]]),
                "unmatched": int(unmatched[k]),
            },
        )


def _by_collective(found: Collectives, arrivals: _Arrivals) -> Iterator[Mapping[str, object]]:
    last, first = arrivals.at[arrivals.last], arrivals.at[arrivals.begin]
    wait = np.add.reduceat(arrivals.wait_ns, arrivals.begin) if arrivals.count else arrivals.wait_ns
    start = found.start_ns[first]
    columns = {
        "ranks": arrivals.ranks,
        "start_ns": start,
        "late_ns": arrivals.late_ns[arrivals.last],
        "delay_ns": arrivals.delay_ns,
        "wait_ns": wait,
        "clock_error_ns": arrivals.error_ns,
        "location": found.location[last],
        "row": found.row[last],
    }
    for k in np.argsort(start, kind="stable").tolist():
        sequence = int(found.sequence[last[k]])
        yield {
            **dict(zip(_LINE, found.lines[found.line[last[k]]], strict=True)),
            "sequence": sequence if sequence >= 0 else None,
            "last_rank": found.parties[int(found.party[last[k]])].rank,
            **{name: int(column[k]) for name, column in columns.items()},
        }
