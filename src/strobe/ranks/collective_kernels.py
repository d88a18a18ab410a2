"""Executions of collectives and their attributes: kernels (by their own rows or NCCL's calls) and calls of threads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import Launches, launches
from strobe.gpu.work import COMMUNICATION, Work, beginning, stretches
from strobe.ranks.collective_kinds import kind_of
from strobe.sums.attributes import Attributes, integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Ints, interval_at
from strobe.trace.definition_rows import Location, Region, location_rows, region_rows, regions_where, threads_of
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

Kind = Callable[[str | None], str | None]  # from a name to the kind of collective that it means

_TABLE = "collective_spans"
# Module of regions that come from a dump of PyTorch's flight recorder.
FROM_DUMP = "torch.distributed flight recorder"
# Module of regions that come from a log of NCCL's Inspector: collectives with the durations of their kernels.
FROM_INSPECTOR = "NCCL Inspector"
# Calls that only request a collective; its completion is recorded elsewhere, if at all.
_NOT_BLOCKING = re.compile(r"MPI_I[a-z]")
# In a group of calls these add up; other attributes are known if all calls have the same.
_SUMS = ("in_elements", "out_elements", "sent_bytes", "received_bytes")


@dataclass(frozen=True)
class Executions:
    """Collectives that a GPU ran: their work, and of each the `attributes` that were asked for."""

    work: Work
    attributes: pa.Table


def executions(trace: Trace, device: Device, columns: Sequence[str]) -> Iterator[Executions]:
    """Yield the collectives that a GPU ran, with these columns of `collective_spans`, each once, in no order.

    A kernel's own row comes first (profiles of PyTorch have one). Else it is that of the call in which the kernel was
    launched: NCCL's, or PyTorch's around it. A launch at the end of a group of calls (ncclGroupEnd) stands for all of
    them: bytes add up, the number is the first one's, and sends with receives are `send_recv`. A kernel that was
    captured into a CUDA graph is an execution in each launch of that, with the number of the captured call. The
    attributes of a group in several or unknown communicators, or in a process with several GPUs, are unknown, because
    its kernels cannot be distinguished; so are the bytes of a group of different collectives, which have no bandwidth
    in common. Several kernels of a call or group are one execution, from the first start to the last end.
    """
    own = {at: Attributes(trace, _TABLE, at, columns) for at in device.locations}
    calls = _Calls(trace, device.process, columns)
    if calls.count:
        for found, by in launches(trace, device):
            yield from _launched(found, by, own, calls)
        return
    for begin, end in stretches(device):
        found = beginning(trace, device, begin, end)
        found = found.chosen(1 << found.kind == COMMUNICATION)
        for at, attributes in _own_rows(found, own):
            yield Executions(found.chosen(at), attributes)


def of_dump(region: Region) -> bool:
    """Return whether a region is an operation in a dump of PyTorch's flight recorder, which has no ends of calls."""
    return region.module == FROM_DUMP


def timed_by_nccl(region: Region) -> bool:
    """Return whether a region is a collective or message in a log of NCCL's Inspector."""
    return region.module == FROM_INSPECTOR


def hands_over(region: Region) -> bool:
    """Return whether a region is a call that hands a collective or message to the GPU: NCCL's, or PyTorch's around.

    So do those in a flight recorder's dump, also gloo's: the rank has come to the collective, and that is all it has.
    """
    if region.paradigm == "torch":
        return region.role == "collective" and (region.name.startswith("nccl:") or of_dump(region))
    return region.paradigm == "nvtx" and region.role in ("collective", "p2p")


def on_host(region: Region) -> bool:
    """Return whether a region is a call by which ranks communicate (MPI, OpenSHMEM), or one of gloo."""
    return region.of_ranks or (region.name.startswith("gloo:") and not of_dump(region))


def blocks(region: Region) -> bool:
    """Return whether a region is a blocking collective of ranks, or one that gloo runs on a thread of its own."""
    of_ranks = region.of_ranks and region.role in ("collective", "sync")
    return (of_ranks and not _NOT_BLOCKING.match(region.name)) or (region.name.startswith("gloo:") and on_host(region))


