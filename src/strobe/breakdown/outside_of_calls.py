"""How much of the steps main threads are outside of all recorded calls: profiles have no row for that time."""

from __future__ import annotations

import numpy as np

from strobe.model.kinds import HOST_KINDS
from strobe.model.units import format_share
from strobe.steps.selection import chosen_numbers
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import kinds_of
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

_HOST = HOST_KINDS.index("host")
_MUCH = 0.05  # of the steps: less changes no share that anybody sees


def outside_of_calls(trace: Trace, step: str = "auto", step_class: str | None = None) -> str:
    """Return a sentence about the time of steps outside of all recorded calls, if it is much and known; else "".

    It is known where no function was recorded (programs of MPI): else cells of the kind `host` are of functions, too.
    step, step_class: as `select` takes them.
    """
    chosen = chosen_numbers(trace, step, step_class)
    # The recorder's own regions are in every trace.
    facts = [(each.name, each.paradigm, each.role) for each in region_rows(trace) if each.paradigm != "strobe"]
    if not chosen or not facts or (kinds_of(*map(list, zip(*facts, strict=True))) == _HOST).any():
        return ""
    outside_ns, all_ns = 0, 0
    for each in find_steps(trace).processes:
        if each.cells.columns is None:
            return ""
        kinds_ns = each.cells.kinds_ns()[np.asarray(chosen[each.process]) - each.first_number]
        outside_ns, all_ns = outside_ns + int(kinds_ns[:, _HOST].sum()), all_ns + int(kinds_ns.sum())
    if outside_ns < _MUCH * all_ns or not all_ns:
        return ""
    share = format_share(outside_ns / all_ns)
    return f"shares of functions are of the time in recorded calls: main threads spend {share} of their steps outside"
