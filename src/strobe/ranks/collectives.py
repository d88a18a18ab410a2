"""Collectives: who ran the same one, and when each of them arrived there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise, starmap

import numpy as np
import pyarrow as pa

from strobe.gpu.devices import devices
from strobe.native import core
from strobe.ranks.clock_errors import clock_errors
from strobe.ranks.collective_kernels import (
    blocks,
    executions,
    hands_over,
    kinds_by_name,
    kinds_of_texts,
    on_host,
    thread_spans,
)
from strobe.ranks.collective_kinds import kind_of
from strobe.ranks.messages import numbered, places
from strobe.sums.attributes import integers
from strobe.sums.groups import Groups, Texts
from strobe.sums.side_columns import WHOLE, NeedsWholeLogError, Part, parts_of, side_columns
from strobe.tables.column_arrays import Bools, Columns, Ints, alike, place_of, rows_by
from strobe.trace.definition_rows import Region, path_tree, processes_of_locations, ranks_of, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Those in which everybody needs data (or a sign of life) of everybody: whoever comes early waits for the last. Before
# 2022 kernels of NCCL called an all-to-all SendRecv, too.
ALL_NEED_ALL = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier", "fence", "sendrecv")
FROM_ROOT, TO_ROOT = ("broadcast", "scatter"), ("reduce", "gather")
PREFIXES = ("scan", "exscan")  # each needs those before it in the communicator
AMONG_NEIGHBOURS = ("neighborallgather", "neighboralltoall")  # each needs those that send to it
_KINDS = {*ALL_NEED_ALL, *FROM_ROOT, *TO_ROOT, *PREFIXES, *AMONG_NEIGHBOURS}
_OWN_COUNTS = re.compile("all_?to_?all_?[vw]", re.IGNORECASE)  # for each rank, and these are not recorded
_TEXTS = ("collective", "group", "group_ranks", "communicator", "source_ranks")
_COLUMNS = (*_TEXTS, "sequence", "root", "rank", "group_size", "sent_bytes", "received_bytes", "pending_ns")
NOBODY = -(2**62)  # before every moment of a run, ns
# Matching by order is right if at least this part of the matched collectives run at the same moment everywhere.
_TOGETHER = 0.5
# This part of the ends of collectives lies within the error of the clocks.
_WITHIN = 0.9


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
    (`allreduce`) and the name of the group, None if unknown. sequence: number in the group, -1 if unknown. location,
    row: of its span, row -1 where that was folded. start_ns: when the party arrived: the begin of a call or kernel; of
    one that does not block, when it was asked for. call_ns, end_ns: of the call in which it waits for the others, or
    of the kernel; the same where one blocks. call_path: of that call; of a kernel the one without what is around it.
    root: whether the party is the root, 0 or 1, -1 without one or unknown. rank: own one in the group, -1 unknown.
    size: ranks of the group, -1 unknown. sent_bytes: -1 unknown. part_bytes: what goes from one rank to another, see
    `_part_bytes`; -1 unknown. collective: the same number for all participants of one, -1 without a partner in the
    trace. clock_error_ns: possible error of the times of each party against those of the others.
    """

    parties: list[Party]
    lines: list[tuple[str, str | None]]
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


@cached_on_trace
def collectives(trace: Trace) -> Collectives:
    """Return the collectives of a trace, matched among ranks; computed once per open trace.

    They are kernels of NCCL and its like, whose start on the GPU is the arrival (from then on the kernel waits for the
    others; see `executions`), calls of MPI and collectives of gloo; those of iterations that were folded, too, but for
    kernels. If no kernels are recorded, calls of NCCL arrive when they begin. Executions of one collective have the
    same group and number (PyTorch 2.2 and later write it, Seq, and calls of NCCL in a communicator are counted). If the
    number is unknown, the executions of a kind in a group are matched by their order, if all parties ran it equally
    often and those matched ran at the same moment (or the group is a communicator of MPI, of which all are recorded);
    else, where all need all, those that overlap in time: nobody is done before the last one has come. Calls of MPI
    without a recorded communicator count as of one group. A kernel SendRecv may be an all-to-all or messages of a pair:
    either way who comes early waits. Collectives among neighbours are matched as those of their communicator.
    """
    return _matched(*_read(trace))