def thread_spans(trace: Trace, columns: Sequence[str]) -> Iterator[tuple[Location, SpanArrays, Attributes]]:
    """Yield the spans of all threads, batch by batch, with the reader of these columns of `collective_spans`."""
    for each in location_rows(trace):
        if each.kind != "stream" and each.span_count:
            attributes = Attributes(trace, _TABLE, each.location, columns)
            for spans in trace.span_batches(each.location):
                yield each, spans, attributes


def kinds_by_name(trace: Trace, texts: Texts, wanted: Callable[[Region], bool], kind: Kind = kind_of) -> Ints:
    """Return the kind of collective by the name of each region, as the number of a text; -1 for unwanted regions."""
    kinds = (kind(region.name) if wanted(region) else None for region in region_rows(trace))
    return np.array([texts.number(each) for each in kinds], dtype=np.int64)


def kinds_of_texts(texts: Texts, kind: Kind = kind_of) -> Ints:
    """Return the kind of collective that each text so far means, as the number of a text; at the end -1 for none."""
    return np.array([texts.number(kind(text)) for text in list(texts.texts)] + [-1], dtype=np.int64)


def _own_rows(found: Work, own: dict[int, Attributes]) -> Iterator[tuple[Ints, pa.Table]]:
    """Yield by location the places of its kernels, in order of row, and their own attributes."""
    for location, attributes in own.items():
        (at,) = np.nonzero(found.location == location)
        if len(at):
            at = at[np.argsort(found.row[at])]
            yield at, attributes.of(found.row[at])


def _launched(found: Work, by: Launches, own: dict[int, Attributes], calls: _Calls) -> Iterator[Executions]:
    (chosen,) = np.nonzero(1 << found.kind == COMMUNICATION)
    found, unit = found.chosen(chosen), calls.units(by.code.location[chosen], by.code.start_ns[chosen])
    # Each launch of a graph is an execution of the captured collective.
    launch = np.where(by.captured[chosen], by.call.row[chosen], -1)
    others = [chosen[:0]]
    for at, attributes in _own_rows(found, own):
        by_call = ~attributes.column("row").is_valid().to_numpy() & (unit[at] >= 0)
        yield Executions(found.chosen(at[~by_call]), attributes.filter(pa.array(~by_call)))
        others.append(at[by_call])
    at = np.concatenate(others)
    if not len(at):
        return
    at = at[np.lexsort((found.start_ns[at], launch[at], unit[at]))]
    begin = np.flatnonzero((np.diff(unit[at], prepend=-2) != 0) | (np.diff(launch[at], prepend=-2) != 0))
    first = replace(found.chosen(at[begin]), end_ns=np.maximum.reduceat(found.end_ns[at], begin))
    yield Executions(first, calls.attributes(unit[at[begin]], launch[at[begin]]))


