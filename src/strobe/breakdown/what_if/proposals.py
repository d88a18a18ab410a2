"""What if? The changes that may be worth asking for in a trace: of what its own steps consist of."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence

import numpy as np

from strobe.breakdown.data_pipeline import pipelines
from strobe.breakdown.what_if.changes import changes
from strobe.breakdown.what_if.replay import usual_weights
from strobe.errors import UsageError
from strobe.ranks.critical_path.longest_path import (
    COMMUNICATION,
    COPY,
    KINDS,
    LAUNCH,
    SYNC,
    UNEXPLAINED,
    Graph,
    longest_path,
)
from strobe.steps.usual_steps import Usual
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

# Of the critical path: what is less cannot gain what can be told from the error of a replay.
_LEAST_PART = 0.02
_MOST_REGIONS = 4


def of_steps(trace: Trace, whole: Graph, processes: Sequence[int], *, on_gpus: bool) -> Iterator[str]:
    """Yield changes of what the critical path of a stretch of steps goes through: kinds, regions, then words."""
    weights = usual_weights(trace, whole.edges)
    path = longest_path(whole, weights)
    edges, kind = whole.edges, whole.edges.kind[path.edges]
    of_kind = np.bincount(kind, weights[path.edges], len(KINDS))
    least_ns = _LEAST_PART * path.length_ns
    for number in np.argsort(-of_kind, kind="stable").tolist():
        if number != UNEXPLAINED and of_kind[number] >= least_ns:
            yield f"{KINDS[number]}=0.5"
    regions = region_rows(trace)
    region = edges.region[path.edges]
    of_region = np.bincount(region[region >= 0], weights[path.edges][region >= 0], len(regions))
    for number in np.argsort(-of_region, kind="stable").tolist()[:_MOST_REGIONS]:
        change = f"{glob.escape(regions[number].name)}=0.5"
        if of_region[number] >= least_ns and _can_be_written(change):
            yield change
    if of_kind[SYNC] > 0:
        yield "no-sync"
    if of_kind[LAUNCH] > 0:
        yield "no-launch"
    if (edges.kind == COPY).any():
        yield from ("async-copies", "no-copies")
    if ((edges.kind == COMMUNICATION) & (edges.location >= 0)).any():
        yield "overlap"
    if len(processes) > 1:
        yield "no-straggler"
    if on_gpus:
        yield from ("half", "fuse=*", "merge=*")


def of_loader(trace: Trace, usual: Usual) -> Iterator[str]:
    """Yield a change of the data loader, where its workers are known: one if it has none, else twice as many."""
    found = next((each for each in pipelines(trace) if each.steps.process == usual.steps.process), None)
    if found is not None and found.workers is not None and found.fetch is not None and found.wait:
        yield f"workers={2 * found.workers or 1}"


def _can_be_written(change: str) -> bool:
    try:
        (found,) = changes(change, "CHANGE")
    except (UsageError, ValueError):  # names of templates may have commas
        return False
    return found.pattern == change.removesuffix("=0.5")