def collective_parts(trace: Trace, *, whole: bool) -> Iterator[Collectives]:
    """Yield the collectives of a trace in parts that fit into memory, each collective in one, or all at once.

    In parts are those of communicators of MPI, all of whose ranks are in the trace, with known errors of the clocks: a
    rank's n-th one of a kind is the n-th of all others. Raises NeedsWholeLogError if there are others, or ranks lack.
    """
    count = 1 if whole else parts_of(trace, "folded_collectives")
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    parties = [Party(number, rank, None, on_gpu=False) for number, rank in enumerate(ranks_of(trace))]
    (first, *_) = [*(at for at, each in enumerate(trace.readers) if each.tables().get("folded_collectives")), 0]
    errors = clock_errors(trace, first)
    if count == 1 or devices(trace) or regions_where(trace, hands_over).any() or (errors < 0).any():
        yield collectives(trace)
        return
    lines, texts, relevant = Groups(), Texts(), regions_where(trace, on_host)
    detail = {party.process: found for party, found in _on_threads(trace, texts, on_host, to_gpu=False, folded=False)}
    waiting, waiting_line = _Found.joined(()), np.zeros(0, dtype=np.int64)
    seen, last_ns = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)  # by line and party
    for number in range(count):
        folded = _folded(trace, relevant, texts, (number, count))
        until_ns = np.full(len(parties), NOBODY if number < count - 1 else -NOBODY)
        core.most_at(until_ns, process[folded.location], folded.start_ns)
        early = {at: found.start_ns <= until_ns[at] for at, found in detail.items()}
        read = _Found.joined([folded, *(found.chosen(early[at]) for at, found in detail.items())])
        detail = {at: found.chosen(~early[at]) for at, found in detail.items()}
        party = process[read.location]
        if (np.diff(party) < 0).any() or ((np.diff(read.start_ns) < 0) & (np.diff(party) == 0)).any():
            read = read.chosen(np.lexsort((read.start_ns, party)))
            party = process[read.location]
        line = lines.numbers([read.kind, read.group, read.ranks, read.counted])
        groups = len(lines) * len(parties)
        seen = np.append(seen, np.zeros(groups - len(seen), dtype=np.int64))
        last_ns = np.append(last_ns, np.full(groups - len(last_ns), NOBODY))
        group = line * len(parties) + party
        if (read.counted != 2).any() or (read.start_ns < last_ns[group]).any():
            raise NeedsWholeLogError
        sequence = seen[group] + places(group)
        seen += np.bincount(group, minlength=groups)
        core.most_at(last_ns, group, read.start_ns)
        read, line = _Found.joined([waiting, replace(read, sequence=sequence)]), np.append(waiting_line, line)
        _, collective = alike((line, read.sequence))
        complete = np.bincount(collective)[collective] == read.size
        at = core.in_order_of(process[read.location], len(parties))
        at = at[complete[at]]
        waiting, waiting_line = read.chosen(~complete), line[~complete]
        read, line, which = read.chosen(at), line[at], np.where(read.size[at] > 1, collective[at], -1)
        found = _collectives(parties, lines, texts, process[read.location], line, read, which, errors)
        del folded, read, party, group, sequence, line, collective, complete, at, which  # before the next part is read
        yield found
        del found
    if len(waiting):
        raise NeedsWholeLogError


@dataclass(frozen=True)
class _Found(Columns):
    """Executions as read; kind, group, ranks: numbers of texts.

    counted: 1 if there is a sequence number, 2 if all collectives of a known communicator of MPI are there; else 0.
    """

    kind: Ints
    group: Ints
    ranks: Ints
    counted: Ints
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
    part_bytes: Ints
    sources: Ints


@dataclass(frozen=True)
class _Calls(Columns):
    """Where collectives ran, in the order of their attributes; see Collectives."""

    location: Ints
    row: Ints
    call_ns: Ints
    end_ns: Ints
    call_path: Ints


def _read(trace: Trace) -> tuple[Collectives, list[bool]]:
    """Return the collectives, and which lines are those of a communicator of MPI."""
    lines, texts = Groups(), Texts()
    on_gpus = list(_on_gpus(trace, texts))
    with_kernels = {party.process for party, found in on_gpus if len(found)}
    on_hosts = _on_threads(trace, texts, on_host, to_gpu=False)
    handed_over = _on_threads(trace, texts, hands_over, to_gpu=True)
    handed_over = (each for each in handed_over if each[0].process not in with_kernels)
    read = [(party, found) for party, found in [*on_gpus, *on_hosts, *handed_over] if len(found)]
    parties = [party for party, _ in read]
    found = _Found.joined(found for _, found in read)
    party = np.repeat(np.arange(len(read)), np.array([len(found) for _, found in read], dtype=np.int64))
    # Names of groups are the same on all ranks, but not only there: who is in them belongs to the name.
    own_lines = [lines.numbers([each.kind, each.group, each.ranks, each.counted]) for _, each in read]
    line = np.concatenate([np.zeros(0, dtype=np.int64), *own_lines])
    order = np.lexsort((found.start_ns, party))
    found, party, line = found.chosen(order), party[order], line[order]
    no_partner = np.full(len(found), -1, dtype=np.int64)
    read_all = _collectives(parties, lines, texts, party, line, found, no_partner, _known_errors(trace, parties))
    return read_all, [counted == 2 for *_, counted in lines.keys]


