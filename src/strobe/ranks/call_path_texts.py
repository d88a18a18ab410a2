"""Call paths as texts: a call first, then who called it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import Region, path_tree, region_rows
from strobe.trace.trace import Trace


def call_path_text(trace: Trace, path: int, *, peers: bool = True) -> str:
    """Return a call path as `MPI_Send to +1 < exchange (solver.c:41) < main (solver.c:90)`.

    `peers`: with the `to +1`.
    """
    parents, of_path = path_tree(trace)
    regions, names = region_rows(trace), list[str]()
    while path >= 0:
        region = regions[of_path[path]]
        peer, callers = peer_and_callers(region)
        names += filter(None, [" ".join(filter(None, (region.name, peer if peers else ""))), callers])
        path = int(parents[path])
    return " < ".join(names)


def peer_and_callers(region: Region) -> tuple[str, str]:
    """Return the peer of a call of MPI (`to +1`) and who called it, which recordings have where others have a file."""
    if not (region.of_ranks or region.paradigm == "openmp") or not set(" +") & set(region.file):
        return "", ""
    *peer, callers = region.file.split("; ")
    if not peer and callers.startswith(("to ", "from ")):
        peer, callers = [callers], ""
    return " ".join(peer), callers


def numbered_texts(trace: Trace, paths: Ints) -> tuple[Ints, Sequence[str]]:
    """Return the number of the text of each call path, -1 for -1, and the texts."""
    known, which = np.unique(paths, return_inverse=True)
    texts = [call_path_text(trace, path) for path in known.tolist()]
    return np.where(paths < 0, -1, which), texts
