"""Which part of a run a question is about: `auto`, `all`, `steady`, `14`, `10..20`, and a class of steps.

Steps that were folded can be answered for only as whole classes: their statistics cannot be divided by step. A
selection takes the statistics of a class if all folded steps of the class are wanted. Wanted steps of which only a
record remains are left out, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from strobe.errors import UsageError
from strobe.model.units import format_count, format_number_of
from strobe.steps.process_steps import ProcessSteps, unknown_class
from strobe.steps.step_times import step_of_process, step_times
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints
from strobe.tables.column_arrays import interval_at
from strobe.trace.definition_rows import process_rows, processes_of_locations
from strobe.trace.folded import ALL, NONE, Iterations
from strobe.trace.trace import Trace

_STEPS = re.compile(r"(\d+)?(\.\.)?(\d+)?")
# A process without steps of its own folds by its own iterations, which never end with the main process's steps: its
# statistics are taken if this share of them lies in the wanted steps.
_MOSTLY = 0.9

Stretches = tuple[Ints, Ints]  # begins and ends, disjoint and in order


@dataclass(frozen=True)
class Windows:
    """Stretches of time by process. process_of: by location. Processes without an entry have those of `stand_in`."""

    process_of: Sequence[int]
    windows: Mapping[int, Stretches]
    stand_in: int

    def of_location(self, location: int) -> Stretches:
        """Return begins and ends of the stretches of a location."""
        return self._of(self.process_of[location] if self.process_of else 0)

    def of_process(self, process: int) -> Windows:
        """Return the same for one process as a trace of its own."""
        return Windows((), {0: self._of(process)}, 0)

    def alone(self, process: int) -> Windows:
        """Return the same without the spans of all other processes."""
        nothing = np.zeros(0, dtype=np.int64)
        return Windows(self.process_of, {process: self._of(process), -1: (nothing, nothing)}, -1)

    def _of(self, process: int) -> Stretches:
        return self.windows.get(process, self.windows[self.stand_in])


def _windows(begin: Ints, end: Ints, wanted: Bools) -> tuple[Ints, Ints]:
    """Return the time of the wanted steps, where those that follow each other are one stretch.

    Steps may overlap: a moment belongs to the one that began last.
    """
    end = np.minimum(end, np.append(begin[1:], np.iinfo(np.int64).max))[wanted]
    begin = begin[wanted]
    apart = begin[1:] != end[:-1]
    return begin[np.append(True, apart)[: len(begin)]], end[np.append(apart, True)[: len(end)]]


@dataclass(frozen=True)
class Selection:
    """The part of a run a question is about, in words (`about`), and how many steps these are: None for the whole run.

    windows: stretches of time whose spans (by their start) belong to it; None for all. classes: by process, the classes
    whose statistics belong to it; None for all of them, also of what ran outside of steps. short_classes: those of
    which what was left out as too short belongs to it. note: what cannot be answered. source: what tables of it are
    computed from.
    """

    about: str
    step_count: int | None
    windows: Windows | None
    classes: Mapping[int, frozenset[int]] | None = field(default_factory=dict)
    note: str = ""
    source: str = "spans"
    short_classes: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def of_process(self, process: int) -> Selection:
        """Return the same for one process as a trace of its own."""
        own = None if self.classes is None else {0: self.classes.get(process, frozenset())}
        short = {0: self.short_classes.get(process, frozenset())}
        windows = None if self.windows is None else self.windows.of_process(process)
        return replace(self, windows=windows, classes=own, short_classes=short)

    def stretches(self, location: int) -> Stretches | None:
        """Return begins and ends of the stretches of a location that belong to it; None for all of its time."""
        return None if self.windows is None else self.windows.of_location(location)

    def keep(self, location: int, start_ns: Ints) -> Bools | None:
        """Return which spans of a location belong to it, by their starts; None for all."""
        stretches = self.stretches(location)
        return None if stretches is None else interval_at(*stretches, start_ns) >= 0


def select(trace: Trace, step: str = "auto", step_class: str | None = None) -> Selection:
    """Understand `step` and `step_class` (a class of the steps table).

    `auto` is the steady steps, or the whole run where no steps were found; `all` is the whole run, in steps or not;
    `A..B` includes both ends.
    """
    chosen = chosen_numbers(trace, step, step_class)
    if chosen is None:
        return _whole_run(trace)
    steady = step == "steady" or (step == "auto" and step_class is None)
    return select_steps(trace, chosen, " ".join(filter(None, ["steady" if steady else "", step_class])))


def chosen_numbers(trace: Trace, step: str, step_class: str | None = None) -> dict[int, Ints] | None:
    """Return the numbers of the steps that `select` understands, by process; None for the whole run."""
    low, high = (0, 2**62) if step in ("auto", "all", "steady") else _range_of(step)
    if step == "all" and step_class is None:
        return None
    processes = _without_workers(trace)
    if not processes and step == "auto" and step_class is None:
        return None
    if not processes:
        raise UsageError("no steps were found in this trace, so none can be selected", do="Ask without step and class.")
    if step_class is not None and all(step_class not in each.classes for each in processes):
        raise unknown_class(step_class, processes)
    if step == "auto":
        step = "all" if step_class else "steady"
    chosen = {}
    for each in processes:
        number = np.arange(len(each)) + each.first_number
        wanted = (number >= low) & (number <= high)
        if step == "steady":
            wanted &= each.steady
        if step_class is not None:
            wanted &= each.class_names == step_class
        chosen[each.process] = number[wanted]
    if not any(map(len, chosen.values())) and (low, high) != (0, 2**62):
        raise _no_step(step, step_class, processes)
    return chosen


def _without_workers(trace: Trace) -> list[ProcessSteps]:
    """Return the steps of all processes but those without a rank that a process with steps has started.

    Ranks run their steps together; a worker lives in the steps of the process that hands out its work.
    """
    rows = {row.process: row for row in process_rows(trace)}
    of_pid = {(row.host, row.pid): row for row in rows.values()}
    found = {each.process: each for each in sorted(find_steps(trace).processes, key=lambda steps: steps.process)}

    def is_worker(process: int) -> bool:
        row = rows[process]
        parent = of_pid.get((row.host, row.parent_pid))
        if row.rank is not None or parent is None or parent.started_ns >= row.started_ns:
            return False
        return parent.process in found or is_worker(parent.process)

    return [each for process, each in found.items() if not is_worker(process)]


def _no_step(step: str, step_class: str | None, processes: Sequence[ProcessSteps]) -> UsageError:
    first = min(each.first_number for each in processes)
    last = max(each.first_number + len(each) for each in processes) - 1
    if step_class is not None:
        return UsageError(f"no step of class '{step_class}' is among the steps {step}", do="strobe steps lists them.")
    return UsageError(
        f"no step {step} is in this trace: its steps are {first} to {last}", do="strobe steps lists them."
    )


def select_steps(trace: Trace, chosen: Mapping[int, Ints], kind: str = "") -> Selection:
    """Select steps by process and number. `kind` is a word for what they have in common."""
    process_of = processes_of_locations(trace)
    # A process without steps of its own (a worker of the loader) lives in those of the first that has some.
    stand_in = min(chosen)
    answered, classes, notes = dict(chosen), dict[int, frozenset[int]](), list[str]()
    short_classes, short = dict[int, frozenset[int]](), 0
    for process, sums in trace.folded.items():
        wanted = chosen.get(process, chosen[stand_in])
        iterations = trace.iterations(process)
        # The step in which each begins, -1 outside of every step.
        step = step_of_process(trace, process, iterations.start_ns)
        inside = np.isin(step, wanted)
        taken, near = _classes(iterations, inside, exact=process in chosen)
        classes[process] = frozenset(taken)
        # Classes of which all iterations that are in detail are wanted.
        kept = iterations.detail != NONE
        whole = np.setdiff1d(iterations.class_id[kept], iterations.class_id[kept & ~inside]).tolist()
        short_classes[process] = frozenset(whole)
        short += int(sums.count[sums.is_short & ~np.isin(sums.class_id, whole)].sum())
        if process in chosen:
            lost = step[(iterations.detail != ALL) & ~np.isin(iterations.class_id, taken)]
            answered[process] = wanted[~np.isin(wanted, lost)]
            continue
        if near:
            notes.append(f"the statistics of process {process} hold {near} of its iterations outside of these steps")
        left = int((inside & (iterations.detail != ALL) & ~np.isin(iterations.class_id, taken)).sum())
        if left:
            notes.append(f"{left} iterations of process {process} are in statistics of other steps, too, and left out")

    windows = {}
    for process, numbers in answered.items():
        step, begin, end = step_times(trace, process)
        windows[process] = _windows(begin, end, np.isin(step, numbers))
    # Ranks run the same steps: per-step figures are per step of the job, not per step and process.
    most = max(chosen, key=lambda process: len(chosen[process]))
    iterations = trace.iterations(most)
    by_statistics = np.isin(iterations.class_id, list(classes.get(most, ())))
    folded = int(((iterations.detail != ALL) & by_statistics).sum())
    about = format_number_of(len(chosen[most]), f"{kind} step".strip())
    if folded:
        kept = len(answered[most]) - folded
        about += f", from spans of {format_count(kept)} and statistics of {format_count(folded)}"
    notes = [*_lost(chosen, answered), *notes]
    if short:
        notes.append(f"{format_count(short)} calls below --min-duration are counted in the whole run only (--step all)")
    source = "spans and statistics" if any(classes.values()) or any(short_classes.values()) else "spans"
    within = Windows(process_of, windows, stand_in)
    return Selection(about, len(answered[most]), within, classes, "; ".join(notes), source, short_classes)


def _lost(chosen: Mapping[int, Ints], answered: Mapping[int, Ints]) -> Iterator[str]:
    """Yield a sentence about what is missing, of the process that lacks most."""
    worst = max(chosen, key=lambda process: len(chosen[process]) - len(answered[process]))
    count, total = len(answered[worst]), len(chosen[worst])
    of_process = f" of process {worst}" if len(chosen) > 1 else ""
    if 0 < count < total:
        yield f"computed from {count} of {total} steps{of_process}; the others are statistics only"
    elif count < total:
        yield f"no such step{of_process} was kept in detail; what remains: strobe steps, and sums of whole classes"


def _whole_run(trace: Trace) -> Selection:
    folded = max((int((trace.iterations(process).detail != ALL).sum()) for process in trace.folded), default=0)
    about = "the whole run"
    if folded:
        about += f", from spans and the statistics of {format_number_of(folded, 'step')}"
    return Selection(about, None, None, None, source="spans and statistics" if trace.folded else "spans")


def _classes(iterations: Iterations, wanted: Bools, *, exact: bool) -> tuple[list[int], int]:
    """Return the classes whose folded iterations are wanted, all or (not `exact`) nearly all; and how many are not."""
    taken, near = [], 0
    folded = iterations.detail != ALL
    for each in np.unique(iterations.class_id[folded]).tolist():
        inside = wanted[folded & (iterations.class_id == each)]
        if inside.all() or (not exact and inside.mean() >= _MOSTLY):
            taken.append(each)
            near += int((~inside).sum())
    return taken, near


def _range_of(step: str) -> tuple[int, int]:
    """Return the first and the last step that `step` names."""
    match = _STEPS.fullmatch(step)
    if not match or not (match[1] or match[3]):
        raise UsageError(f"'{step}' names no steps", do="Examples: all, steady, 14, 10..20, 100..")
    low = int(match[1] or 0)
    return low, int(match[3]) if match[3] else (2**62 if match[2] else low)
