"""What a caching allocator did, as columns: what was in use, awaited, reserved and free after each event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from strobe import native
from strobe.formats.reading.sqlite_input import NONE
from strobe.gpu.block_lifetimes import BEFORE, NEVER, in_use, lifetimes
from strobe.tables.column_arrays import Bools, Ints

# Kinds of events. A segment stands alone; mapped memory continues what is mapped before it.
ALLOC, FREE, COMPLETED, SEGMENT, MAP, RELEASE, OTHER = range(7)
# As native/kernels/memory/free_blocks.h counts. A block can be used again once its free is completed.
_SEGMENT, _MAP, _RELEASE, _TAKE, _TAKE_EXACT, _FREE, _OTHER = range(7)
_NATIVE = np.array([_TAKE, _OTHER, _FREE, _SEGMENT, _MAP, _RELEASE, _OTHER], dtype=np.uint8)


@dataclass(frozen=True)
class AllocatorEvents:
    """Columns of equal length, in order: kind, address, bytes (asked for), call path, time in ns (NONE: unknown)."""

    kind: Ints
    address: Ints
    size: Ints
    path: Ints
    time_ns: Ints


class Held(NamedTuple):
    """A block that is in use at the end: bytes asked for, bytes that it takes, its call path."""

    size: int
    rounded: int
    path: int


class Segment(NamedTuple):
    """Memory that is reserved at the end; largest_free: bytes of its largest free block."""

    address: int
    size: int
    expandable: bool
    largest_free: int


@dataclass(frozen=True)
class Blocks:
    """Blocks by events, see `Lifetimes`. reusable: the event from which on the block is free, not only freed."""

    address: Ints
    size: Ints
    path: Ints
    alive_from: Ints
    alive_until: Ints
    reusable: Ints

    def alive_after(self, event: int) -> Bools:
        """Return which blocks are in use after an event; -1: before the first."""
        alive: Bools = (self.alive_from <= event) & (self.alive_until > event)
        return alive


def blocks_of(events: AllocatorEvents, held: Mapping[int, Held], before: int) -> Blocks:
    """Return all blocks: of the events, and those that are in use all the time. `before`: path of unrecorded ones."""
    about = np.flatnonzero(events.kind <= FREE)
    address = events.address[about]
    found = lifetimes(address, events.kind[about] == ALLOC)
    known = about[found.known_by]
    numbers = np.append(about, [NEVER, BEFORE])
    until = numbers[np.where(found.alive_until == NEVER, len(about), found.alive_until)]
    begin = numbers[found.alive_from]  # -1 is the last: BEFORE
    path = np.where(begin == BEFORE, before, events.path[known])
    seen = set(np.unique(address).tolist())
    others = [(at, block.size, block.path) for at, block in held.items() if at not in seen]
    rest = np.array(others, dtype=np.int64).reshape(-1, 3).T
    count = len(others)
    return Blocks(
        np.concatenate((events.address[known], rest[0])),
        np.concatenate((events.size[known], rest[1])),
        np.concatenate((path, rest[2])),
        np.append(begin, np.full(count, BEFORE)),
        np.append(until, np.full(count, NEVER)),
        np.append(_reusable(events, until), np.full(count, NEVER)),
    )


def _reusable(events: AllocatorEvents, freed: Ints) -> Ints:
    """Return the event that completes each free."""
    about = np.flatnonzero(events.kind <= COMPLETED)
    order = about[np.argsort(events.address[about], kind="stable")]
    follows = np.full(len(events.kind) + 1, NEVER)
    next_one = np.append(order[1:], -1)
    done = (events.kind[next_one] == COMPLETED) & (events.address[next_one] == events.address[order])
    done[-1:] = False
    follows[order[done]] = next_one[done]
    at = np.where(freed == NEVER, len(events.kind), freed)
    # Where its own free is missing, the next allocation at its address takes it.
    replaced = (at < len(events.kind)) & (np.append(events.kind, OTHER)[at] == ALLOC)
    result: Ints = np.where(replaced, freed, follows[at])
    return result


@dataclass(frozen=True)
class Levels:
    """Bytes after each event, NONE where unknown. `before`: in use before the first event."""

    before: int
    allocated: Ints
    active: Ints
    reserved: Ints
    largest_free: Ints


def levels_of(events: AllocatorEvents, blocks: Blocks, held: Mapping[int, Held], segments: list[Segment]) -> Levels:
    """Return what is in use, awaited, reserved and free after each event."""
    count = len(events.kind)
    allocated = in_use(blocks.alive_from, blocks.alive_until, blocks.size, count)
    completes = bool((events.kind == COMPLETED).any()) or not (events.kind == FREE).any()
    unknown = np.full(count, NONE)
    active = in_use(blocks.alive_from, blocks.reusable, blocks.size, count) if completes else unknown
    sign = np.zeros(7, dtype=np.int64)
    sign[[SEGMENT, MAP, RELEASE]] = 1, 1, -1
    change = sign[events.kind] * events.size
    # What it was after an event is what it is at the end, without the changes that follow.
    reserved = sum(each.size for each in segments) - (change.sum() - np.cumsum(change))
    if count and min(int(reserved.min()), int(reserved[0] - change[0])) < 0:
        reserved = unknown
    before = int(blocks.size[blocks.alive_from == BEFORE].sum())
    largest = _largest_free(events, blocks, held, segments) if completes else None
    return Levels(before, allocated, active, reserved, unknown if largest is None else largest)


def _largest_free(
    events: AllocatorEvents, blocks: Blocks, held: Mapping[int, Held], segments: list[Segment]
) -> Ints | None:
    """Return the largest free block after each event; None where events do not lead to the state at the end."""
    reserved = _reserved_before(events, segments)
    if reserved is None:
        return None
    there = np.flatnonzero(blocks.alive_from == BEFORE)
    # From the last on: what is too small to be split off a block ends at the next one.
    there = there[np.argsort(-blocks.address[there], kind="stable")]
    taken, facts = [], (blocks.address, blocks.size, blocks.alive_until)
    for at, size, until in zip(*(column[there].tolist() for column in facts), strict=True):
        exact = held[at].rounded if until == NEVER and at in held else 0
        taken.append((_TAKE_EXACT if exact else _TAKE, at, exact or size))
    first = np.array([*reserved, *taken], dtype=np.int64).reshape(-1, 3).T
    found = native.core.largest_free_blocks(
        np.append(first[0].astype(np.uint8), _NATIVE[events.kind]),
        np.append(first[1], events.address),
        np.append(first[2], events.size),
        any(each.expandable for each in segments) or bool((events.kind == MAP).any()),
    )
    right = max((each.largest_free for each in segments), default=0)
    return found[len(first[0]) :] if len(found) and int(found[-1]) == right else None


def _reserved_before(events: AllocatorEvents, segments: list[Segment]) -> list[tuple[int, int, int]] | None:
    """Return what was reserved before the first event; None where the events do not fit the segments."""
    held = {each.address: (each.size, _MAP if each.expandable else _SEGMENT) for each in segments}
    for i in np.flatnonzero((events.kind >= SEGMENT) & (events.kind <= RELEASE))[::-1].tolist():
        at, size = int(events.address[i]), int(events.size[i])
        if events.kind[i] == RELEASE:
            held[at] = size, _SEGMENT
            continue
        start = next((begin for begin, (long, _) in held.items() if begin <= at and at + size <= begin + long), None)
        if start is None:
            return None
        long, how = held.pop(start)
        if at > start:
            held[start] = at - start, how
        if at + size < start + long:
            held[at + size] = start + long - at - size, how
    return [(how, at, size) for at, (size, how) in sorted(held.items())]
