"""Who owns blocks of memory: the line, the module or the function that allocated them, and how their sums grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.gpu.block_lifetimes import NEVER
from strobe.gpu.memory_blocks import MemoryBlocks, PoolBlocks
from strobe.gpu.memory_categories import CATEGORIES, categories
from strobe.gpu.steady_growth import FEWEST
from strobe.operators.labels import Cells, line_of, module_of
from strobe.steps.step_times import step_times
from strobe.steps.thread_spans import innermost
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import Region, path_tree, region_rows
from strobe.trace.trace import Trace

UNKNOWN = "(unknown)"
_READINGS = 96  # of a recording without steps, or with more of them


@dataclass(frozen=True)
class Owners:
    """Owners of blocks: `cells` (owner, function, category) of each, and the number of each block's."""

    cells: Sequence[tuple[str, str | None, str]]
    of_block: Ints


def owners(trace: Trace, pool: PoolBlocks, by: str) -> Owners:
    """Return who owns each block; `by`: line, module, function or category."""
    of_path, labels = _labels(trace, by)
    label = np.append(of_path, len(labels) - 1)[pool.blocks.path]
    category = categories(trace, pool)
    pairs, of_block = np.unique(label * len(CATEGORIES) + category, return_inverse=True)
    cells: list[tuple[str, str | None, str]] = []
    for which, what in (divmod(pair, len(CATEGORIES)) for pair in pairs.tolist()):
        owner, function = (*labels[which], None)[:2]
        cells.append((CATEGORIES[what] if by == "category" else owner or UNKNOWN, function, CATEGORIES[what]))
    return Owners(cells, of_block.astype(np.int64))


def _labels(trace: Trace, by: str) -> tuple[Ints, list[Cells]]:
    """Return the label of each call path, and the labels; the last one is that of paths without any."""
    parent, region = path_tree(trace)
    regions = region_rows(trace)
    cells_of: dict[str, Callable[[Region], Cells | None]] = {
        "line": line_of,
        "module": _module,
        "function": lambda each: (each.name,),
        "category": lambda _: (None,),
    }
    found = [cells_of[by](each) for each in regions]
    number: dict[Cells, int] = {}
    for cells in found:
        if cells is not None:
            number.setdefault(cells, len(number))
    nothing = len(number)
    of_region = np.array([nothing if cells is None else number[cells] for cells in found], dtype=np.int64)
    at = innermost(parent, (of_region != nothing)[region])
    return np.append(of_region[region], nothing)[at], [*number, (None,)]


def _module(region: Region) -> Cells | None:
    found = module_of(region)
    if found is None and region.name == "forward" and region.paradigm == "python":
        found = f"forward ({region.file}:{region.line})"
    return None if found is None else (found,)


def readings(trace: Trace, pool: PoolBlocks) -> tuple[Ints, int]:
    """Return moments at which growth is read, and how many steps they cover; 0: there are no steps.

    The ends of steps without the first tenth, which warms up; of more than some hundred, evenly chosen ones. Without
    steps, equal parts of the time. No moments where these are too few.
    """
    blocks = pool.blocks
    changes = np.concatenate((blocks.begin_ns, blocks.end_ns[blocks.end_ns != NEVER]))
    first, last = int(changes.min()), int(changes.max())
    _, begin, end = step_times(trace, pool.process)
    ends = end[(begin >= first) & (np.arange(len(end)) >= max(1, len(end) // 10))]
    if len(ends) >= FEWEST:
        chosen = ends[np.linspace(0, len(ends) - 1, min(len(ends), _READINGS)).astype(np.int64)]
        return chosen, len(ends)
    if last - first < _READINGS:
        return ends[:0], 0
    return np.linspace(first, last, _READINGS + 1)[1:].astype(np.int64), 0


def levels_at(blocks: MemoryBlocks, owner: Ints, count: int, moments: Ints) -> Ints:
    """Return the bytes in use of each of `count` owners at some moments, in order."""
    change = np.zeros((count, len(moments) + 1), dtype=np.int64)
    np.add.at(change, (owner, np.searchsorted(moments, blocks.begin_ns)), blocks.size)
    np.subtract.at(change, (owner, np.searchsorted(moments, blocks.end_ns)), blocks.size)
    levels: Ints = np.cumsum(change, axis=1)[:, :-1]
    return levels
