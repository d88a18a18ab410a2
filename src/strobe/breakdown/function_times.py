"""Time of the program's own functions in the usual step, and how much of it a loop can do without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.host_time import MOSTLY
from strobe.breakdown.library_calls import LibraryCall, library_calls
from strobe.breakdown.usual_calls import UsualCalls, usual_calls
from strobe.gpu.devices import devices
from strobe.model.kinds import HOST_KINDS
from strobe.steps.thread_spans import are_backward, innermost, kinds_of
from strobe.sums.path_statistics import is_own_function
from strobe.sums.samples import frame_of
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.trace.definition_rows import Region, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

LEAST_SHARE = 0.10  # of a step: less is not worth a finding
# Operators that one function calls so often in a step, each so short, are better one operator on all of the data.
_MANY, _SHORT_NS = 100, 20_000
# Of the time of such calls and of the Python code around them, at least this part is saved.
_LEAST = 0.6
_FEWEST = 10  # samples: of fewer no gain follows
_OPERATORS = HOST_KINDS.index("operators")


@dataclass(frozen=True)
class Operators:
    """Operators that functions of the program call outside of modules, in all usual steps together.

    time_ns: by region of the function. called: which call paths of the main thread they are; maker: by call path, the
    region of the function.
    """

    time_ns: Floats
    called: Bools
    maker: Ints

    def most(self, calls: UsualCalls, region: int) -> tuple[int, float, float]:
        """Return the operator with most of the time, its calls a step, and the mean time of all operators' calls."""
        own, mine = calls.main, self.called & (self.maker == region)
        operator = int(np.bincount(own.region[mine], weights=own.own_ns[mine]).argmax())
        often = own.calls[mine & (own.region == operator)].sum() / calls.steps
        return operator, float(often), float(own.own_ns[mine].sum() / max(1, own.calls[mine].sum()))


@dataclass(frozen=True)
class Avoidable:
    """Time of a function that a loop can do without, ns a step, from low to high.

    share: of the step, that of the function and its operators, 0 to 1. call: in which the time is, None: operators.
    """

    low_ns: float
    high_ns: float
    share: float
    call: LibraryCall | None


@cached_on_trace
def operators_of_functions(trace: Trace) -> Operators | None:
    """Return the operators that functions of the program call outside of modules; None on a GPU or without steps.

    Those in a module's `forward`, in the backward pass and in the update are the model's, and so is a function that
    holds any of these.
    """
    calls = usual_calls(trace)
    if calls is None or devices(trace):
        return None
    own, regions = calls.main, region_rows(trace)
    names, paradigms, roles = (
        list(each) for each in zip(*((r.name, r.paradigm, r.role) for r in regions), strict=True)
    )
    model = are_backward(names) | np.array(list(map(_is_of_model, names)))
    of_model = innermost(own.parent, model[own.region]) >= 0
    is_function = np.array([is_own_function(each) and each.name[-1] != ">" for each in regions])
    maker = innermost(own.parent, is_function[own.region])
    called = (kinds_of(names, paradigms, roles)[own.region] == _OPERATORS) & ~of_model & (maker >= 0)
    # The function that holds the loop was not called in a step; one that holds the model is not outside of it.
    holds = np.zeros(len(regions), dtype=bool)
    above = own.parent[of_model]
    while (above := above[above >= 0]).size:
        holds[own.region[above]] = True
        above = np.unique(own.parent[above])
    holds[np.bincount(own.region, weights=own.calls, minlength=len(regions)) == 0] = True
    of_maker = np.where(maker >= 0, own.region[maker], -1)
    time_ns = np.bincount(of_maker[called], weights=own.own_ns[called], minlength=len(regions))
    return Operators(np.where(holds, 0.0, time_ns), called, of_maker)


@cached_on_trace
def avoidable_times(trace: Trace) -> dict[int, Avoidable]:
    """Return, by region, the functions of the program of whose own time in the usual step a part can be avoided.

    Own time is that of the function on the main thread, and of the operators that it calls. It can be avoided where
    samples find at least half of it in a call of a library that loops can mostly do without (see library_calls; less
    the error of so many samples), or where the function calls one operator at least 100 times a step, and its
    operators take 20 us or less on average.
    """
    calls = usual_calls(trace)
    if calls is None:
        return {}
    regions, operators = region_rows(trace), operators_of_functions(trace)
    self_ns = np.bincount(calls.main.region, weights=calls.main.own_ns, minlength=len(regions))
    own_ns = self_ns + (operators.time_ns if operators is not None else 0)
    found = {}
    of_function = library_calls(trace, calls.usual.steps.process)
    for region in np.flatnonzero(own_ns).tolist():
        share = float(own_ns[region]) / max(1, calls.duration_ns)
        per_step = share * calls.usual.median_ns
        call = call_of(of_function, regions[region])
        if call is not None and call.samples >= _FEWEST and call.sparable is not None:
            high = per_step * call.share
            found[region] = Avoidable(high * call.sparable.least * (1 - call.samples**-0.5), high, share, call)
        elif operators is not None and operators.time_ns[region] >= LEAST_SHARE * calls.duration_ns:
            _, count, mean_ns = operators.most(calls, region)
            if count >= _MANY and mean_ns <= _SHORT_NS:
                found[region] = Avoidable(per_step * _LEAST, per_step, share, None)
    return found


def call_of(calls: Mapping[str, LibraryCall], region: Region) -> LibraryCall | None:
    """Return what takes at least half of the time of a function, or of that with a loop, None if nothing does."""
    found = next((call for frame, call in calls.items() if is_of(frame, region)), None)
    return found if found is not None and found.share >= MOSTLY else None


def is_of(frame: str, region: Region) -> bool:
    """Whether a line of a call stack is of a function, or of that in which a loop lies."""
    name, file, line = frame_of(frame)
    if region.role == "loop":
        return region.name.removeprefix("loop in ").rpartition(" at ")[0] == name and file.endswith(region.file)
    return line == region.line and name == region.name and file.endswith(region.file)


def _is_of_model(name: str) -> bool:
    return name.startswith(("nn.Module: ", "Optimizer.", "_engine_run_backward")) or name.split(".")[-1] == "forward"
