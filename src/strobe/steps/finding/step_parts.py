"""Split: how much of every step went into which part (forward, backward ...), and in each into which kind of work."""

from __future__ import annotations

import numpy as np

from strobe.model.kinds import HOST_KINDS, PARTS
from strobe.native import core
from strobe.steps.cells import Cells
from strobe.steps.finding.cuts import Cuts
from strobe.steps.thread_spans import Ints, Stream
from strobe.steps.training_activities import Work


def split(stream: Stream, work: Work, cuts: Cuts, rare_ns: Ints, *, cut_anywhere: bool = False) -> Cells:
    """Return the time of every step by part and kind.

    rare_ns: calls of functions that only some steps call, as rows (start, end). cut_anywhere: the steps are those of a
    loop without an anchor, which may begin in the middle of a forward pass. The rules are those that the recorder goes
    by while the program runs: native/structure/phases.cpp.
    """
    acts = work.activities
    rows = np.stack([acts.start_ns, acts.end_ns, acts.part, acts.change, acts.in_model], axis=1)
    steps = np.stack([cuts.start_ns, cuts.fed_ns, cuts.end_ns], axis=1)
    validations_ns = np.stack([cuts.validation_ns, cuts.end_ns], axis=1)[cuts.validation_ns < cuts.end_ns]
    tables = work.modules_ns, work.others_ns, rare_ns, work.closures_ns, validations_ns
    modules, others, rare, closures, validations = (np.ascontiguousarray(table).ravel() for table in tables)
    cells = core.cells_of_steps(
        *(rows.ravel(), modules, others, rare, closures, validations, steps.ravel()),
        cut_anywhere=cut_anywhere,
        starts=stream.start_ns,
        ends=stream.end_ns,
        kinds=stream.kinds[stream.region],
    )
    return Cells.of_table(cells.reshape(-1, len(PARTS), len(HOST_KINDS)))
