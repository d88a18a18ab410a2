"""Which rank is late: who comes last to collectives, by how much, and what the others wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.collectives import Collectives

    Ints = npt.NDArray[np.int64]

_ONE_RANK = (
    "this trace has one rank: who is late can be told from two ranks on;"
    " strobe import takes the files of all ranks, or a folder"
)
_NO_COLLECTIVE = (
    "no collective that two ranks took part in is in this trace; kernels and calls of NCCL and the like, blocking"
    " collectives of MPI and those of gloo are looked at"
)
# A rank is the late one if it causes this part of the delays. Of two that are alike, one may well cause more than half.
_MOST, _MOST_OF_TWO = 1 / 2, 2 / 3


def run(trace: Trace, *, by: str = "rank") -> Table:
    """Sum by how much every rank comes too late to collectives: by its arrival there, not by the time of its phases.

    Looked at are collectives in which all wait for all (all-reduce, all-gather, reduce-scatter, all-to-all, barrier).
    A rank arrives when its kernel starts on the GPU (NCCL, RCCL), or when its call begins (MPI, gloo; NCCL where its
    kernels are not recorded: then the host does not wait, and `wait` is what the GPU would). late = arrival
    minus that of the middle one, the earlier of two (below 0: earlier). wait = last arrival minus its own. delay = last
    arrival minus the last but one: how much sooner the collective could begin if the last one came with the next.
    `last` and `delay_ns` count only delays above the error of the clocks: the sum of what that of the last one, and of
    any of the others, may be off. It is how well ends of collectives agree, as found when the files of ranks were
    put together; 0 on one machine. The sentence below the table names the late rank if one causes half of the delays
    (of two ranks: two thirds). Ranks are matched by group and number of the collective, else by order, else by what
    overlaps.
    """
    from strobe.store.table import make_table
    from strobe.structure.collectives import collectives

    found = collectives(trace)
    arrivals = _Arrivals(found)
    rows = {"rank": _by_rank, "kind": _by_kind, "collective": _by_collective}[by](found, arrivals)
    columns = _collective_columns() if by == "collective" else _rank_columns(with_kind=by == "kind")
    several = len(found.parties) > 1 or len({*trace.processes.column("rank")} - {None}) > 1
    note = arrivals.verdict() if arrivals.count else _NO_COLLECTIVE if several else _ONE_RANK
    return make_table(columns, rows, name="stragglers", about=f"{arrivals.count} collectives", note=note)


def _rank_columns(*, with_kind: bool) -> tuple[Column, ...]:
    from strobe.model.schema import Column

    kind = (
        Column("kind", "string", "", "kind of collective: allreduce, allgather, ..."),
        Column("group", "string", "", "name of the group, null where unknown"),
    )
    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process", extra=True),
        Column("device", "int64", "", "number of the GPU, null for collectives on the host", extra=True),
        *(kind if with_kind else ()),
        Column("collectives", "int64", "", "collectives that it and another rank took part in"),
        Column("last", "int64", "", "those to which it came last, by more than the error of the clocks"),
        Column("delay_ns", "int64", "ns", "how much sooner those could have begun: its arrival - the last but one"),
        Column("late_mean_ns", "float64", "ns", "its arrival - that of the middle rank, mean"),
        Column("late_median_ns", "float64", "ns", "the same, median"),
        Column("late_max_ns", "int64", "ns", "the same, most", extra=True),
        Column("wait_ns", "int64", "ns", "what it waited itself: last arrival - its own, all collectives"),
        Column("clock_error_ns", "int64", "ns", "by how much its clock may be wrong"),
        Column("unmatched", "int64", "", "collectives that are of no other rank in this trace", extra=True),
    )


def _collective_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("kind", "string", "", "kind of collective: allreduce, allgather, ..."),
        Column("group", "string", "", "name of the group, null where unknown"),
        Column("sequence", "int64", "", "number in the group, null where unknown", extra=True),
        Column("ranks", "int64", "", "who took part, as far as they are in this trace"),
        Column("start_ns", "int64", "ns", "first arrival"),
        Column("last_rank", "int64", "", "rank that arrived last"),
        Column("late_ns", "int64", "ns", "last arrival - that of the middle rank"),
        Column("delay_ns", "int64", "ns", "last arrival - the last but one"),
        Column("wait_ns", "int64", "ns", "what all waited: last arrival - their own, summed"),
        Column("clock_error_ns", "int64", "ns", "by how much the last two arrivals may be wrong"),
        Column("location", "uint32", "", "where the last one ran", extra=True),
        Column("row", "int64", "", "number of its span there", extra=True),
    )


class _Arrivals:
    """Arrivals at matched collectives, in order of collective and arrival; and by collective who was last."""

    def __init__(self, found: Collectives) -> None:
        import numpy as np

        (at,) = np.nonzero(found.collective >= 0)
        at = at[np.lexsort((found.start_ns[at], found.collective[at]))]
        self.at, start = at, found.start_ns[at]
        self.begin = np.flatnonzero(np.diff(found.collective[at], prepend=-1))
        self.ranks = np.diff(self.begin, append=len(at))
        self.count = len(self.begin)
        self.last = self.begin + self.ranks - 1
        self.late_ns = start - np.repeat(start[self.begin + (self.ranks - 1) // 2], self.ranks)
        self.wait_ns = np.repeat(start[self.last], self.ranks) - start
        self.delay_ns = start[self.last] - start[self.last - 1]
        error = found.clock_error_ns[found.party[at]]
        others = error.copy()
        others[self.last] = 0
        self.error_ns = error[self.last] + (np.maximum.reduceat(others, self.begin) if self.count else 0)
        self.counts = self.delay_ns > self.error_ns
        self._found = found

    def verdict(self) -> str:
        """Say in a sentence who is late."""
        import numpy as np

        from strobe.model.units import format_count, format_ns, format_share

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


def _by_rank(found: Collectives, arrivals: _Arrivals) -> Iterator[tuple[object, ...]]:
    for k, cells in _sums(found, arrivals, found.party):
        yield *_who(found, k), *cells


def _by_kind(found: Collectives, arrivals: _Arrivals) -> Iterator[tuple[object, ...]]:
    for code, cells in _sums(found, arrivals, found.party * max(1, len(found.lines)) + found.line):
        party, line = divmod(code, len(found.lines))
        yield *_who(found, party), *found.lines[line], *cells


def _who(found: Collectives, k: int) -> tuple[object, ...]:
    party = found.parties[k]
    return party.rank, party.process, party.device


def _sums(found: Collectives, arrivals: _Arrivals, group: Ints) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield every group of executions that has a matched one, and the columns from `collectives` on."""
    import numpy as np

    delay = np.zeros(len(arrivals.at), dtype=np.int64)
    delay[arrivals.last[arrivals.counts]] = arrivals.delay_ns[arrivals.counts]
    error = found.clock_error_ns[found.party[arrivals.at]]
    unmatched = np.bincount(group[found.collective < 0], minlength=int(group.max(initial=-1)) + 1)
    of = group[arrivals.at]
    order = np.argsort(of, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(of[order])) + 1) if len(order) else ():
        k, late = int(of[own[0]]), arrivals.late_ns[own]
        sums = (len(own), int((delay[own] > 0).sum()), int(delay[own].sum()))
        lateness = (float(late.mean()), float(np.median(late)), int(late.max()))
        yield k, (*sums, *lateness, int(arrivals.wait_ns[own].sum()), int(error[own[0]]), int(unmatched[k]))


def _by_collective(found: Collectives, arrivals: _Arrivals) -> Iterator[tuple[object, ...]]:
    import numpy as np

    last, first = arrivals.at[arrivals.last], arrivals.at[arrivals.begin]
    wait = np.add.reduceat(arrivals.wait_ns, arrivals.begin) if arrivals.count else arrivals.wait_ns
    columns = (
        arrivals.ranks, found.start_ns[first], found.party[last], arrivals.late_ns[arrivals.last], arrivals.delay_ns,
        wait, arrivals.error_ns, found.location[last], found.row[last], found.line[last], found.sequence[last],
    )  # fmt: skip
    order = np.argsort(columns[1], kind="stable")
    for ranks, start, party, *cells, line, sequence in zip(*(c[order].tolist() for c in columns), strict=True):
        number = sequence if sequence >= 0 else None
        yield *found.lines[line], number, ranks, start, found.parties[party].rank, *cells


ANALYSIS = Analysis(
    "stragglers",
    "Which rank comes late to collectives, and what do the others wait for it?",
    run,
    options=(
        Option(
            "by",
            "one row a rank, one a rank and kind of collective, or one a collective",
            default="rank",
            choices=("rank", "kind", "collective"),
        ),
    ),
)
