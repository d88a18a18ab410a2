"""Call paths as texts: a call first, then who called it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import path_tree, region_rows
from strobe.trace.trace import Trace


def call_path_text(trace: Trace, path: int) -> str:
    """Return a call path as `MPI_Send to +1 < exchange (solver.c:41) < main (solver.c:90)`."""
    parents, of_path = path_tree(trace)
    regions, names = region_rows(trace), []
    while path >= 0:
        region = regions[of_path[path]]
        names.append(region.name)
        if region.paradigm in ("mpi", "openmp") and set(" +") & set(region.file):
            # Recordings have the peer and the callers of a call where others have a file.
            *peer, callers = region.file.split("; ")
            if not peer and callers.startswith(("to ", "from ")):
                peer, callers = [callers], ""
            names[-1] = " ".join((region.name, *peer))
            names += filter(None, [callers])
        path = int(parents[path])
    return " < ".join(names)


def numbered_texts(trace: Trace, paths: Ints) -> tuple[Ints, Sequence[str]]:
    """Return the number of the text of each call path, -1 for -1, and the texts."""
    known, which = np.unique(paths, return_inverse=True)
    texts = [call_path_text(trace, path) for path in known.tolist()]
    return np.where(paths < 0, -1, which), texts
