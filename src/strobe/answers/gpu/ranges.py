"""Ranges that the program marked (NVTX, ITT, record_function) projected onto the GPU: what they launched, and when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from strobe.analyses.gpu.ranges import ANALYSIS
from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.folded_work import folded_note
from strobe.gpu.launches import launches
from strobe.gpu.work import Work
from strobe.tables.column_arrays import Bools, Ints
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import location_rows, region_rows, regions_where
from strobe.trace.trace import Trace

Rows = npt.NDArray[np.intp]


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.gpu.ranges`."""
    regions = region_rows(trace)
    is_range = regions_where(trace, lambda region: region.role == "range")
    count, total = _host_sums(trace, is_range)
    parts = [part for device in devices(trace) for part in _launched(trace, device, is_range)]
    # One row an execution that launched something: its location and row, those of the launch of a graph (-1: of
    # none), region; first start, last end, activities.
    *execution, region, first, last, work = (
        np.concatenate(column) if parts else np.empty(0, dtype=np.int64)
        for column in (zip(*parts, strict=True) if parts else [()] * 8)
    )
    order = np.lexsort(execution)
    begins = np.flatnonzero(np.append(True, (np.diff(np.stack(execution)[:, order]) != 0).any(axis=0)))[: len(order)]
    if len(order):
        region = region[order][begins]
        projected = np.maximum.reduceat(last[order], begins) - np.minimum.reduceat(first[order], begins)
        activities = np.add.reduceat(work[order], begins)
    rows = []
    for number in np.flatnonzero(is_range & (count > 0)).tolist():
        own = projected[region == number] if len(order) else np.empty(0, dtype=np.int64)
        some = len(own) > 0
        rows.append(
            {
                **regions[number]._asdict(),
                "calls": int(count[number]),
                "total_ns": int(total[number]),
                "projected": len(own),
                "projected_ns": int(own.sum()),
                "avg_ns": float(own.mean()) if some else None,
                "median_ns": float(np.median(own)) if some else None,
                "min_ns": int(own.min()) if some else None,
                "max_ns": int(own.max()) if some else None,
                "std_ns": float(own.std(ddof=1)) if len(own) > 1 else None,
                "activities": int(activities[region == number].sum()) if some else 0,
            }
        )
    note = "" if rows else "no ranges in this trace (NVTX, ITT, torch.profiler.record_function)"
    if rows and not parts:
        note = f"{no_device(trace)}; so ranges have host times only"
    elif rows:
        note = folded_note(trace, devices(trace))
    table = make_table(ANALYSIS.columns, rows, about="all executions", note=note)
    return table.sort("projected_ns" if parts else "total_ns")


def _host_sums(trace: Trace, is_range: Bools) -> tuple[Ints, Ints]:
    """Return executions and time of each region, of which only ranges are counted."""
    count, total = (np.zeros(len(is_range), dtype=np.int64) for _ in range(2))
    for place in location_rows(trace):
        # GPUs repeat the ranges of the host in rows of their own; ranges beside the threads are of no device.
        if place.kind == "stream" or place.device is not None:
            continue
        for spans in trace.span_batches(place.location):
            of_range = is_range[spans["region"]]
            np.add.at(count, spans["region"][of_range], 1)
            np.add.at(total, spans["region"][of_range], spans["duration_ns"][of_range])
    return count, total


def _launched(trace: Trace, device: Device, is_range: Bools) -> Iterator[tuple[Ints, ...]]:
    """Yield the ranges around launches and captures, as the columns that `run` joins."""
    for work, who in launches(trace, device):
        (at,) = np.nonzero(who.call.row >= 0)
        calls = (who.call.location, who.call.row, who.call.start_ns)
        yield from _around(trace, is_range, work, at, calls, None)
        (at,) = np.nonzero(who.captured)
        yield from _around(trace, is_range, work, at, (who.code.location, who.code.row, who.code.start_ns), calls)


def _around(
    trace: Trace, is_range: Bools, work: Work, at: Rows, calls: tuple[Ints, ...], launch: tuple[Ints, ...] | None
) -> Iterator[tuple[Ints, ...]]:
    """Yield the ranges around the calls of the activities `at`, but for those that are around their launches, too."""

    for thread in np.unique(calls[0][at]).tolist():
        here = at[calls[0][at] == thread]
        row, called = (column[here] for column in calls[1:])
        spans = trace.span_arrays(thread, int(called.min()), int(called.max()) + 1)
        inside = np.searchsorted(spans["row"], row)
        left = np.arange(len(here))
        while len(left):
            parent = spans["parent"][inside[left]]
            left = left[parent >= 0]
            inside[left] = np.searchsorted(spans["row"], parent[parent >= 0])
            chosen = left[is_range[spans["region"][inside[left]]]]
            launched_by = np.full((2, len(chosen)), -1, dtype=np.int64)
            if launch is not None:
                launched, around = here[chosen], inside[chosen]
                start, end = spans["start_ns"][around], (spans["start_ns"] + spans["duration_ns"])[around]
                both = (launch[0][launched] == thread) & (launch[2][launched] >= start) & (launch[2][launched] < end)
                chosen = chosen[~both]
                launched_by = np.stack((launch[0][here[chosen]], launch[1][here[chosen]]))
            around = inside[chosen]
            yield (
                np.full(len(chosen), thread, dtype=np.int64),
                spans["row"][around],
                *launched_by,
                spans["region"][around].astype(np.int64),
                work.start_ns[here[chosen]],
                work.end_ns[here[chosen]],
                np.ones(len(chosen), dtype=np.int64),
            )
