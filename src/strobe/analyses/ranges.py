"""Ranges that the program marked (NVTX, ITT, record_function) projected onto the GPU: what they launched, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.device_work import Device, Ints, Work
    from strobe.structure.launches import Bools

    Rows = npt.NDArray[np.intp]


def run(trace: Trace) -> Table:
    """Sum ranges by name, with the GPU work that was launched inside them; all ranks and GPUs together.

    An execution of a range is projected from the first start to the last end of the kernels, copies and sets whose
    launching call began inside it, on the same thread (Nsight Systems: nvtx_gpu_proj_sum); work of ranges inside is
    not subtracted. What was captured into a CUDA graph inside a range is projected, too: once for each launch of the
    graph, unless it was launched inside the same execution. Executions that launched nothing count in `calls` and
    `total_ns` only, and so do those of ranges that are of no thread (NVTX's start/end ranges): what is launched while
    one is open may be anybody's.
    """
    import numpy as np

    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.device_time import folded_note
    from strobe.structure.device_work import devices, no_device

    regions = trace.regions.to_arrow().to_pylist()
    is_range = np.array([region["role"] == "range" for region in regions], dtype=bool)
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
        rows.append(
            (
                regions[number]["name"],
                regions[number]["paradigm"],
                int(count[number]),
                int(total[number]),
                len(own),
                int(own.sum()),
                *(
                    (float(own.mean()), float(np.median(own)), int(own.min()), int(own.max()))
                    if len(own)
                    else (None,) * 4
                ),
                float(own.std(ddof=1)) if len(own) > 1 else None,
                int(activities[region == number].sum()) if len(own) else 0,
            )
        )
    columns = (
        Column("name", "string", "", "name of the range"),
        Column("paradigm", "string", "", "who marked it: nvtx, itt, user, torch, ...", extra=True),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it on the host, one inside another of the same name counted twice"),
        Column("projected", "int64", "", "executions that launched GPU work, and launches of graphs captured in one"),
        Column("projected_ns", "int64", "ns", "sum of the times from the first start to the last end of that work"),
        Column("avg_ns", "float64", "ns", "mean projected time"),
        Column("median_ns", "float64", "ns", "median projected time"),
        Column("min_ns", "int64", "ns", "shortest projected time"),
        Column("max_ns", "int64", "ns", "longest projected time"),
        Column("std_ns", "float64", "ns", "standard deviation of the projected times", extra=True),
        Column("activities", "int64", "", "kernels, copies and memory sets launched or captured inside"),
    )
    note = "" if rows else "no ranges in this trace (NVTX, ITT, torch.profiler.record_function)"
    if rows and not parts:
        note = f"{no_device(trace)}; so ranges have host times only"
    elif rows:
        note = folded_note(trace, devices(trace))
    table = make_table(columns, rows, name="ranges", about="all executions", note=note)
    return table.sort("projected_ns" if parts else "total_ns")


def _facts(values: Ints) -> tuple[float, float, int, int]:
    import numpy as np

    return float(values.mean()), float(np.median(values)), int(values.min()), int(values.max())


def _host_sums(trace: Trace, is_range: Bools) -> tuple[Ints, Ints]:
    """Return executions and time of each region, of which only ranges are counted."""
    import numpy as np

    count, total = (np.zeros(len(is_range), dtype=np.int64) for _ in range(2))
    for location in trace.locations.to_arrow().to_pylist():
        # GPUs repeat the ranges of the host in rows of their own; ranges beside the threads are of no device.
        if location["kind"] == "stream" or location["device"] is not None:
            continue
        for spans in trace.span_batches(location["location"]):
            of_range = is_range[spans["region"]]
            np.add.at(count, spans["region"][of_range], 1)
            np.add.at(total, spans["region"][of_range], spans["duration_ns"][of_range])
    return count, total


def _launched(trace: Trace, device: Device, is_range: Bools) -> Iterator[tuple[Ints, ...]]:
    """Yield the ranges around launches and captures, as the columns that `run` joins."""
    import numpy as np

    from strobe.structure.launches import launches

    for work, who in launches(trace, device):
        (at,) = np.nonzero(who.call_row >= 0)
        calls = (who.call_location, who.call_row, who.call_start_ns)
        yield from _around(trace, is_range, work, at, calls, None)
        (at,) = np.nonzero(who.captured)
        yield from _around(trace, is_range, work, at, (who.code_location, who.code_row, who.code_start_ns), calls)


def _around(
    trace: Trace, is_range: Bools, work: Work, at: Rows, calls: tuple[Ints, ...], launch: tuple[Ints, ...] | None
) -> Iterator[tuple[Ints, ...]]:
    """Yield the ranges around the calls of the activities `at`, but for those that are around their launches, too."""
    import numpy as np

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
                of, around = here[chosen], inside[chosen]
                start, end = spans["start_ns"][around], (spans["start_ns"] + spans["duration_ns"])[around]
                both = (launch[0][of] == thread) & (launch[2][of] >= start) & (launch[2][of] < end)
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


ANALYSIS = Analysis("ranges", "What did the ranges that the program marked do on the GPU?", run)
