"""Batch makers: generators and iterators of the program that its training, or its inference, is fed by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.model.kinds import PARADIGMS
from strobe.native import core
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import path_tree, region_rows, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@cached_on_trace
def batch_makers(trace: Trace) -> tuple[Bools, ...]:
    """Return by process which call paths make batches: native/structure/batch_makers.h has the rule.

    Without the source of functions, none: traces of other tools, and old ones.
    """
    count, loops = len(trace.call_paths), trace.definitions.source_loops
    maps = trace.definitions.path_maps
    if not loops:
        return (np.zeros(count, dtype=bool),) * len(maps)
    regions, (parent, region) = region_rows(trace), path_tree(trace)
    names, paradigms = [each.name for each in regions], [each.paradigm for each in regions]
    codes = core.SourceCodes(names, loops)
    found = []
    for own in maps:
        makes = np.zeros(count, dtype=bool)
        at = np.unique(own).astype(np.int64)  # parents come before their children here, too
        above = np.where(parent[at] < 0, -1, np.searchsorted(at, parent[at]))
        makes[at] = makers_of(above, region[at], names, paradigms, codes)
        found.append(makes)
    return tuple(found)


def makers_of(
    parent: Ints, region: Ints, names: Sequence[str], paradigms: Sequence[str], codes: core.SourceCodes
) -> Bools:
    """Return which call paths make batches. `parent`: by path, -1 at the root; `names`, `paradigms`: by region."""
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    kinds = np.array([number[paradigm] for paradigm in paradigms], dtype=np.uint8)
    return core.batch_makers(parent, region, names, kinds, codes).astype(bool)


@cached_on_trace
def making_regions(trace: Trace) -> Bools:
    """Return by region whether it makes batches on one of its call paths, in any process.

    One that holds a loader on another path hands batches on: a generator that is closed holds nothing then.
    """
    parent, region = path_tree(trace)
    makes, hands_on = (np.zeros(len(trace.regions), dtype=bool) for _ in range(2))
    for own in batch_makers(trace):
        makes[region[own]] = True
    above = parent[regions_where(trace, lambda each: each.group == "data")[region]]
    while len(above := np.unique(above[above >= 0])):
        hands_on[region[above]] = True
        above = parent[above]
    return makes & ~hands_on


@cached_on_trace
def making_frames(trace: Trace) -> frozenset[str]:
    """Return the functions that make batches, as lines of call stacks have them."""
    makes = making_regions(trace)
    rows = (each for each in region_rows(trace) if makes[each.region])
    return frozenset(f"{each.name} ({each.file}:{each.line})" for each in rows)


@cached_on_trace
def generators(trace: Trace) -> frozenset[tuple[str, int]]:
    """Return file and first line of the functions that yield in a loop, as far as the recorder read their code."""
    regions = region_rows(trace)
    found = (regions[at] for at, loops in trace.definitions.source_loops.items() if core.yields(loops))
    return frozenset((each.file, each.line) for each in found if not each.name.endswith("<genexpr>"))