def _collectives(
    parties: list[Party],
    lines: Groups,
    texts: Texts,
    party: Ints,
    line: Ints,
    found: _Found,
    collective: Ints,
    clock_error_ns: Ints,
) -> Collectives:
    named = [(texts.texts[kind], texts.text(group)) for kind, group, *_ in lines.keys]
    of_each = {each.name: getattr(found, each.name) for each in fields(_Found)[4:]}
    return Collectives(
        parties, named, [*texts.texts], party, line, collective=collective, clock_error_ns=clock_error_ns, **of_each
    )


def _on_gpus(trace: Trace, texts: Texts) -> Iterator[tuple[Party, _Found]]:
    in_name = kinds_by_name(trace, texts, lambda region: region.group == "communication", _kind)
    parent, of_path = path_tree(trace)
    at_root = np.full(len(in_name), -1, dtype=np.int64)  # by region, its call path without anything around it
    at_root[of_path[parent < 0]] = np.flatnonzero(parent < 0)
    for device in devices(trace):
        parts = []
        for each in executions(trace, device, _COLUMNS) if (in_name >= 0).any() else ():
            work = each.work
            path = at_root[work.region]
            calls = _Calls(work.location.astype(np.int64), work.row, work.start_ns, work.end_ns, path)
            numbers = _read_columns(each.attributes, texts)
            parts.append(_found(numbers, in_name[work.region], calls, texts, device.rank, on_gpu=True))
        yield Party(device.process, device.rank, device.number, on_gpu=True), _Found.joined(parts)


def _on_threads(
    trace: Trace, texts: Texts, wanted: Callable[[Region], bool], *, to_gpu: bool, folded: bool = True
) -> Iterator[tuple[Party, _Found]]:
    """Yield the collectives of every process that calls MPI, or runs gloo; or calls NCCL, which hands them over."""
    relevant, ranks = regions_where(trace, wanted), ranks_of(trace)
    if not relevant.any():
        return
    # Without a row: blocking ones of MPI by their name. A call of NCCL without a row is part of one of PyTorch, which
    # has it.
    in_name = kinds_by_name(trace, texts, lambda region: not to_gpu and blocks(region), _kind)
    parts: dict[int, list[_Found]] = {}
    for location, spans, own in thread_spans(trace, _COLUMNS):
        rows = own.between(int(spans["row"][0]), int(spans["row"][-1]))
        of_row = integers(rows.column("row"))
        (alone,) = np.nonzero((in_name[spans["region"]] >= 0) & ~np.isin(spans["row"], of_row))
        known = place_of(of_row, spans["row"])
        rows, known = rows.filter(pa.array(known >= 0)), known[known >= 0]
        own_kind = relevant[spans["region"][known]]
        rows, known = rows.filter(pa.array(own_kind)), known[own_kind]
        nothing = pa.table({name: pa.nulls(len(alone), rows.schema.field(name).type) for name in rows.column_names})
        at = np.concatenate((known, alone))
        start = spans["start_ns"][at]
        where, path = np.full(len(at), location.location), spans["call_path"][at].astype(np.int64)
        calls = _Calls(where, spans["row"][at], start, start + spans["duration_ns"][at], path)
        attributes = pa.concat_tables([rows, nothing])
        numbers = _read_columns(attributes, texts)
        found = _found(numbers, in_name[spans["region"][at]], calls, texts, ranks[location.process])
        parts.setdefault(location.process, []).append(found)
    if folded:
        found = _folded(trace, relevant, texts)
        process_of = np.array(processes_of_locations(trace), dtype=np.int64)[found.location]
        bounds = np.searchsorted(process_of, np.arange(len(ranks) + 1)).tolist()
        for process, rows in enumerate(starmap(slice, pairwise(bounds))):
            parts.setdefault(process, []).append(found.chosen(rows))
    for process in sorted(parts):
        yield Party(process, ranks[process], None, on_gpu=False, hands_over=to_gpu), _Found.joined(parts[process])


