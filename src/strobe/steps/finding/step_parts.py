"""Split: how much of every step went into waiting for data, forward, backward, the optimizer, and the rest."""

from __future__ import annotations

import numpy as np

from strobe.native import core
from strobe.steps.finding.cuts import Cuts
from strobe.steps.thread_spans import Ints
from strobe.steps.training_activities import PARTS, Work


def split(work: Work, cuts: Cuts, rare_ns: Ints, *, cut_anywhere: bool = False) -> Ints:
    """Return the parts of every step, in nanoseconds: an array (steps, PARTS) whose rows sum to the durations exactly.

    rare_ns: calls of functions that only some steps call, as rows (start, end). cut_anywhere: the steps are those of a
    loop without an anchor, which may begin in the middle of a forward pass. The rules are those that the recorder goes
    by while the program runs: native/structure/phases.cpp.
    """
    acts = work.activities
    rows = np.stack([acts.start_ns, acts.end_ns, acts.part, acts.change], axis=1)
    steps = np.stack([cuts.start_ns, cuts.fed_ns, cuts.end_ns], axis=1)
    validations_ns = np.stack([cuts.validation_ns, cuts.end_ns], axis=1)[cuts.validation_ns < cuts.end_ns]
    tables = work.modules_ns, work.others_ns, rare_ns, work.closures_ns, validations_ns
    modules, others, rare, closures, validations = (np.ascontiguousarray(table).ravel() for table in tables)
    return core.parts_of_steps(
        rows.ravel(), modules, others, rare, closures, validations, steps.ravel(), cut_anywhere=cut_anywhere
    ).reshape(-1, len(PARTS))
