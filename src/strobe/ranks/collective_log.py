"""Collectives as they were recorded: kernels, calls of threads, and those of folded iterations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise, starmap

import numpy as np
import pyarrow as pa

from strobe.gpu.devices import devices
from strobe.ranks.clock_errors import clock_errors
from strobe.ranks.collective_columns import (
    ALL_NEED_ALL,
    AMONG_NEIGHBOURS,
    FROM_ROOT,
    PREFIXES,
    TO_ROOT,
    Collectives,
    Party,
)
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
from strobe.sums.attributes import integers
from strobe.sums.groups import Groups, Texts
from strobe.sums.side_columns import WHOLE, Part, side_columns
from strobe.tables.column_arrays import Bools, Columns, Ints, alike, interval_at, place_of, rows_by
from strobe.trace.definition_rows import (
    Region,
    location_rows,
    path_tree,
    processes_of_locations,
    ranks_of,
    regions_where,
)
from strobe.trace.trace import Trace

_KINDS = {*ALL_NEED_ALL, *FROM_ROOT, *TO_ROOT, *PREFIXES, *AMONG_NEIGHBOURS}
_OWN_COUNTS = re.compile("all_?to_?all_?[vw]", re.IGNORECASE)  # for each rank, and these are not recorded
_TEXTS = ("collective", "group", "group_ranks", "communicator", "source_ranks")
_COLUMNS = (*_TEXTS, "sequence", "root", "rank", "group_size", "sent_bytes", "received_bytes", "pending_ns")


@dataclass(frozen=True)
class Executions(Columns):
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
    received_bytes: Ints
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


def read_all(trace: Trace) -> tuple[Collectives, list[bool]]:
    """Return the collectives, and which lines are those of a communicator of MPI."""
    lines, texts = Groups(), Texts()
    on_gpus = list(_on_gpus(trace, texts))
    with_kernels = {party.process for party, found in on_gpus if len(found)}
    on_hosts = on_threads(trace, texts, on_host, to_gpu=False)
    handed_over = on_threads(trace, texts, hands_over, to_gpu=True)
    handed_over = (each for each in handed_over if each[0].process not in with_kernels)
    read = [(party, found) for party, found in [*on_gpus, *on_hosts, *handed_over] if len(found)]
    parties = [party for party, _ in read]
    found = Executions.joined(found for _, found in read)
    party = np.repeat(np.arange(len(read)), np.array([len(found) for _, found in read], dtype=np.int64))
    # Names of groups are the same on all ranks, but not only there: who is in them belongs to the name.
    own_lines = [lines.numbers([each.kind, each.group, each.ranks, each.counted]) for _, each in read]
    line = np.concatenate([np.zeros(0, dtype=np.int64), *own_lines])
    order = np.lexsort((found.start_ns, party))
    found, party, line = found.chosen(order), party[order], line[order]
    no_partner = np.full(len(found), -1, dtype=np.int64)
    found_all = as_collectives(parties, lines, texts, party, line, found, no_partner, _known_errors(trace, parties))
    return found_all, [counted == 2 for *_, counted in lines.keys]


def as_collectives(
    parties: list[Party],
    lines: Groups,
    texts: Texts,
    party: Ints,
    line: Ints,
    found: Executions,
    collective: Ints,
    clock_error_ns: Ints,
) -> Collectives:
    """Return executions as Collectives; columns as there. `lines`: kind, group, ranks and counted of each line."""
    named = [(texts.texts[kind], texts.text(group)) for kind, group, *_ in lines.keys]
    members = [ranks_in(texts.text(ranks)) for *_, ranks, _ in lines.keys]
    of_each = {each.name: getattr(found, each.name) for each in fields(Executions)[4:]}
    return Collectives(
        parties,
        named,
        members,
        [*texts.texts],
        party,
        line,
        collective=collective,
        clock_error_ns=clock_error_ns,
        **of_each,
    )


def _on_gpus(trace: Trace, texts: Texts) -> Iterator[tuple[Party, Executions]]:
    in_name = kinds_by_name(trace, texts, lambda region: region.group == "communication", _kind)
    parent, of_path = path_tree(trace)
    at_root = np.full(len(in_name), -1, dtype=np.int64)  # by region, its call path without anything around it
    at_root[of_path[parent < 0]] = np.flatnonzero(parent < 0)
    folded = _folded_kernels(trace, texts, in_name, at_root) if devices(trace) else Executions.joined(())
    for device in devices(trace):
        parts = []
        for each in executions(trace, device, _COLUMNS) if (in_name >= 0).any() else ():
            work = each.work
            path = at_root[work.region]
            calls = _Calls(work.location.astype(np.int64), work.row, work.start_ns, work.end_ns, path)
            numbers = _read_columns(each.attributes, texts)
            parts.append(_found(numbers, in_name[work.region], calls, texts, device.rank, on_gpu=True))
        parts.append(folded.chosen(np.isin(folded.location, device.locations)))
        yield Party(device.process, device.rank, device.number, on_gpu=True), Executions.joined(parts)


def _folded_kernels(trace: Trace, texts: Texts, in_name: Ints, at_root: Ints) -> Executions:
    """Return the kernels of folded iterations, with what is known of the call in which each was launched.

    Several of a call are one execution. Of those launched at the end of a group of calls only the kind is known.
    """
    names = ("time_ns", "duration_ns", "call_path", *_COLUMNS)
    location, cells = side_columns(trace, "folded_collectives", names, texts)
    region = trace.definitions.path_region[cells["call_path"]]
    streams = [each.location for each in location_rows(trace) if each.kind == "stream"]
    kernel = np.isin(location, streams) & (in_name[region] >= 0)
    (at,), (of_call,) = np.nonzero(kernel), np.nonzero(regions_where(trace, hands_over)[region] & ~kernel)
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    end = cells["time_ns"] + cells["duration_ns"]
    unit = np.full(len(at), -1)
    for thread, calls in rows_by(location[of_call]):
        own = of_call[calls]
        inside = interval_at(cells["time_ns"][own], end[own], (end - cells["pending_ns"])[at])
        unit = np.where((inside >= 0) & (process[location[at]] == process[thread]), own[inside], unit)
    order = np.lexsort((cells["time_ns"][at], unit))
    at, unit = at[order], unit[order]
    begin = np.flatnonzero((np.diff(unit, prepend=-2) != 0) | (unit < 0))
    at, unit, until = at[begin], unit[begin], np.maximum.reduceat(end[at], begin) if len(at) else end[at]
    start, none = cells["time_ns"][at], np.full(len(at), -1)
    runs = _Calls(location[at], none, start, until, at_root[region[at]])
    ranks = np.array([-1 if rank is None else rank for rank in ranks_of(trace)], dtype=np.int64)
    attributes = {name: np.where(unit >= 0, cells[name][unit], -1) for name in _COLUMNS}
    return _found(attributes, in_name[region[at]], runs, texts, ranks[process[location[at]]], on_gpu=True)


def on_threads(
    trace: Trace, texts: Texts, wanted: Callable[[Region], bool], *, to_gpu: bool, folded: bool = True
) -> Iterator[tuple[Party, Executions]]:
    """Yield the collectives of every process that calls MPI, or runs gloo; or calls NCCL, which hands them over."""
    relevant, ranks = regions_where(trace, wanted), ranks_of(trace)
    if not relevant.any():
        return
    # Without a row: blocking ones of MPI by their name. A call of NCCL without a row is part of one of PyTorch, which
    # has it.
    in_name = kinds_by_name(trace, texts, lambda region: not to_gpu and blocks(region), _kind)
    parts: dict[int, list[Executions]] = {}
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
        found = folded_executions(trace, relevant, texts)
        process_of = np.array(processes_of_locations(trace), dtype=np.int64)[found.location]
        bounds = np.searchsorted(process_of, np.arange(len(ranks) + 1)).tolist()
        for process, rows in enumerate(starmap(slice, pairwise(bounds))):
            parts.setdefault(process, []).append(found.chosen(rows))
    for process in sorted(parts):
        yield Party(process, ranks[process], None, on_gpu=False, hands_over=to_gpu), Executions.joined(parts[process])


def folded_executions(trace: Trace, relevant: Bools, texts: Texts, part: Part = WHOLE) -> Executions:
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
) -> Executions:
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
    found = Executions(kind, group, ranks, counted, sequence, *where, is_root, own, size, sent, received, part, sources)
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
    ranks = ranks_in(group_ranks)
    return ranks.index(rank) if rank in ranks else -1


def ranks_in(text: str | None) -> tuple[int, ...]:
    """Return the ranks that a text of a group's ranks has, in the order of the group; none if it is not JSON."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return ()
    whole = isinstance(found, list) and all(isinstance(each, int) for each in found)
    return tuple(found) if whole else ()


def _known_errors(trace: Trace, parties: list[Party]) -> Ints:
    """Return the error of the clock of every party: -1 if it is unknown and hosts differ."""
    first = parties[0].process if parties else 0
    return clock_errors(trace, first)[[each.process for each in parties]]