def _folded(trace: Trace, relevant: Bools, texts: Texts, part: Part = WHOLE) -> _Found:
    """Return the collectives of iterations that were folded, in order of location; of calls of relevant regions."""
    names = ("time_ns", "duration_ns", "call_path", *_COLUMNS)
    location, cells = side_columns(trace, "folded_collectives", names, texts, part)
    wanted = np.append(np.append(relevant, False)[trace.definitions.path_region], False)[cells["call_path"]]
    if not wanted.all():
        location, cells = location[wanted], {name: values[wanted] for name, values in cells.items()}
    ranks = np.array([-1 if rank is None else rank for rank in ranks_of(trace)], dtype=np.int64)
    rank = ranks[np.array(processes_of_locations(trace), dtype=np.int64)[location]]
    time, none = cells["time_ns"], np.full(len(location), -1)
    calls = _Calls(location, none, time, time + cells["duration_ns"], cells["call_path"])
    return _found(cells, none, calls, texts, rank)


def _read_columns(table: pa.Table, texts: Texts) -> dict[str, Ints]:
    """Return the attributes of collectives as numbers, texts as those in `texts`."""
    found = {name: texts.numbers(table.column(name)) for name in _TEXTS}
    return {**found, **{name: integers(table.column(name)) for name in _COLUMNS[len(_TEXTS) :]}}


def _kind(name: str | None) -> str | None:
    kind = kind_of(name)
    return kind if kind in _KINDS else None


def _found(
    attributes: Mapping[str, Ints],
    kind: Ints,
    calls: _Calls,
    texts: Texts,
    rank: Ints | int | None,
    *,
    on_gpu: bool = False,
) -> _Found:
    """Return the collectives among calls or kernels; what the side table knows of the kind comes first."""
    name, group, ranks, communicator, sources = (attributes[column] for column in _TEXTS)
    # Under its own name, a broadcast remains one whatever the kernel is called.
    kind = np.where(name >= 0, kinds_of_texts(texts, _kind)[name], kind)
    sequence, root, own, size, sent, received, pending = (attributes[column] for column in _COLUMNS[len(_TEXTS) :])
    # The place in a group of PyTorch; of one of NCCL it is not known.
    of_row = np.broadcast_to(-1 if rank is None else rank, len(ranks))
    first, which = alike((ranks, of_row))
    named = zip(ranks[first].tolist(), of_row[first].tolist(), strict=True)
    own = np.where(own >= 0, own, np.array([_place(texts.text(group), one) for group, one in named], np.int64)[which])
    is_root = np.where((root >= 0) & (own >= 0), (root == own).astype(np.int64), -1)
    # Gloo's own thread comes to it when it begins, whenever it was asked for.
    start = np.where((pending >= 0) & (group < 0) & (not on_gpu), calls.end_ns - pending, calls.call_ns)
    part = np.where(group < 0, _part_bytes(texts, kind, name, size, sent, received), -1)
    counted = np.where(sequence >= 0, 1, np.where((group < 0) & (communicator >= 0), 2, 0))
    group = np.where(group >= 0, group, communicator)
    where = (calls.location, calls.row, start, calls.call_ns, calls.end_ns, calls.call_path)
    found = _Found(kind, group, ranks, counted, sequence, *where, is_root, own, size, sent, part, sources)
    return found.chosen(kind >= 0)


