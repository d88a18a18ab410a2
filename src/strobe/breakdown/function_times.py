"""Time of the program's own functions in the usual step, and how much of it a loop can do without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.backward_passes import backward_passes
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
# In a module's `forward`, so often in a call of it: a loop over time, heads or samples.
_OFTEN = 20
# Of the time of such calls and of the Python code around them, at least this part is saved.
_LEAST = 0.7
_FEWEST = 10  # samples: of fewer no gain follows
_NOT_FORWARD = ("Optimizer.", "_engine_run_backward")
_OPERATORS = HOST_KINDS.index("operators")


@dataclass(frozen=True)
class Operators:
    """Operators that functions of the program call, in all usual steps together.

    time_ns: by region of the function. ns: by call path, what counts of its time, 0 if it is none of them; maker: by
    call path, the region of the function.
    """

    time_ns: Floats
    ns: Floats
    maker: Ints

    def most(self, calls: UsualCalls, region: int) -> tuple[int, float, float]:
        """Return the operator with most of the time, its calls a step, and the mean time of all operators' calls."""
        own, mine = calls.main, (self.ns > 0) & (self.maker == region)
        operator = int(np.bincount(own.region[mine], weights=self.ns[mine]).argmax())
        often = own.calls[mine & (own.region == operator)].sum() / calls.steps
        return operator, float(often), float(self.ns[mine].sum() / max(1, own.calls[mine].sum()))


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
    paths = _paths(trace)
    if paths is None:
        return None
    own, count = paths.calls.main, len(region_rows(trace))
    maker = innermost(own.parent, paths.is_function)
    # The function that holds the loop was not called in a step; one that holds the model is not outside of it.
    holds = np.zeros(count, dtype=bool)
    above = own.parent[paths.of_model]
    while (above := above[above >= 0]).size:
        holds[own.region[above]] = True
        above = np.unique(own.parent[above])
    holds[np.bincount(own.region, weights=own.calls, minlength=count) == 0] = True
    return _operators(own.own_ns * (paths.is_operator & ~paths.of_model), own.region, maker, holds)


@cached_on_trace
def operators_of_models(trace: Trace) -> Operators | None:
    """Return the operators that the program's own code calls itself in modules; None on a GPU or without steps.

    Those that other operators or modules call for it are theirs.
    """
    paths = _paths(trace)
    if paths is None:
        return None
    own = paths.calls.main
    maker = innermost(own.parent, paths.is_function | paths.is_model)
    by_itself = (maker >= 0) & paths.is_function[maker]
    by_itself &= paths.is_operator & ~np.append(paths.is_operator, False)[own.parent]
    counts = by_itself & paths.of_model & ~paths.of_backward
    return _operators(own.total_ns * counts, own.region, maker, np.zeros(len(region_rows(trace)), dtype=bool))


def _operators(ns: Floats | Ints, region: Ints, maker: Ints, without: Bools) -> Operators:
    counted: Floats = np.where(maker >= 0, ns, 0).astype(np.float64)
    of_maker = np.where(maker >= 0, region[maker], -1)
    counts = counted > 0
    time_ns = np.bincount(of_maker[counts], weights=counted[counts], minlength=len(without))
    return Operators(np.where(without, 0.0, time_ns), counted, of_maker)


@dataclass(frozen=True)
class _Paths:
    """The call paths of the main thread in usual steps, and what they are, or are in: `of_...`."""

    calls: UsualCalls
    is_function: Bools
    is_operator: Bools
    is_model: Bools
    of_model: Bools
    of_backward: Bools


@cached_on_trace
def _paths(trace: Trace) -> _Paths | None:
    calls = usual_calls(trace)
    if calls is None or devices(trace):
        return None
    own, regions = calls.main, region_rows(trace)
    names, paradigms, roles = (
        list(each) for each in zip(*((r.name, r.paradigm, r.role) for r in regions), strict=True)
    )
    model = are_backward(names) | np.array(list(map(_is_of_model, names)))
    backward = are_backward(names) | np.array([name.startswith(_NOT_FORWARD) for name in names])
    function = np.array([is_own_function(each) and each.name[-1] != ">" for each in regions])
    return _Paths(
        calls,
        function[own.region],
        (kinds_of(names, paradigms, roles) == _OPERATORS)[own.region],
        model[own.region],
        innermost(own.parent, model[own.region]) >= 0,
        innermost(own.parent, backward[own.region]) >= 0,
    )


