"""Memory that grows throughout: of a quarter to the next, each time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Bools, Floats, Ints

FEWEST = 12  # readings
_PARTS = 4
# Even growth has a third of it between two of four parts. Caches that fill up have less and less.
_EACH = 1 / 6


@dataclass(frozen=True)
class Growth:
    """Of each row: bytes from the middle of the first quarter to that of the last, and whether it is steady.

    first, last: median of these quarters.
    """

    first: Floats
    last: Floats
    steady: Bools

    @property
    def bytes(self) -> Floats:
        """How much more it is in the last quarter."""
        return self.last - self.first


def growth_of(levels: Ints) -> Growth:
    """Return how rows of FEWEST and more readings grow: each quarter's median and least are above the one before."""
    parts = np.array_split(levels, _PARTS, axis=-1)
    least, middle = (np.stack([of(part, axis=-1) for part in parts]) for of in (np.min, np.median))
    growth = middle[-1] - middle[0]
    steady = np.all([(np.diff(each, axis=0) >= _EACH * growth).all(axis=0) for each in (least, middle)], axis=0)
    return Growth(middle[0], middle[-1], steady & (growth > 0))


def parts_between(readings: int) -> float:
    """Return how many readings lie between the middles of the first and the last quarter."""
    return readings * (1 - 1 / _PARTS)
