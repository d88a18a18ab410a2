"""Anchors: ranges that mark steps, put there by a framework or by the program."""

from __future__ import annotations

import numpy as np

from strobe.model.kinds import PARADIGMS
from strobe.native import core
from strobe.steps.thread_spans import Ints, Stream, of_definitions, outermost

# The kinds of anchors in order of authority, each with the occurrences that its names need at least. Which region is
# one is decided by native/structure/region_names.cpp.
ANCHORS = {"hint": 2, "range": 1, "optimizer": 1, "zero_grad": 3, "data_wait": 3}


def anchor_rows(stream: Stream) -> dict[str, dict[str, Ints]]:
    """Rows of every anchor that occurs often enough, by its kind and its name."""
    found: dict[str, dict[str, Ints]] = {kind: {} for kind in ANCHORS}
    end_ns = stream.end_ns
    for (kind, name), numbers in _anchors(stream).items():
        at = np.flatnonzero(np.isin(stream.region, numbers))
        at = at[outermost(stream.start_ns[at], end_ns[at])]
        if len(at) >= ANCHORS[kind]:
            found[kind][name] = at
    if len(found["range"]) > 1:  # what an engine calls a step counts more
        found["range"].pop("ProfilerStep#", None)
    return found


@of_definitions
def _anchors(stream: Stream) -> dict[tuple[str, str], list[int]]:
    """Return the regions of every anchor, by its kind and its name."""
    number = {paradigm: at for at, paradigm in enumerate(PARADIGMS)}
    regions: dict[tuple[str, str], list[int]] = {}
    for region, (name, paradigm) in enumerate(zip(stream.names, stream.paradigms, strict=True)):
        anchor = core.anchor_of_region(name, number[paradigm])
        if anchor[0] in ANCHORS:
            regions.setdefault(anchor, []).append(region)
    return regions


def one_after_the_other(stream: Stream, kind: str, named: dict[str, Ints]) -> list[tuple[str, Ints]]:
    """The names that mark loops one after the other; of names that alternate, one (native/structure/decision.h)."""
    chosen: list[tuple[str, Ints]] = []
    until_ns = -(2**62)
    for name, rows in sorted(named.items(), key=lambda item: int(item[1][0])):
        first_ns, last_ns = int(stream.start_ns[rows[0]]), int(stream.start_ns[rows[-1]])
        times = len(rows), first_ns, last_ns
        if first_ns >= until_ns:
            chosen.append((name, rows))
        else:
            best = chosen[-1][1]
            of_best = len(best), int(stream.start_ns[best[0]]), int(stream.start_ns[best[-1]])
            if core.is_step_rather(kind, of_best, times):
                chosen[-1] = name, rows
        until_ns = max(until_ns, last_ns + int(stream.duration_ns[rows[-1]]))
    return chosen
