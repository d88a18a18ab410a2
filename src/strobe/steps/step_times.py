"""When the steps of each process began and ended, and the step that a moment lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from strobe.steps.process_steps import ProcessSteps, Steps
from strobe.steps.steps import chosen_steps, find_steps, steps_as_asked
from strobe.steps.thread_spans import Ints
from strobe.tables.column_arrays import Bools, interval_at, rows_by
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import KnownResult, cached_on_trace

Times = tuple[Ints, Ints, Ints]  # number, begin and end of steps, in order; ns since the trace's zero


def step_times(trace: Trace, process: int) -> Times:
    """Return number, begin and end of the steps that a process lives in, in order; ns since the trace's zero."""
    by_process = _times_by_process(trace)
    if not by_process:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing, nothing
    # A process without steps of its own (a worker of the loader) lives in those of the first that has some.
    return by_process.get(process, by_process[min(by_process)])


def step_at(trace: Trace, location: int, time_ns: Ints) -> Ints:
    """Return, for moments in a location, the step that its process was in; -1 outside of every step."""
    return step_of_process(trace, trace.home(location).process, time_ns)


def step_of_process(trace: Trace, process: int, time_ns: Ints) -> Ints:
    """Return the step that a process was in at some moments; -1 outside of every step."""
    step, begin_ns, end_ns = step_times(trace, process)
    return np.append(step, -1)[interval_at(begin_ns, end_ns, time_ns)]


def known_steps(trace: Trace) -> Callable[[int], list[KnownResult]]:
    """Return what lets a process alone have the steps that it has among the others.

    A process without steps of its own has no step there, but knows the times of those that it lives in.
    """
    steps, asked = find_steps(trace), chosen_steps(trace)
    own = {each.process: each for each in steps.processes}

    def of_process(process: int) -> list[KnownResult]:
        here = (replace(own[process], process=0),) if process in own else ()
        times = {0: step_times(trace, process)} if own else {}
        return [
            KnownResult(chosen_steps, asked),
            KnownResult(steps_as_asked, Steps(here, steps.reason), (asked,)),
            KnownResult(_times_by_process, times),
        ]

    return of_process


@cached_on_trace
def _times_by_process(trace: Trace) -> dict[int, Times]:
    return {each.process: _times(each) for each in find_steps(trace).processes}


def _times(steps: ProcessSteps) -> Times:
    order = np.argsort(steps.start_ns, kind="stable")
    number = np.arange(len(steps), dtype=np.int64) + steps.first_number
    return number[order], steps.start_ns[order], steps.end_ns[order]


def in_steady_steps(steps: Iterable[ProcessSteps], process: Ints, time_ns: Ints) -> Bools:
    """Return which moments lie in a steady step of their process, each edge in the step that begins there."""
    of_process, out = {each.process: each for each in steps}, np.zeros(len(process), dtype=bool)
    for number, rows in rows_by(process):
        if number in of_process:
            own = of_process[number]
            step = interval_at(own.start_ns, own.end_ns, time_ns[rows])
            out[rows] = (step >= 0) & own.steady[step]
    return out
