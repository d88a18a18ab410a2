"""Collectives as columns: which ones parties ran, when each arrived, and who needs whom in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.native import core
from strobe.tables.column_arrays import Bools, Ints, place_of

# Those in which everybody needs data (or a sign of life) of everybody: whoever comes early waits for the last. Before
# 2022 kernels of NCCL called an all-to-all SendRecv, too.
ALL_NEED_ALL = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier", "fence", "sendrecv")
FROM_ROOT, TO_ROOT = ("broadcast", "scatter"), ("reduce", "gather")
PREFIXES = ("scan", "exscan")  # each needs those before it in the communicator
AMONG_NEIGHBOURS = ("neighborallgather", "neighboralltoall")  # each needs those that send to it
NOBODY = -(2**62)  # before every moment of a run, ns


@dataclass(frozen=True)
class Party:
    """A participant in collectives: a GPU of a process, or a process (`device` is None, `on_gpu` false).

    hands_over: its calls give the collective to the GPU and return (NCCL, without kernels in the trace): they begin
    when the rank arrives, and their ends mean nothing.
    """

    process: int
    rank: int | None
    device: int | None
    on_gpu: bool
    hands_over: bool = False

    @property
    def name(self) -> str:
        """Its name in sentences: `rank 3`."""
        return f"process {self.process}" if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True)
class Collectives:
    """Executions of collectives by all parties, in order of party and arrival; columns of equal length.

    texts, sources: among neighbours `sources` is the place of a text in `texts`: the ranks that send to it, as JSON;
    -1 elsewhere or unknown. party, line: numbers in `parties` and `lines`; a line is the kind of collective
    (`allreduce`) and the name of the group, None if unknown; members: by line the ranks of the group, () unknown.
    sequence: number in the group, -1 if unknown. location,
    row: of its span, row -1 where that was folded. start_ns: when the party arrived: the begin of a call or kernel; of
    one that does not block, when it was asked for. call_ns, end_ns: of the call in which it waits for the others, or
    of the kernel; the same where one blocks. call_path: of that call; of a kernel the one without what is around it.
    root: whether the party is the root, 0 or 1, -1 without one or unknown. rank: own one in the group, -1 unknown.
    size: ranks of the group, -1 unknown. sent_bytes, received_bytes: -1 unknown. part_bytes: what goes from one rank to
    another, see `_part_bytes`; -1 unknown. collective: the same number for all participants of one, -1 without a
    partner in the trace. clock_error_ns: possible error of the times of each party against those of the others.
    """

    parties: list[Party]
    lines: list[tuple[str, str | None]]
    members: list[tuple[int, ...]]
    texts: list[str]
    party: Ints
    line: Ints
    sequence: Ints
    location: Ints
    row: Ints
    start_ns: Ints
    call_ns: Ints
    end_ns: Ints
    call_path: Ints
    root: Ints
    rank: Ints
    size: Ints
    sent_bytes: Ints
    received_bytes: Ints
    part_bytes: Ints
    sources: Ints
    collective: Ints
    clock_error_ns: Ints

    def __len__(self) -> int:
        return len(self.party)

    @property
    def blocking(self) -> Bools:
        """Which ones wait in the call that asks for them, or are kernels."""
        return np.asarray(self.start_ns == self.call_ns)

    def of_kinds(self, kinds: Sequence[str]) -> Bools:
        """Return which ones are of some kinds."""
        of_line = np.array([kind in kinds for kind, _ in self.lines], dtype=bool)
        return np.asarray(of_line[self.line], dtype=bool)

    @property
    def needs(self) -> tuple[Bools, Bools, Bools]:
        """Return which ones others in their collective need, which need all of these, and which need those before.

        By Scalasca's definitions all need all; all but the root need the root (broadcast, scatter); the root needs all
        that send it something (reduce, gather); each needs itself and those before it (scan). If it is not known who
        is the root, or in which order ranks are, nobody needs anybody. Among neighbours see `neighbours`.
        """
        common, is_root = self.collective >= 0, self.root == 1
        most = int(self.collective.max(initial=-1)) + 2  # the last one is of those without a partner
        rooted = common & (np.bincount(self.collective[common & is_root], minlength=most)[self.collective] == 1)
        unknown = np.bincount(self.collective[common & (self.rank < 0)], minlength=most)[self.collective] > 0
        everybody, in_order = self.of_kinds(ALL_NEED_ALL) & common, self.of_kinds(PREFIXES) & common & ~unknown
        from_root, to_root = self.of_kinds(FROM_ROOT) & rooted, self.of_kinds(TO_ROOT) & rooted
        needed = everybody | (from_root & is_root) | (to_root & ~is_root & (self.sent_bytes != 0))
        return needed, everybody | (from_root & ~is_root) | (to_root & is_root), in_order

    def neighbours(self) -> tuple[Ints, Ints]:
        """Return pairs of places: who needs whom in a collective among neighbours, as far as that is known."""
        of_rank = {each.rank: at for at, each in enumerate(self.parties) if not each.on_gpu and not each.hands_over}
        (at,) = np.nonzero(self.of_kinds(AMONG_NEIGHBOURS) & (self.sources >= 0) & (self.collective >= 0))
        at = at[np.lexsort((self.collective[at], self.party[at]))]
        of_party = np.split(at, np.searchsorted(self.party[at], np.arange(1, len(self.parties))))
        pairs = [(at[:0], at[:0])]
        for party, text in np.unique(np.column_stack((self.party[at], self.sources[at])), axis=0).tolist():
            own = of_party[party][self.sources[of_party[party]] == text]
            for rank in json.loads(self.texts[text]):
                other = of_party[of_rank[rank]] if rank in of_rank else at[:0]
                place = place_of(self.collective[own], self.collective[other])
                pairs.append((own[place >= 0], other[place[place >= 0]]))
        who, whom = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return who, whom

    def awaited(self) -> tuple[Ints, Ints]:
        """Return until when each has to wait, and the place of the one that it waits for: the last that it needs.

        See `needs`; of several at that moment it is the first. NOBODY and itself where it needs none, or that is not
        known.
        """
        out, who = np.full(len(self), NOBODY, dtype=np.int64), np.arange(len(self))
        needed, needs, in_order = self.needs
        most = int(self.collective.max(initial=-1)) + 2  # the last one is of those without a partner
        latest_ns, last = np.full(most, NOBODY), np.full(most, -1)
        (at,) = np.nonzero(needed)
        core.most_at(latest_ns, self.collective[at], self.start_ns[at])
        at = at[self.start_ns[at] == latest_ns[self.collective[at]]][::-1]
        last[self.collective[at]] = at
        found = needs & (last[self.collective] >= 0)
        who[found] = last[self.collective[found]]
        (at,) = np.nonzero(in_order)
        at = at[np.lexsort((self.rank[at], self.collective[at]))]
        for members in np.split(at, np.flatnonzero(np.diff(self.collective[at])) + 1) if len(at) else ():
            start = self.start_ns[members]
            is_later = np.append(True, start[1:] > np.maximum.accumulate(start)[:-1])
            who[members] = members[np.maximum.accumulate(np.where(is_later, np.arange(len(members)), 0))]
        own, other = self.neighbours()
        order = np.lexsort((-other, self.start_ns[other], own))
        own, other = own[order], other[order]
        latest = np.diff(own, append=-1) != 0
        who[own[latest]] = other[latest]
        found |= in_order
        found[own] = True
        out[found] = self.start_ns[who[found]]
        return out, who

    def first_left(self) -> Ints:
        """Return when the first of each one's neighbours and itself had left a collective among neighbours, ns."""
        left, (own, other) = self.end_ns.copy(), self.neighbours()
        core.least_at(left, own, self.end_ns[other])
        return left
