"""Allocations that failed: what was asked for, and what was free then, in all and in one piece."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from strobe.gpu.memory import Curve, Pool, allocator_curves
from strobe.model.units import format_bytes
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

MARK = "out of memory"  # name of the marks that importers write, in the category `memory`


@dataclass(frozen=True)
class Failure:
    """An allocation that failed. Bytes; None where unknown.

    asked: size of the allocation. free: what the GPU had left. reserved, allocated: what the allocator held of it, and
    gave to the program; cached: what it held beyond that, in pieces the largest of which has `largest_free`. event: the
    last of its memory's events before, -1 if none.
    """

    process: int
    rank: int | None
    pool: Pool
    device: int | None
    location: int
    time_ns: int
    event: int
    asked: int
    free: int | None
    allocated: int
    reserved: int | None
    cached: int | None
    largest_free: int | None


@cached_on_trace
def failures(trace: Trace) -> list[Failure]:
    """Return the allocations that failed, in order of time."""
    marks = trace.side_table("marks").to_arrow()
    marks = marks.filter(pc.and_(pc.equal(marks["name"], MARK), pc.equal(marks["category"], "memory")))
    locations, found = location_rows(trace), []
    curves = [each for each in allocator_curves(trace) if each.pool is not None and each.device is not None]
    for mark in marks.select(["location", "time_ns", "arguments"]).to_pylist():
        where = locations[mark["location"]]
        for curve in curves:
            if curve.process == where.process and where.name == f"GPU {curve.device} memory":
                found.append(_failure(curve, mark["location"], mark["time_ns"], json.loads(mark["arguments"] or "{}")))
    return sorted(found, key=lambda each: each.time_ns)


def _failure(curve: Curve, location: int, time_ns: int, about: dict[str, int]) -> Failure:
    assert curve.pool is not None
    event = int(np.searchsorted(curve.time_ns, time_ns, "right")) - 1
    number = about.get("event_index")
    if number is not None:  # several events have one time
        event = int(np.searchsorted(curve.number, number)) - 1
    at = max(0, event)
    reserved, active = int(curve.reserved[at]), int(curve.active[at])
    largest = int(curve.largest_free[at])
    return Failure(
        process=curve.process,
        rank=curve.rank,
        pool=curve.pool,
        device=curve.device,
        location=location,
        time_ns=time_ns,
        event=event,
        asked=about.get("size_bytes", 0),
        free=about.get("free_bytes"),
        allocated=int(curve.allocated[at]),
        reserved=reserved if reserved >= 0 else None,
        cached=reserved - active if reserved >= 0 and active >= 0 else None,
        largest_free=largest if largest >= 0 else None,
    )


def in_words(failed: Failure) -> str:
    """Return a sentence on an allocation that failed: what was asked for, and what was free."""
    text = f"GPU {failed.device} ran out of memory: an allocation of {format_bytes(failed.asked)} failed"
    if failed.free is not None:
        text += f", {format_bytes(failed.free)} of the GPU were left"
    if failed.cached is not None and failed.reserved is not None:
        text += f"; of {format_bytes(failed.reserved)} reserved by PyTorch, {format_bytes(failed.cached)} were free"
        if failed.largest_free is not None:
            text += f", at most {format_bytes(failed.largest_free)} in one piece"
    return text
