"""Blocks of memory that a program holds: from when to when, of which size, and which call path allocated each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from strobe.gpu.block_lifetimes import BEFORE, NEVER, lifetimes
from strobe.gpu.launches import innermost_at
from strobe.gpu.memory import Pool, pools_of
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Ints, place_of
from strobe.trace.definition_rows import location_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_UNKNOWN = -1


@dataclass(frozen=True)
class MemoryBlocks(Columns):
    """Blocks of one memory, in order of `begin_ns`.

    end_ns: NEVER if it is in use at the end. begin, end: the events that allocated and freed it, by their place among
    the memory's events; BEFORE (then begin_ns is the start of the recording), NEVER. path: who allocated it; location:
    thread that did; -1 if unknown. given: number of its category in `PoolBlocks.words`, -1 if the file has none.
    """

    begin_ns: Ints
    end_ns: Ints
    size: Ints
    begin: Ints
    end: Ints
    path: Ints
    location: Ints
    given: Ints

    @property
    def earlier(self) -> Bools:
        """Which were allocated before the recording."""
        earlier: Bools = self.begin == BEFORE
        return earlier

    def alive_at(self, time_ns: int) -> Bools:
        """Return which are in use just after a moment."""
        alive: Bools = (self.begin_ns <= time_ns) & (self.end_ns > time_ns)
        return alive


@dataclass(frozen=True)
class PoolBlocks:
    """The blocks of one memory of a process; `pool` as in the curves of `strobe.gpu.memory`."""

    process: int
    rank: int | None
    pool: Pool
    blocks: MemoryBlocks
    words: Texts


@cached_on_trace
def memory_blocks(trace: Trace) -> list[PoolBlocks]:
    """Return the blocks of every memory whose addresses are known."""
    return [each for process, rank in enumerate(ranks_of(trace)) for each in _of_process(trace, process, rank)]


def _of_process(trace: Trace, process: int, rank: int | None) -> Iterator[PoolBlocks]:
    tables = trace.readers[process].tables()
    if tables.get("memory_blocks"):
        yield from _as_written(trace, process, rank)
    elif tables.get("allocations"):
        yield from _of_allocations(trace, process, rank)


def _as_written(trace: Trace, process: int, rank: int | None) -> Iterator[PoolBlocks]:
    words, parts = Texts(), []
    names = ("time_ns", "duration_ns", "size_bytes", "event_index", "freed_index", "call_path", "device_type", "device")
    for location, owner in enumerate(processes_of_locations(trace)):
        for batch in trace.side_batches("memory_blocks", location) if owner == process else ():
            columns = [integers(batch.column(name)) for name in names]
            parts.append(np.stack((*columns, words.numbers(batch.column("category")))))
    rows = np.concatenate(parts, axis=1)
    for pool, events in pools_of(trace, process):
        mine = rows[:, (rows[6] == pool.device_type) & (rows[7] == pool.device)]
        if not mine.shape[1]:
            continue
        begin_ns, duration_ns, size, first, last, path, _, _, given = mine[:, np.argsort(mine[0], kind="stable")]
        end_ns = np.where(last < 0, NEVER, begin_ns + duration_ns)
        order = np.argsort(events.number, kind="stable")
        begin, end = (np.append(order, -1)[place_of(which, events.number[order])] for which in (first, last))
        nobody = np.full(len(begin), _UNKNOWN, dtype=np.int64)
        blocks = MemoryBlocks(begin_ns, end_ns, size, begin, np.where(end < 0, NEVER, end), path, nobody, given)
        yield PoolBlocks(process, rank, pool, blocks, words)


def _of_allocations(trace: Trace, process: int, rank: int | None) -> Iterator[PoolBlocks]:
    for pool, events in pools_of(trace, process):
        (known,) = np.nonzero((events.address >= 0) & (events.size != 0))
        if not len(known):
            continue
        address, size, time, location = (
            column[known] for column in (events.address, events.size, events.time_ns, events.location)
        )
        found = lifetimes(address, size > 0)
        by, earlier = found.known_by, found.alive_from == BEFORE
        until = np.where(found.alive_until == NEVER, len(time), found.alive_until)
        blocks = MemoryBlocks(
            begin_ns=np.where(earlier, time[0], time[by]),
            end_ns=np.append(time, NEVER)[until],
            size=np.abs(size[by]),
            begin=np.where(earlier, BEFORE, known[by]),
            end=np.append(known, NEVER)[until],
            path=np.where(earlier, _UNKNOWN, _paths_at(trace, location, time)[by]),
            location=np.where(earlier, _UNKNOWN, location[by]),
            given=np.full(len(by), _UNKNOWN, dtype=np.int64),
        )
        yield PoolBlocks(process, rank, pool, blocks.chosen(np.argsort(blocks.begin_ns, kind="stable")), Texts())


def _paths_at(trace: Trace, location: Ints, time_ns: Ints) -> Ints:
    """Return the call path that each location was in at a moment, -1 where nothing was recorded there."""
    path = np.full(len(location), _UNKNOWN, dtype=np.int64)
    counts = [each.span_count for each in location_rows(trace)]
    for one in np.unique(location).tolist():
        if one < 0 or not counts[one]:
            continue
        rows = np.flatnonzero(location == one)
        spans = trace.span_arrays(one)
        at = innermost_at(spans, time_ns[rows])
        path[rows] = np.append(spans["call_path"].astype(np.int64), _UNKNOWN)[at]
    return path
