"""Loop levels of an event sequence: the items that occur strictly in turn belong to one loop, and loops nest."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.native import core


@dataclass(frozen=True)
class Level:
    """One loop level: the events and transitions that occur once per iteration of the same loop.

    positions: where the marker occurs, as indices into the sequence, ascending.
    count: iterations seen.
    spine: how many events and transitions alternate strictly, plus half of those that almost always do.
    coverage: share of the sequence's time that the loop spans, 0 to 1.
    cvn: coefficient of variation of the number of events per iteration; 0 is perfectly regular.
    score: how much this level looks like the main loop; the higher the better, 0.2 is little.
    parent: index of the enclosing level, -1 without one.
    trips_min, trips_median, trips_max: iterations of this level per iteration of its parent.
    marker_source: None if the marker is an event, else the event that the marking transition comes from.
    marker: the event (or the target of the transition) that marks an iteration.
    """

    positions: npt.NDArray[np.int64]
    count: int
    spine: float
    coverage: float
    cvn: float
    score: float
    parent: int
    trips_min: int
    trips_median: float
    trips_max: int
    marker_source: int | None
    marker: int


def find_levels(
    ids: npt.NDArray[np.integer], times_ns: npt.NDArray[np.integer], *, min_count: int = 3, max_levels: int = 64
) -> list[Level]:
    """Find the loop levels of a sequence, best score first.

    `ids` name what happened (small or large, any numbering below 2^32), `times_ns` when, in ascending order. Items that
    occur less than `min_count` times are ignored. 10 to 20 ns per event of a program with loops, about 60 of noise.
    Longer sequences are judged by 2^21 events from their middle.

    An item is compared with the latest 1024 loops of its count only: loops that interleave with far more others may
    have fewer members here.
    """
    found = core.find_levels(
        np.ascontiguousarray(ids, dtype=np.uint32),
        np.ascontiguousarray(times_ns, dtype=np.int64),
        min_count,
        max_levels,
    )
    return [level_of(each) for each in found]


def level_of(native: tuple[Any, ...]) -> Level:
    """Return the level that the kernels describe."""
    positions, *measures = native
    return Level(positions.astype(np.int64), *measures)


def as_native(level: Level) -> tuple[Any, ...]:
    """Return a level as the kernels take it."""
    return (level.positions.astype(np.uint32), *(getattr(level, each.name) for each in fields(level)[1:]))