def _part_bytes(texts: Texts, kind: Ints, name: Ints, size: Ints, sent: Ints, received: Ints) -> Ints:
    """Return the bytes from one rank to another of calls of MPI, as far as the call defines them; -1 elsewhere.

    Broadcast and scatter: what this rank gets from the root. Gather and reduce: what it sends there. All-gather and
    all-to-all: what it sends to each. In place, these two come out too low: what is not moved counts as a part, too.
    """

    def of(*kinds: str) -> Bools:
        return np.isin(kind, [texts.number(each) for each in kinds])

    own_counts = np.array([bool(_OWN_COUNTS.search(text)) for text in texts.texts] + [False], dtype=bool)[name]
    each = np.where(own_counts | (size < 1), -1, sent // np.maximum(1, size))
    part = np.select([of(*FROM_ROOT), of(*TO_ROOT), of("allgather", "alltoall")], [received, sent, each], -1)
    return np.where((sent < 0) | (received < 0), -1, part)


def _place(group_ranks: str | None, rank: int) -> int:
    """Return the place of a rank in the text of a group's ranks, -1 if it is not there."""
    try:
        ranks = json.loads(group_ranks or "")
    except ValueError:
        return -1
    return ranks.index(rank) if isinstance(ranks, list) and rank in ranks else -1


def _known_errors(trace: Trace, parties: list[Party]) -> Ints:
    """Return the error of the clock of every party: -1 if it is unknown and hosts differ."""
    first = parties[0].process if parties else 0
    return clock_errors(trace, first)[[each.process for each in parties]]


def _matched(found: Collectives, of_communicator: list[bool]) -> Collectives:
    collective = np.full(len(found), -1, dtype=np.int64)
    count = 0
    off = np.sort(np.maximum(found.clock_error_ns, 0))
    tolerance = int(off[-2:].sum())
    handed_over = np.array([party.hands_over for party in found.parties], dtype=bool)
    for line, at in rows_by(found.line):
        if (found.sequence[at] >= 0).all():
            number = _by_number(found.party[at], found.sequence[at])
        elif handed_over[found.party[at]].any():  # they need not overlap, and that they are of one group is not known
            number = np.arange(len(at))
        else:
            all_wait = found.lines[line][0] in ALL_NEED_ALL
            counted = _by_order(found, at, tolerance, together=all_wait and not of_communicator[line])
            if counted is None:
                counted = _by_time(found, at, tolerance) if all_wait else np.arange(len(at))
            number = counted
        _, inverse, members = np.unique(number, return_inverse=True, return_counts=True)
        several = members[inverse] > 1
        collective[at[several]] = inverse[several] + count
        count += len(members)
    known = replace(found, collective=collective)
    return replace(known, clock_error_ns=_errors(known))


def _by_number(party: Ints, sequence: Ints) -> Ints:
    """Return the same number for the executions with the same sequence number; of several of a party by their order."""
    occurrence = places(numbered(party, sequence))  # they are in order of start
    return sequence * (int(occurrence.max()) + 1) + occurrence


def _by_order(found: Collectives, at: Ints, tolerance: int, *, together: bool) -> Ints | None:
    """Return the place of every execution in its party's order, None if the order does not match them.

    `together`: nobody ends before all have come, so that most must have run at the same moment.
    """
    parties, count = np.unique(found.party[at], return_counts=True)
    if len(parties) < 2 or (count != count[0]).any():
        return None
    start, end = (column[at].reshape(len(parties), -1) for column in (found.start_ns, found.end_ns))
    if together and np.mean(start.max(axis=0) <= end.min(axis=0) + tolerance) < _TOGETHER:
        return None
    return np.tile(np.arange(count[0]), len(parties))


def _by_time(found: Collectives, at: Ints, tolerance: int) -> Ints:
    """Return the same number for executions that overlap, one a party.

    In order of their ends, those of a collective come one after the other: the next one ends on nobody before
    everybody has come to it, and so has left the last one.
    """
    order = np.argsort(found.end_ns[at], kind="stable")
    columns = (column[at[order]] for column in (found.party, found.start_ns, found.end_ns))
    out, number, until, members = [], -1, -(2**62), set[int]()
    # Collectives are few: about one in a thousand spans.
    for party, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if party in members or start > until:
            number, until, members = number + 1, end + tolerance, set()
        members.add(party)
        out.append(number)
    numbers = np.empty(len(at), dtype=np.int64)
    numbers[order] = out
    return numbers


def _errors(found: Collectives) -> Ints:
    """Return the error of the clocks; if the trace lacks it, how far apart the ends of the same collective are."""
    out = found.clock_error_ns.copy()
    handed_over = np.array([party.hands_over for party in found.parties], dtype=bool)
    all_wait = found.of_kinds(ALL_NEED_ALL) & found.blocking
    (at,) = np.nonzero((found.collective >= 0) & ~handed_over[found.party] & all_wait)
    at = at[np.lexsort((found.end_ns[at], found.collective[at]))]
    begin = np.flatnonzero(np.diff(found.collective[at], prepend=-1))
    count = np.diff(begin, append=len(at))
    middle = found.end_ns[at][begin + (count - 1) // 2]
    apart = np.abs(found.end_ns[at] - np.repeat(middle, count))
    unknown = out < 0
    out[unknown] = 0
    for party, own in rows_by(found.party[at]) if unknown.any() else ():
        if unknown[party]:
            out[party] = int(np.ceil(np.quantile(apart[own], _WITHIN)))
    return out
