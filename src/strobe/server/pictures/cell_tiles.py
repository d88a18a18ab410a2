"""Pixels: windows of cells as binary bodies, one byte of palette index (and one of share) for each cell.

A *cell* of level l is 2**l ns wide; a *tile* is TILE_CELLS cells, aligned to the trace's zero, so that the same tile is
asked for again while panning, and its answer can be cached. A body is

    4 bytes "STC1", u32 length of the header, header (JSON, padded with spaces to 8 bytes), u8 index[rows][TILE_CELLS],
    and, where the header has `"shares": true`, u8 share[rows][TILE_CELLS] (255ths of the cell).

A third part of the same form, where the header has `"marks": true`, holds the longest exceptional span of each cell
as its index; its region is GAP where it is a gap.

Index 0 is "nothing"; index i > 0 is the header's `palette[i - 1] = [region, name, group]`. If a picture has more
regions than a byte has values, the rarest are one entry per group, with region NOTHING.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.model.kinds import GROUPS
from strobe.server.routing.bodies import Body, picture_body
from strobe.tables.column_arrays import Ints
from strobe.trace.processes.process_reader import GAP

TILE_CELLS = 1024
LAST_NS = 2**53  # 104 days; a double in the browser holds no more
MAX_LEVEL = 43  # a tile of it is LAST_NS wide
NOTHING = 0xFFFFFFFF
MAGIC = b"STC1"
# Index 0 is nothing, and one is kept for gaps.
_MOST_ENTRIES = 254
_NAMED_ENTRIES = _MOST_ENTRIES - len(GROUPS)
_NAME_LENGTH = 200
# 255 names, whose characters JSON escapes with up to 12 bytes, and the other fields of the header.
PALETTE_BYTES = 1 << 20

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class RegionNames:
    """Name and group of every region, by global id."""

    names: Sequence[str]
    groups: Sequence[str]


def tile_window(level: int, tile: int) -> tuple[int, int]:
    """Return the [start_ns, end_ns) that a tile covers."""
    width_ns = TILE_CELLS << level
    if not 0 <= level <= MAX_LEVEL or not 0 <= tile * width_ns < LAST_NS:
        raise UsageError(f"tile {tile} of level {level} does not exist", do=f"Tiles begin before {LAST_NS} ns")
    return tile * width_ns, (tile + 1) * width_ns


def cells_body(
    regions: Ids, shares: Bytes, names: RegionNames, header: Mapping[str, object], marks: Ids | None = None
) -> Body:
    """Return the body for cells of shape (rows, TILE_CELLS): region ids (NOTHING where idle), shares, and marks."""
    # Most cells have no mark: only the others are looked up.
    at = np.flatnonzero(marks != NOTHING) if marks is not None else np.empty(0, dtype=np.intp)
    found = marks.ravel()[at] if marks is not None else regions[:0].ravel()
    index, palette = marked_palette(np.concatenate([regions.ravel(), found]), names)
    about = {**header, "rows": len(regions), "shares": True, "marks": len(at) > 0, "palette": palette}
    marked = np.zeros(regions.size if len(at) else 0, dtype=np.uint8)
    marked[at] = index[regions.size :]
    return picture_body(MAGIC, about, index[: regions.size], shares, marked)


def fullest(begin: Ints, end: Ints, region: Ints, start_ns: int, end_ns: int) -> tuple[Ids, Bytes]:
    """Return the region that fills most of each cell of [start_ns, end_ns), and how much of it, in 255ths.

    The intervals [begin, end), ns, do not overlap and come in order; those with a negative region are nothing.
    """
    width_ns = (end_ns - start_ns) // TILE_CELLS
    regions, shares = np.full(TILE_CELLS, NOTHING, dtype=np.uint32), np.zeros(TILE_CELLS, dtype=np.uint8)
    some = (begin < end_ns) & (end > start_ns) & (region >= 0)
    begin, end, region = np.maximum(begin[some], start_ns), np.minimum(end[some], end_ns), region[some]
    if not len(begin):
        return regions, shares
    first, last = (begin - start_ns) // width_ns, (end - 1 - start_ns) // width_ns
    # Intervals cut at the edges of cells.
    pieces = last - first + 1
    of = np.repeat(np.arange(len(begin)), pieces)
    cell = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    edge = start_ns + cell * width_ns
    covered = np.minimum(end[of], edge + width_ns) - np.maximum(begin[of], edge)
    order = np.lexsort((region[of], cell))
    cell, piece = cell[order], region[of][order]
    new = np.flatnonzero(np.append(True, (np.diff(cell) != 0) | (np.diff(piece) != 0)))
    sums, cell, piece = np.add.reduceat(covered[order], new), cell[new], piece[new]
    # Of what is written twice to one place, the last stays: the largest.
    rising = np.argsort(sums, kind="stable")
    regions[cell[rising]] = piece[rising]
    shares[cell[rising]] = np.maximum(1, sums[rising] * 255 // width_ns)
    return regions, shares


def marked_palette(regions: Ids, names: RegionNames) -> tuple[Bytes, list[list[Any]]]:
    """Return the same as `palette_of`, where a region may be GAP, too."""
    index, palette = palette_of(regions, names)
    if (gaps := regions == GAP).any():
        palette.append([GAP, "nothing ran", "other"])
        index[gaps] = len(palette)
    return index, palette


def palette_of(regions: Ids, names: RegionNames) -> tuple[Bytes, list[list[Any]]]:
    """Return one byte for each cell, and what the bytes from 1 on mean: [region, name, group]."""
    count = len(names.names)
    # One more slot takes everything that is not a region (NOTHING); a table lookup costs a fifth of np.unique here.
    slots = np.minimum(regions, count).astype(np.intp)  # or else both lookups make their own of it
    seen = np.bincount(slots.ravel(), minlength=count + 1)
    used = np.flatnonzero(seen[:count])
    index_of = np.zeros(count + 1, dtype=np.uint8)
    if len(used) <= _MOST_ENTRIES:
        kept, rest = used, used[:0]
    else:
        by_cells = used[np.argsort(-seen[used], kind="stable")]
        kept, rest = np.sort(by_cells[:_NAMED_ENTRIES]), by_cells[_NAMED_ENTRIES:]
    index_of[kept] = np.arange(1, len(kept) + 1)
    palette: list[list[Any]] = [[r, names.names[r][:_NAME_LENGTH], names.groups[r]] for r in kept.tolist()]
    for group in GROUPS:
        members = [r for r in rest.tolist() if names.groups[r] == group]
        if members:
            palette.append([NOTHING, f"{len(members)} rare regions ({group})", group])
            index_of[members] = len(palette)
    return index_of.take(slots), palette
