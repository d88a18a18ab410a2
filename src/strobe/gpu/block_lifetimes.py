"""When blocks of memory were allocated and freed: allocations and frees at one address follow each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Bools, Ints

# Of `alive_until`: it was never freed. Of `alive_from`: it was there before the first event.
NEVER = int(np.iinfo(np.int64).max)
BEFORE = -1


@dataclass(frozen=True)
class Lifetimes:
    """Blocks, by the number of the event that is about them: allocated by `alive_from`, freed by `alive_until`.

    alive_from: BEFORE where a block is freed that was not allocated since the first event. alive_until: NEVER, or the
    next allocation at its address, where its own free is missing.
    """

    alive_from: Ints
    alive_until: Ints

    @property
    def known_by(self) -> Ints:
        """The event that has the facts about each block: the allocation, else the free."""
        return np.where(self.alive_from == BEFORE, self.alive_until, self.alive_from)


def lifetimes(address: Ints, allocated: Bools) -> Lifetimes:
    """Return the blocks of events in order of time, at addresses that are unique in their memory.

    allocated: whether an event allocates; else it frees. A free of what is free already is left out.
    """
    order = np.argsort(address, kind="stable")
    new, place = allocated[order], address[order]
    follows = np.append(False, place[1:] == place[:-1])
    continued = np.append(follows[1:], False)  # something else happens there later
    ends = np.append(order[1:], 0)
    begun = np.flatnonzero(new)
    until = np.where(continued[begun], ends[begun], NEVER)
    earlier = np.flatnonzero(~new & ~follows)
    alive_from = np.concatenate((order[begun], np.full(len(earlier), BEFORE, dtype=np.int64)))
    alive_until = np.concatenate((until, order[earlier]))
    in_order = np.argsort(np.where(alive_from == BEFORE, alive_until, alive_from), kind="stable")
    return Lifetimes(alive_from[in_order], alive_until[in_order])


def in_use(alive_from: Ints, alive_until: Ints, size: Ints, events: int) -> Ints:
    """Return the bytes in use after each of `events` events; `alive_...` as in Lifetimes."""
    change = np.zeros(events + 1, dtype=np.int64)
    np.add.at(change, alive_from + 1, size)
    freed = alive_until != NEVER
    np.subtract.at(change, alive_until[freed] + 1, size[freed])
    level: Ints = np.cumsum(change)[1:]
    return level
