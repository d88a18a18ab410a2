"""The traffic of collectives: kernels of NCCL and its like, calls of MPI, collectives of gloo, with their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from strobe.gpu.devices import devices
from strobe.gpu.work import COMMUNICATION, kind_of_region
from strobe.ranks.collective_columns import Party
from strobe.ranks.collective_kernels import (
    blocks,
    executions,
    hands_over,
    kinds_by_name,
    kinds_of_texts,
    thread_spans,
    timed_by_nccl,
)
from strobe.ranks.collective_kinds import size_of_buffers, size_of_messages
from strobe.sums.attributes import integers
from strobe.sums.groups import Groups, Texts
from strobe.tables.column_arrays import Columns, Ints
from strobe.trace.definition_rows import ranks_of, region_rows
from strobe.trace.trace import Trace

# Bytes of an element, by the name of its type in PyTorch.
_ITEM_BYTES = {
    **dict.fromkeys(("byte", "char", "bool"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("short", "uint16", "half", "bfloat16"), 2),
    **dict.fromkeys(("int", "uint32", "float", "complexhalf"), 4),
    **dict.fromkeys(("long", "uint64", "double", "complexfloat"), 8),
    "complexdouble": 16,
}
_TEXTS = ("collective", "group", "group_description", "group_ranks", "dtype", "communicator")
_NUMBERS = ("group_size", "in_elements", "out_elements", "sent_bytes", "received_bytes", "pending_ns")


@dataclass(frozen=True)
class Line:
    """The key of a sum: who ran which collective in which group, on elements of which type; None if unknown.

    of_group: the group is one of PyTorch, whose bytes are those of a rank's own buffers, not a communicator of MPI.
    """

    party: Party
    kind: str | None
    group: str | None
    description: str | None
    group_ranks: str | None
    group_size: int | None
    dtype: str | None
    of_group: bool = False


@dataclass(frozen=True)
class Traffic:
    """Executions of collectives in order of their line; equally long columns, -1 if unknown.

    begin: by number in `lines`, where its executions begin, and at the end where the last one's end. in_bytes,
    out_bytes: what the rank puts in and gets out (MPI: sends to all, receives from all). size_bytes: the size that
    bandwidths are made of.
    """

    lines: list[Line]
    begin: Ints
    duration_ns: Ints
    in_bytes: Ints
    out_bytes: Ints
    size_bytes: Ints


def traffic(trace: Trace) -> Traffic:
    """Return the collectives of all ranks. Those that do not block (MPI) count from request to completion, if known.

    Calls that only hand over to the GPU (NCCL) count if no kernels are recorded, which would be the same again.
    """
    texts, groups = Texts(), Groups()
    parties: list[Party] = []
    parts = []
    on_gpus = list(_on_gpus(trace, texts))
    with_kernels = {party.process for party, _, _, duration in on_gpus if len(duration)}
    handed_over = (each for each in _handed_over(trace, texts) if each[0].process not in with_kernels)
    for party, kind, rows, duration in [*on_gpus, *_on_hosts(trace, texts), *handed_over]:
        if party not in parties:
            parties.append(party)
        where = np.full(len(duration), parties.index(party), dtype=np.int64)
        named = {column: texts.numbers(rows.column(column)) for column in _TEXTS}
        numbers = {column: np.maximum(integers(rows.column(column)), -1) for column in _NUMBERS}
        group = np.where(named["group"] >= 0, named["group"], named["communicator"])
        key = (where, kind, group, named["group_description"], named["group_ranks"], numbers["group_size"])
        line = groups.numbers([*key, named["dtype"], (named["group"] >= 0).astype(np.int64)])
        parts.append(_Moved(line, duration, *_bytes(numbers, named["dtype"], texts)))
    moved = _Moved.joined(parts)
    moved = moved.chosen(np.argsort(moved.line, kind="stable"))
    begin = np.searchsorted(moved.line, np.arange(len(groups) + 1))
    lines = [_line(key, parties, texts) for key in groups.keys]
    size = np.full(len(moved), -1, dtype=np.int64)
    for number, each in enumerate(lines):
        own = slice(begin[number], begin[number + 1])
        size[own] = _size(each, moved.in_bytes[own], moved.out_bytes[own])
    return Traffic(lines, begin, moved.duration_ns, moved.in_bytes, moved.out_bytes, size)


@dataclass(frozen=True)
class _Moved(Columns):
    """Executions by the number of their line."""

    line: Ints
    duration_ns: Ints
    in_bytes: Ints
    out_bytes: Ints


def _line(key: tuple[int, ...], parties: list[Party], texts: Texts) -> Line:
    party, *named, size, dtype, of_group = key
    kind, group, description, ranks = map(texts.text, named)
    size_if_known = size if size > 0 else None
    return Line(parties[party], kind, group, description, ranks, size_if_known, texts.text(dtype), bool(of_group))


def _size(line: Line, in_bytes: Ints, out_bytes: Ints) -> Ints:
    # Of a gather and a scatter, ranks that are not the root have only their own part.
    if line.party.on_gpu or (line.of_group and line.kind not in ("gather", "scatter")):
        return size_of_buffers(line.kind, in_bytes, out_bytes)
    return size_of_messages(line.kind, line.group_size or 0, in_bytes, out_bytes)


def _bytes(numbers: dict[str, Ints], dtype: Ints, texts: Texts) -> tuple[Ints, Ints]:
    """Return bytes in and out: as recorded, or elements times the size of their type."""
    sizes = np.array([_ITEM_BYTES.get(text.lower(), -1) for text in texts.texts] + [-1], dtype=np.int64)[dtype]
    out = []
    for recorded, elements in (("sent_bytes", "in_elements"), ("received_bytes", "out_elements")):
        counted = np.where((sizes > 0) & (numbers[elements] >= 0), numbers[elements] * sizes, -1)
        out.append(np.where(numbers[recorded] >= 0, numbers[recorded], counted))
    return out[0], out[1]


_Part = tuple[Party, Ints, pa.Table, Ints]  # who, kinds (numbers of texts), attributes, durations


def _on_gpus(trace: Trace, texts: Texts) -> Iterator[_Part]:
    if not (1 << kind_of_region(trace).clip(0) == COMMUNICATION).any():
        return
    in_name = kinds_by_name(trace, texts, lambda region: region.group == "communication")
    for device in devices(trace):
        party = Party(device.process, device.rank, device.number, on_gpu=True)
        for each in executions(trace, device, (*_TEXTS, *_NUMBERS)):
            if len(each.work):
                kind = _kind(each.attributes, in_name[each.work.region], texts)
                yield party, kind, each.attributes, each.work.end_ns - each.work.start_ns


def _on_hosts(trace: Trace, texts: Texts) -> Iterator[_Part]:
    in_name = kinds_by_name(trace, texts, lambda region: blocks(region) or timed_by_nccl(region))
    if not any(region.of_ranks for region in region_rows(trace)) and not (in_name >= 0).any():
        return
    ranks = ranks_of(trace)
    for location, spans, own in thread_spans(trace, (*_TEXTS, *_NUMBERS)):
        party = Party(location.process, ranks[location.process], None, on_gpu=False)
        rows = own.between(int(spans["row"][0]), int(spans["row"][-1]))
        # Gloo's time is that of the span, which is the execution; until then it waited its turn.
        is_group = texts.numbers(rows.column("group")) >= 0
        pending = np.where(is_group, -1, integers(rows.column("pending_ns")))
        done = rows.filter(pa.array(pending >= 0))
        if done.num_rows:
            nothing = np.full(done.num_rows, -1, dtype=np.int64)
            yield party, _kind(done, nothing, texts), done, pending[pending >= 0]
        not_blocking = np.isin(spans["row"], integers(done.column("row")))
        (at,) = np.nonzero((in_name[spans["region"]] >= 0) & ~not_blocking)
        if len(at):
            blocking = own.of(spans["row"][at])
            yield party, _kind(blocking, in_name[spans["region"][at]], texts), blocking, spans["duration_ns"][at]


def _handed_over(trace: Trace, texts: Texts) -> Iterator[_Part]:
    in_name = kinds_by_name(trace, texts, hands_over)
    if not (in_name >= 0).any():
        return
    ranks = ranks_of(trace)
    for location, spans, own in thread_spans(trace, (*_TEXTS, *_NUMBERS)):
        party = Party(location.process, ranks[location.process], None, on_gpu=False, hands_over=True)
        (at,) = np.nonzero(in_name[spans["region"]] >= 0)
        rows = own.of(spans["row"][at])
        # A call without a row is part of a collective of PyTorch, which has it.
        has_row = texts.numbers(rows.column("collective")) >= 0
        rows, at = rows.filter(pa.array(has_row)), at[has_row]
        if len(at):
            yield party, _kind(rows, in_name[spans["region"][at]], texts), rows, spans["duration_ns"][at]


def _kind(attributes: pa.Table, in_name: Ints, texts: Texts) -> Ints:
    """Return the kinds of spans: by the side table, else by the name of the region."""
    name = texts.numbers(attributes.column("collective"))
    of_text = kinds_of_texts(texts)[name]
    return np.where(of_text >= 0, of_text, in_name)