def longest_function(trace: Trace) -> tuple[Region, float] | None:
    """Return the program's function, or loop in one, that takes most of the usual step, and its part of it (0 to 1).

    What its operators take counts as its own, but for those of a model.
    """
    calls, operators = usual_calls(trace), operators_of_functions(trace)
    if calls is None:
        return None
    regions = region_rows(trace)
    own_ns = np.bincount(calls.main.region, weights=calls.main.own_ns, minlength=len(regions))
    own_ns[[not is_own_function(each) and each.role != "loop" for each in regions]] = 0
    all_ns = own_ns + (operators.time_ns if operators is not None else 0.0)
    longest = int(all_ns.argmax())
    return (regions[longest], float(all_ns[longest] / max(1, calls.duration_ns))) if len(regions) else None


@cached_on_trace
def avoidable_times(trace: Trace) -> dict[int, Avoidable]:
    """Return, by region, the functions of the program of whose own time in the usual step a part can be avoided.

    Own time is that of the function on the main thread, and of the operators that it calls. It can be avoided where
    samples find at least half of it in a call of a library that loops can mostly do without (see library_calls; less
    the error of so many samples; at most all of it: what prepares the call goes with it), or where the function calls
    one operator at least 100 times a step, and its operators take 20 us or less on average. In a `forward` it must do
    so 20 times a call: layers are no loop; what the backward pass takes for it is known from its part of the forward
    pass only, and half of it counts.
    """
    calls = usual_calls(trace)
    if calls is None:
        return {}
    regions, operators, inner = region_rows(trace), operators_of_functions(trace), operators_of_models(trace)
    self_ns = np.bincount(calls.main.region, weights=calls.main.own_ns, minlength=len(regions))
    own_ns = self_ns + (operators.time_ns if operators is not None else 0)
    found = {}
    of_function = library_calls(trace, calls.usual.steps.process)
    for region in np.flatnonzero(own_ns).tolist():
        share = float(own_ns[region]) / max(1, calls.duration_ns)
        per_step = share * calls.usual.median_ns
        call = call_of(of_function, regions[region])
        if call is not None and call.samples >= _FEWEST and call.sparable is not None:
            low = per_step * call.share * call.sparable.least * (1 - call.samples**-0.5)
            found[region] = Avoidable(low, per_step, share, call)
        elif operators is not None and _are_many(operators, calls, region):
            found[region] = Avoidable(per_step * _LEAST, per_step, share, None)
    if inner is not None and inner.time_ns.any():
        backward = backward_passes(trace)
        again = backward.time_ns * calls.steps / max(1.0, _forward_ns(trace)) if backward is not None else 0.0
        for region in np.flatnonzero(inner.time_ns).tolist():
            if region not in found and _are_many(inner, calls, region, _is_of_model(regions[region].name)):
                share = float(inner.time_ns[region] + self_ns[region]) / max(1, calls.duration_ns)
                per_step = share * calls.usual.median_ns
                low, high = (per_step * (1 + part * again) for part in (0.5, 1.0))
                found[region] = Avoidable(low * _LEAST, min(high, calls.usual.median_ns), share, None)
    return found


def _are_many(operators: Operators, calls: UsualCalls, region: int, of_each_call: bool = False) -> bool:
    if operators.time_ns[region] < LEAST_SHARE * calls.duration_ns:
        return False
    _, often, mean_ns = operators.most(calls, region)
    called = float(calls.main.calls[calls.main.region == region].sum()) / calls.steps
    return often >= _MANY and mean_ns <= _SHORT_NS and (not of_each_call or often >= _OFTEN * called)


def _forward_ns(trace: Trace) -> float:
    """Return the time in modules in all usual steps, without the backward pass and the update."""
    paths = _paths(trace)
    assert paths is not None
    return float(paths.calls.main.own_ns[paths.of_model & ~paths.of_backward].sum())


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
    return name.startswith(("nn.Module: ", *_NOT_FORWARD)) or name.split(".")[-1] == "forward"
