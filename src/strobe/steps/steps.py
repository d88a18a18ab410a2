"""Finds the steps of a trace: the iterations of the main loop of every process, on which the ranks of a job agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.steps.finding.loop_steps import classes_of, joined_steps
from strobe.steps.finding.offline_search import steps_of, steps_of_loop
from strobe.steps.finding.outer_loops import outer_loops
from strobe.steps.finding.recorded_steps import searched_stretches, with_records
from strobe.steps.finding.requested_steps import Asked, asked_outer, levels_to_ask_for, not_there
from strobe.steps.folded_time import folded_time
from strobe.steps.loop_choice.agreement import first_numbers, usual_count
from strobe.steps.loop_choice.main_loop import find_loop_of, find_loops
from strobe.steps.process_steps import ProcessSteps, Steps
from strobe.steps.thread_spans import read_streams
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import KnownResult, cached_on_trace
from strobe.workers.map_combine import MapCombine, PerProcess, over_processes


def choose_steps(trace: Trace, asked: Asked) -> None:
    """Let all questions to this trace use the steps that the user asks for. To be called before the first question."""
    KnownResult(chosen_steps, asked).give_to(trace)


@cached_on_trace
def chosen_steps(trace: Trace) -> Asked:
    """Return what the user asked for with `choose_steps`: by default nothing."""
    return Asked()


def find_steps(trace: Trace, asked: Asked | None = None) -> Steps:
    """Find the steps of every process of a trace; computed once per open trace.

    `asked`: what a step is; by default what was chosen for the trace, or what is found.

    Where some process has steps that a framework vouches for, loops found by structure alone in other processes (those
    of the loader's workers, for instance) are not steps of the program and left out.
    """
    return steps_as_asked(trace, asked or chosen_steps(trace))


def class_label(trace: Trace, process: int) -> Callable[[int], str]:
    """Return what names a class of a process's iterations, in the words of its steps.

    Classes have their number as name where iterations are not steps (a loader's worker), or are lost in a damaged file.
    """
    names = dict[int, str]()
    if trace.readers[process].classes():  # sums without iterations: no steps are needed
        for steps in find_steps(trace).processes:
            if steps.process == process and steps.recorded is not None:
                numbers, first = np.unique(steps.recorded.class_id, return_index=True)
                names |= {number: steps.classes[step] for number, step in zip(numbers.tolist(), first, strict=True)}
    return lambda number: names.get(number, f"class {number}")


def _steps_alone(part: Trace) -> list[ProcessSteps]:
    return [with_records(part, stream, process) for process, stream in read_streams(part, searched_stretches)]


def _steps_of_count(part: Trace, count: int, wanted: bool) -> list[ProcessSteps]:
    streams = read_streams(part) if wanted else ()
    found = ((stream, process, find_loop_of(stream, count)) for process, stream in streams)
    pieces = ((process, stream, [steps_of_loop(stream, loop)]) for stream, process, loop in found if loop is not None)
    return [joined_steps(process, piece, classes_of(stream, piece)) for process, stream, piece in pieces]


@dataclass(frozen=True)
class _Those:
    """Some processes."""

    processes: frozenset[int]

    def of_process(self, process: int) -> bool:
        """Whether it is one of them."""
        return process in self.processes


_ALONE = MapCombine(_steps_alone, PerProcess(), several=True)
_OF_COUNT = MapCombine(_steps_of_count, PerProcess())


@cached_on_trace
def steps_as_asked(trace: Trace, asked: Asked) -> Steps:
    """Find the steps: those that are asked for, or those of the main loop."""
    if asked:
        return _find_asked(trace, asked)
    found = over_processes(trace, _ALONE)
    having = [each for each in found if len(each)]
    if any(each.anchored for each in having):
        having = [each for each in having if each.anchored]
    if having:
        having, note = _agreed(trace, having)
        return Steps(tuple(having), f"{having[0].confidence}: {having[0].reason}{note}")
    return Steps((), f"none: {found[0].reason if found and trace.span_count else _without_threads(trace)}")


def _agreed(trace: Trace, ranks: Sequence[ProcessSteps]) -> tuple[list[ProcessSteps], str]:
    """Let the ranks of a job agree on what a step is, and number their steps alike.

    Also return a phrase for those that do not agree.

    The median of their numbers of steps is taken, of those that are sure of theirs: a rank that does little may see a
    part of the loop. A rank that is off by more than one is searched for a loop of as many iterations, unless another
    function holds its loop than those of most ranks: it is a master, perhaps, and they are its workers. Anchors are
    never overruled.
    """
    agreed = list(ranks)
    sure = [each for each in ranks if each.confidence != "low"]
    count = usual_count([len(each) for each in sure or ranks])
    if count is None or len(ranks) < 2:
        return agreed, ""
    off = [number for number, each in enumerate(ranks) if abs(len(each) - count) > 1]
    usual = Counter(_holder(each) for each in ranks).most_common(1)[0][0]
    searched = [
        number
        for number in off
        if not ranks[number].anchored and ranks[number].recorded is None and _holder(ranks[number]) == usual
    ]
    unanchored = {ranks[number].process: number for number in searched}
    those = _Those(frozenset(unanchored))
    for each in over_processes(trace, _OF_COUNT, count=count, wanted=those) if unanchored else ():
        agreed[unanchored[each.process]] = each
        off.remove(unanchored[each.process])
    numbers = first_numbers([each.start_ns for each in agreed])
    agreed = [replace(each, first_number=number) for each, number in zip(agreed, numbers, strict=True)]
    odd = ", ".join(f"{len(agreed[number])} in process {agreed[number].process}" for number in off)
    return agreed, f"; most processes have {count} steps, but {odd}" if odd else ""


def _holder(steps: ProcessSteps) -> str:
    return max(steps.loops, key=lambda loop: loop.step_count).holder if steps.loops else ""


def _find_asked(trace: Trace, asked: Asked) -> Steps:
    recorded = {each.process: each for each in steps_as_asked(trace, Asked()).processes if each.recorded is not None}
    streams = list(read_streams(trace))
    found, levels = [], dict[str, None]()
    for process, stream in streams:
        outer = outer_loops(stream, recorded[process]) if process in recorded else []
        levels |= dict.fromkeys(each.marker for each in outer)
        if process in recorded and (asked.goes_out or asked.level in levels):
            found.append(asked_outer(recorded[process], outer, asked))
        else:
            found.append(steps_of(stream, process, asked=asked, folded=folded_time(trace, process)))
    having = tuple(each for each in found if each is not None and len(each))
    if not having:
        levels |= dict.fromkeys(name for _, stream in streams for name in levels_to_ask_for(stream, find_loops(stream)))
        raise not_there(asked, [region.name for region in region_rows(trace)], list(levels))
    return Steps(having, f"{having[0].confidence}: {having[0].reason}")


def _without_threads(trace: Trace) -> str:
    if any(row.kind == "stream" and row.span_count for row in location_rows(trace)):
        return "no step can be found: only GPUs were recorded, not the program that used them"
    return (
        "no step can be found: a profile has sums, not when each call was"
        if trace.folded_count
        else "no call was recorded"
    )