class _Calls:
    """The units of a process, each of which is one execution: calls with their bytes, and groups of such calls."""

    def __init__(self, trace: Trace, process: int, columns: Sequence[str]) -> None:
        of_call = regions_where(trace, hands_over)
        marks = np.array([_mark(region) for region in region_rows(trace)])
        self._trace, self._columns = trace, list(columns)
        self._one_gpu = sum(each.process == process for each in devices(trace)) < 2
        self._attributes: list[pa.Table] = []
        self._last_launch: Ints | None = None  # by unit: the launch for which its attributes were returned last
        self._units: dict[int, _Units] = {}  # by thread
        self.count = 0
        if of_call.any():
            for thread in threads_of(trace, process):
                self._read(thread.location, of_call, marks)

    def units(self, location: Ints, ns: Ints) -> Ints:
        """Return the unit of each call, by its thread and start; -1 if there is none."""
        out = np.full(len(ns), -1, dtype=np.int64)
        for thread, units in self._units.items():
            (at,) = np.nonzero(location == thread)
            out[at] = np.append(units.number, -1)[interval_at(units.start_ns, units.end_ns, ns[at])]
        return out

    def attributes(self, units: Ints, launch: Ints) -> pa.Table:
        """Return the attributes of these units in launches of graphs (-1: of none), each once: bytes count once."""
        if self._last_launch is None:
            self._last_launch = np.full(self.count, -2, dtype=np.int64)
        missing = self._last_launch[units] == launch
        self._last_launch[units] = launch
        return pa.concat_tables(self._attributes).take(pa.array(units, mask=missing))

    def _read(self, thread: int, of_call: Bools, marks: Ints) -> None:
        if next(self._trace.side_batches(_TABLE, thread), None) is None:
            return
        own = Attributes(self._trace, _TABLE, thread, self._columns)
        starts, ends, tables, events = [], [], [], []
        for spans in self._trace.span_batches(thread):
            end = spans["start_ns"] + spans["duration_ns"]
            (at,) = np.nonzero(of_call[spans["region"]])
            rows = spans["row"][at]
            if len(rows):
                table = own.between(int(rows[0]), int(rows[-1]))
                known = integers(table.column("row"))
                with_spans = np.isin(known, rows)
                at = at[np.isin(rows, known)]
                starts.append(spans["start_ns"][at])
                ends.append(end[at])
                tables.append(table.filter(pa.array(with_spans)))
            (at,) = np.nonzero(marks[spans["region"]])
            events.append(np.stack((spans["start_ns"][at], end[at], marks[spans["region"][at]])))
        if not tables or not sum(len(table) for table in tables):
            return
        table = pa.concat_tables([table for table in tables if len(table)])
        start, end = np.concatenate(starts), np.concatenate(ends)
        groups, more = self._groups(np.concatenate(events, axis=1), start, table)
        number = self.count + np.arange(len(start) + len(groups), dtype=np.int64)
        units = _Units(np.append(start, groups[:, 0]), np.append(end, groups[:, 1]), number)
        self._units[thread] = units.chosen(np.argsort(units.start_ns, kind="stable"))
        self._attributes += [table, *([pa.Table.from_pylist(more, schema=table.schema)] if more else [])]
        self.count += len(number)

    def _groups(self, events: Ints, start: Ints, table: pa.Table) -> tuple[Ints, list[dict[str, Any]]]:
        """Return begin and end of the calls that end outermost groups, and the joint attributes of each group."""
        found, attributes, depth, begun = [], [], 0, 0
        for begin, end, mark in events.T.tolist():
            if mark > 0 and depth == 0:
                begun = end
            depth += mark
            if depth == 0:
                first, last = np.searchsorted(start, (begun, begin)).tolist()
                if together := self._together(table.slice(first, last - first).to_pylist()):
                    found.append((begin, end))
                    attributes.append(together)
            depth = max(depth, 0)  # of one that began before the recording
        return np.array(found, dtype=np.int64).reshape(-1, 2), attributes

    def _together(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the joint attributes of the calls of a group; empty if they are not of one communicator."""
        communicators = {tuple(call.get(name) for name in ("group", "communicator", "group_ranks")) for call in calls}
        one = self._one_gpu and len(communicators) == 1 and communicators != {(None,) * 3}
        if not calls or not (one or len(calls) == 1):
            return {}
        out = {}
        for name in calls[0]:
            values = {call[name] for call in calls}
            out[name] = values.pop() if len(values) == 1 else None
        kinds = {kind_of(call.get("collective")) for call in calls}
        if len(kinds) > 1:
            out["collective"] = "send_recv" if kinds <= {"send", "recv"} else None
        for name in self._columns:
            numbers = [call[name] for call in calls]
            known = None not in numbers and (len(kinds) == 1 or kinds <= {"send", "recv"})
            if name in _SUMS:
                out[name] = sum(numbers) if known else None
            elif name == "sequence":
                out[name] = None if None in numbers else min(numbers)
        return out


@dataclass(frozen=True)
class _Units(Columns):
    start_ns: Ints
    end_ns: Ints
    number: Ints


def _mark(region: Region) -> int:
    """Return 1 for a call of NCCL that begins a group, -1 for one that ends it, 0 for all others."""
    marks = {"ncclGroupStart": 1, "ncclGroupEnd": -1}
    return marks.get(region.name, 0) if (region.paradigm, region.module) == ("nvtx", "NCCL") else 0
