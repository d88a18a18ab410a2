"""Kernels of collectives, and what is known of each: from its own row, or from the call of NCCL that launched it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import Launches, launches
from strobe.gpu.work import COMMUNICATION, Work, beginning, stretches
from strobe.ranks.collective_kinds import kind_of
from strobe.sums.attributes import Attributes, integers
from strobe.trace.definition_rows import Region, location_rows, region_rows
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]

_TABLE = "collective_spans"
# Of the calls of a group these add up; of the others, what all have in common is known.
_SUMS = ("in_elements", "out_elements", "sent_bytes", "received_bytes")


@dataclass(frozen=True)
class Executions:
    """Collectives that a GPU ran; equally long columns, of which `said` has those that were asked for."""

    location: Ints
    row: Ints
    start_ns: Ints
    end_ns: Ints
    region: Ints
    said: pa.Table


def executions(trace: Trace, device: Device, columns: Sequence[str]) -> Iterator[Executions]:
    """Yield the collectives that a GPU ran, with these columns of `collective_spans`, each once, in no order.

    A kernel's own row comes first (profiles of PyTorch have one). Else it is that of the call in which the
    kernel was launched: NCCL's, or PyTorch's around it. What is launched when a group of calls ends (ncclGroupEnd) is
    all of them: bytes add up, the number is the first one's, and sends with receives are `send_recv`. What was captured
    into a CUDA graph is an execution in each launch of that, with the number of the call that was captured. Nothing is
    known of a group in several communicators or unknown ones, nor in a process with several GPUs: nothing shows which
    kernel is whose. Of a group of different collectives the bytes are not: they make no bandwidth together. Several
    kernels of a call or group are one execution, from the first start to the last end.
    """
    own = {at: Attributes(trace, _TABLE, at, columns) for at in device.locations}
    calls = _Calls(trace, device.process, columns)
    if calls.count:
        for found, by in launches(trace, device):
            yield from _launched(found, by, own, calls)
        return
    for begin, end in stretches(device):
        found = beginning(trace, device, begin, end)
        yield from _with_own_rows(found.chosen(1 << found.kind == COMMUNICATION), own)


def hands_over(region: Region) -> bool:
    """Return whether a region is a call that gives a collective or message to the GPU: NCCL's, or PyTorch's of it."""
    if region.paradigm == "torch":
        return region.role == "collective" and region.name.startswith("nccl:")
    return region.paradigm == "nvtx" and region.role in ("collective", "p2p")


def _with_own_rows(found: Work, own: dict[int, Attributes]) -> Iterator[Executions]:
    for location, attributes in own.items():
        (at,) = np.nonzero(found.location == location)
        if len(at):
            at = at[np.argsort(found.row[at])]
            said = attributes.of(found.row[at])
            where = np.full(len(at), location, dtype=np.int64)
            times = found.start_ns[at], found.end_ns[at]
            yield Executions(where, found.row[at], *times, found.region[at].astype(np.int64), said)


def _launched(found: Work, by: Launches, own: dict[int, Attributes], calls: _Calls) -> Iterator[Executions]:
    (chosen,) = np.nonzero(1 << found.kind == COMMUNICATION)
    found, unit = found.chosen(chosen), calls.units(by.code.location[chosen], by.code.start_ns[chosen])
    # Each launch of a graph is an execution of what was captured.
    launch = np.where(by.captured[chosen], by.call.row[chosen], -1)
    keys = zip(found.location.tolist(), found.row.tolist(), strict=True)
    unit_of = dict(zip(keys, zip(unit.tolist(), launch.tolist(), strict=True), strict=True))
    others = []
    for each in _with_own_rows(found, own):
        has_own = each.said.column("row").is_valid().to_numpy()
        numbers = [unit_of[key] for key in zip(each.location.tolist(), each.row.tolist(), strict=True)]
        units, launches_of = np.array(numbers, dtype=np.int64).reshape(-1, 2).T
        launched_by = np.where(has_own, -1, units)
        yield _some(each, np.flatnonzero(launched_by < 0), each.said)
        (at,) = np.nonzero(launched_by >= 0)
        others.append(np.stack((launched_by[at], launches_of[at], each.location[at], each.row[at], each.start_ns[at],
                                each.end_ns[at], each.region[at])))  # fmt: skip
    if not others:
        return
    joined = np.concatenate(others, axis=1)
    joined = joined[:, np.lexsort((joined[4], joined[1], joined[0]))]
    begin = np.flatnonzero((np.diff(joined[:2], prepend=-2) != 0).any(axis=0))
    if not len(begin):
        return
    until = np.maximum.reduceat(joined[5], begin)
    number, launch, location, row, start, _, region = joined[:, begin]
    yield Executions(location, row, start, until, region, calls.said(number, launch))


def _some(each: Executions, at: npt.NDArray[np.intp], said: pa.Table) -> Executions:
    columns = each.location[at], each.row[at], each.start_ns[at], each.end_ns[at], each.region[at]
    return Executions(*columns, said.take(pa.array(at)))


class _Calls:
    """Calls of a process with what they move, and groups of such: its units, of which each is one execution."""

    def __init__(self, trace: Trace, process: int, columns: Sequence[str]) -> None:
        regions = region_rows(trace)
        of_call = np.array([hands_over(region) for region in regions], dtype=bool)
        marks = np.array([_MARKS.get(region.name, 0) if _of_nccl(region) else 0 for region in regions])
        self._trace, self._columns = trace, list(columns)
        self._one_gpu = sum(each.process == process for each in devices(trace)) < 2
        self._said: list[pa.Table] = []
        self._told: Ints | None = None  # the launch for which each unit was told last
        self._where: dict[int, Ints] = {}  # by thread: start, end and number of units, in order of start
        self.count = 0
        if of_call.any():
            for location in location_rows(trace):
                if location.process == process and location.kind == "thread" and location.span_count:
                    self._read(location.location, of_call, marks)

    def units(self, location: Ints, ns: Ints) -> Ints:
        """Return the unit that each call was made in, by its thread and start; -1 where there is none."""
        out = np.full(len(ns), -1, dtype=np.int64)
        for thread, (start, end, number) in self._where.items():
            (at,) = np.nonzero(location == thread)
            last = np.searchsorted(start, ns[at], side="right") - 1
            inside = (last >= 0) & (end[last] > ns[at])
            out[at[inside]] = number[last[inside]]
        return out

    def said(self, units: Ints, launch: Ints) -> pa.Table:
        """Return what is known of these units in launches of graphs (-1: of none).

        Nothing of those that were asked for before: bytes count once.
        """
        if self._told is None:
            self._told = np.full(self.count, -2, dtype=np.int64)
        table = pa.concat_tables(self._said)
        missing = self._told[units] == launch
        self._told[units] = launch
        return table.take(pa.array(units, mask=missing))

    def _read(self, thread: int, of_call: npt.NDArray[np.bool_], marks: Ints) -> None:
        """Read a thread's calls and groups."""
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
                there = np.isin(known, rows)
                at = at[np.isin(rows, known)]
                starts.append(spans["start_ns"][at])
                ends.append(end[at])
                tables.append(table.filter(pa.array(there)))
            (at,) = np.nonzero(marks[spans["region"]])
            events.append(np.stack((spans["start_ns"][at], end[at], marks[spans["region"][at]])))
        if not tables or not sum(len(table) for table in tables):
            return
        table = pa.concat_tables([table for table in tables if len(table)])
        start, end = np.concatenate(starts), np.concatenate(ends)
        groups, more = self._groups(np.concatenate(events, axis=1), start, table)
        number = self.count + np.arange(len(start) + len(groups), dtype=np.int64)
        units = np.stack((np.append(start, groups[:, 0]), np.append(end, groups[:, 1]), number))
        self._where[thread] = units[:, np.argsort(units[0], kind="stable")]
        self._said += [table, *([pa.Table.from_pylist(more, schema=table.schema)] if more else [])]
        self.count += len(number)

    def _groups(self, events: Ints, start: Ints, table: pa.Table) -> tuple[Ints, list[dict[str, Any]]]:
        """Return begin and end of what ends each outermost group with calls in it, and their cells together."""
        found, said, depth, begun = [], [], 0, 0
        for begin, end, mark in events.T.tolist():
            if mark > 0 and depth == 0:
                begun = end
            depth += mark
            if depth == 0:
                first, last = np.searchsorted(start, (begun, begin)).tolist()
                if together := self._together(table.slice(first, last - first).to_pylist()):
                    found.append((begin, end))
                    said.append(together)
            depth = max(depth, 0)  # of one that began before the recording
        return np.array(found, dtype=np.int64).reshape(-1, 2), said

    def _together(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Return what calls of a group are together; nothing is known where that is not one thing."""
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


_MARKS = {"ncclGroupStart": 1, "ncclGroupEnd": -1}


def _of_nccl(region: Region) -> bool:
    return region.paradigm == "nvtx" and region.module == "NCCL"
