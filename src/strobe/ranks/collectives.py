"""Collectives: who ran the same one, and when each of them arrived there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from strobe.gpu.devices import devices
from strobe.ranks.collective_kernels import blocks, executions, hands_over, kinds_by_name, kinds_of_texts, thread_spans
from strobe.ranks.collective_kinds import kind_of
from strobe.ranks.messages import numbered, places
from strobe.sums.attributes import integers
from strobe.sums.groups import Groups, Texts
from strobe.tables.column_arrays import Columns, Ints
from strobe.trace.definition_rows import Region, process_rows, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Those in which everybody needs data (or a sign of life) of everybody: whoever comes early waits for the last. Before
# 2022 kernels of NCCL called an all-to-all SendRecv, too.
_ALL_NEED_ALL = {"allreduce", "allgather", "reducescatter", "alltoall", "barrier", "sendrecv"}
_COLUMNS = ("collective", "group", "group_ranks", "communicator", "sequence")
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
    """Executions of collectives by all parties, in order of party and start; columns of equal length.

    party, line: numbers in `parties` and `lines`; a line is the kind of collective (`allreduce`) and the name of the
    group, None if unknown. sequence: number in the group, -1 if unknown. collective: the same number for all
    participants of one, -1 without a partner in the trace. clock_error_ns: possible error of the times of each party
    against those of the others.
    """

    parties: list[Party]
    lines: list[tuple[str, str | None]]
    party: Ints
    line: Ints
    sequence: Ints
    location: Ints
    row: Ints
    start_ns: Ints
    end_ns: Ints
    collective: Ints
    clock_error_ns: Ints

    def __len__(self) -> int:
        return len(self.party)


@cached_on_trace
def collectives(trace: Trace) -> Collectives:
    """Return the collectives of a trace in which all wait for all, matched among ranks; computed once per open trace.

    They are kernels of NCCL and its like, whose start on the GPU is the arrival (from then on the kernel waits for the
    others; see `executions`), blocking calls of MPI and collectives of gloo, which arrive when they begin. If no
    kernels are recorded, calls of NCCL arrive when they begin. Executions of one collective have the same group and
    number (PyTorch 2.2 and later write it, Seq, and calls of NCCL in a communicator are counted). If the number is
    unknown, the executions of a kind in a group are matched by their order, if all parties ran it equally often and
    those matched ran at the same moment; else those that overlap in time are matched: nobody is done before the last
    one has come. Calls of MPI without a recorded communicator count as of one group. A kernel SendRecv may be an
    all-to-all or messages of a pair: either way who comes early waits.
    """
    return _matched(_read(trace))


@dataclass(frozen=True)
class _Found(Columns):
    """Executions as read; kind, group, ranks: numbers of texts; numbered: whether there is a sequence number."""

    kind: Ints
    group: Ints
    ranks: Ints
    numbered: Ints
    sequence: Ints
    location: Ints
    row: Ints
    start_ns: Ints
    end_ns: Ints


def _read(trace: Trace) -> Collectives:
    lines, texts = Groups(), Texts()
    on_gpus = list(_on_gpus(trace, texts))
    with_kernels = {party.process for party, found in on_gpus if len(found)}
    on_hosts = _on_threads(trace, texts, blocks, hands_over=False)
    handed_over = _on_threads(trace, texts, hands_over, hands_over=True)
    handed_over = (each for each in handed_over if each[0].process not in with_kernels)
    read = [(party, found) for party, found in [*on_gpus, *on_hosts, *handed_over] if len(found)]
    parties = [party for party, _ in read]
    found = _Found.joined(found for _, found in read)
    party = np.repeat(np.arange(len(read)), np.array([len(found) for _, found in read], dtype=np.int64))
    # Names of groups are the same on all ranks, but not only there: who is in them belongs to the name.
    own_lines = [lines.numbers([each.kind, each.group, each.ranks, each.numbered]) for _, each in read]
    line = np.concatenate([np.zeros(0, dtype=np.int64), *own_lines])
    order = np.lexsort((found.start_ns, party))
    found, party, line = found.chosen(order), party[order], line[order]
    named = [(texts.texts[kind], texts.text(group)) for kind, group, *_ in lines.keys]
    columns = (found.sequence, found.location, found.row, found.start_ns, found.end_ns)
    no_partner = np.full(len(found), -1, dtype=np.int64)
    return Collectives(parties, named, party, line, *columns, no_partner, _known_errors(trace, parties))


def _on_gpus(trace: Trace, texts: Texts) -> Iterator[tuple[Party, _Found]]:
    in_name = kinds_by_name(trace, texts, lambda region: region.group == "communication", _kind)
    for device in devices(trace):
        parts = []
        for each in executions(trace, device, _COLUMNS) if (in_name >= 0).any() else ():
            work = each.work
            spans = (work.location.astype(np.int64), work.row, work.start_ns, work.end_ns)
            parts.append(_found(each.attributes, in_name[work.region], spans, texts))
        yield Party(device.process, device.rank, device.number, on_gpu=True), _Found.joined(parts)


def _on_threads(
    trace: Trace, texts: Texts, wanted: Callable[[Region], bool], *, hands_over: bool
) -> Iterator[tuple[Party, _Found]]:
    """Yield the collectives of every process that calls MPI, or runs gloo; or calls NCCL, which hands them over."""
    in_name = kinds_by_name(trace, texts, wanted, _kind)
    if not (in_name >= 0).any():
        return
    parts: dict[int, list[_Found]] = {}
    for location, spans, own in thread_spans(trace, _COLUMNS):
        (at,) = np.nonzero(in_name[spans["region"]] >= 0)
        start = spans["start_ns"][at]
        kind, end = in_name[spans["region"][at]], start + spans["duration_ns"][at]
        if hands_over:  # a call without a row is part of a collective of PyTorch, which has it
            kind = np.full(len(at), -1, dtype=np.int64)
        where = np.full(len(at), location.location)
        found = _found(own.of(spans["row"][at]), kind, (where, spans["row"][at], start, end), texts)
        parts.setdefault(location.process, []).append(found)
    ranks = ranks_of(trace)
    for process in sorted(parts):
        yield Party(process, ranks[process], None, on_gpu=False, hands_over=hands_over), _Found.joined(parts[process])


def _kind(name: str | None) -> str | None:
    kind = kind_of(name)
    return kind if kind in _ALL_NEED_ALL else None


def _found(attributes: pa.Table, kind: Ints, spans: tuple[Ints, Ints, Ints, Ints], texts: Texts) -> _Found:
    """Return the collectives among spans (location, row, start, end); the side table comes first."""
    name, group, ranks, communicator = (texts.numbers(attributes.column(column)) for column in _COLUMNS[:4])
    # Under its own name, a broadcast remains one whatever the kernel is called.
    kind = np.where(name >= 0, kinds_of_texts(texts, _kind)[name], kind)
    sequence = integers(attributes.column("sequence"))
    group, numbered = np.where(group >= 0, group, communicator), (sequence >= 0).astype(np.int64)
    return _Found(kind, group, ranks, numbered, sequence, *spans).chosen(kind >= 0)


def _known_errors(trace: Trace, parties: list[Party]) -> Ints:
    """Return the error of the clock of every party: -1 if it is unknown and hosts differ."""
    hosts = [process.host for process in process_rows(trace)]
    quality = trace.quality.to_arrow().to_pylist()
    errors: dict[int, int | None] = {row["process"]: row["value"] for row in quality if row["what"] == "clock_error_ns"}
    reference = min((process for process, error in errors.items() if error is None), default=None)
    compared = any(error is not None for error in errors.values())

    def error(process: int) -> int:
        if process not in errors:  # one clock for all, as far as they are on one machine
            return 0 if hosts[process] == hosts[parties[0].process] else -1
        value = errors[process]
        return value if value is not None else 0 if compared and process == reference else -1

    return np.array([error(each.process) for each in parties], dtype=np.int64)


def _matched(found: Collectives) -> Collectives:
    collective = np.full(len(found), -1, dtype=np.int64)
    count = 0
    off = np.sort(np.maximum(found.clock_error_ns, 0))
    tolerance = int(off[-2:].sum())
    handed_over = np.array([party.hands_over for party in found.parties], dtype=bool)
    for line in range(len(found.lines)):
        (at,) = np.nonzero(found.line == line)
        if (found.sequence[at] >= 0).all():
            number = _by_number(found.party[at], found.sequence[at])
        elif handed_over[found.party[at]].any():  # they need not overlap, and that they are of one group is not known
            number = np.arange(len(at))
        else:
            counted = _by_order(found, at, tolerance)
            number = _by_time(found, at, tolerance) if counted is None else counted
        _, inverse, members = np.unique(number, return_inverse=True, return_counts=True)
        several = members[inverse] > 1
        collective[at[several]] = inverse[several] + count
        count += len(members)
    known = replace(found, collective=collective)
    return replace(known, clock_error_ns=_errors(known))


def _by_number(party: Ints, sequence: Ints) -> Ints:
    """Return the same number for the executions with the same sequence number; of several of a party by their order."""
    occurrence = places(numbered(party, sequence), np.arange(len(party)))  # they are in order of start
    return sequence * (int(occurrence.max()) + 1) + occurrence


def _by_order(found: Collectives, at: Ints, tolerance: int) -> Ints | None:
    """Return the place of every execution in its party's order, None if the order does not match them."""
    parties, count = np.unique(found.party[at], return_counts=True)
    if len(parties) < 2 or (count != count[0]).any():
        return None
    start, end = (column[at].reshape(len(parties), -1) for column in (found.start_ns, found.end_ns))
    together = start.max(axis=0) <= end.min(axis=0) + tolerance
    return np.tile(np.arange(count[0]), len(parties)) if np.mean(together) >= _TOGETHER else None


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
    (at,) = np.nonzero((found.collective >= 0) & ~handed_over[found.party])
    at = at[np.lexsort((found.end_ns[at], found.collective[at]))]
    begin = np.flatnonzero(np.diff(found.collective[at], prepend=-1))
    count = np.diff(begin, append=len(at))
    middle = found.end_ns[at][begin + (count - 1) // 2]
    apart = np.abs(found.end_ns[at] - np.repeat(middle, count))
    for party in np.flatnonzero(out < 0).tolist():
        own = apart[found.party[at] == party]
        out[party] = int(np.ceil(np.quantile(own, _WITHIN))) if len(own) else 0
    return out
