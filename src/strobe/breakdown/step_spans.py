"""Steps from mark to mark, each until the work that it launched on the GPU is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.lanes import lanes
from strobe.gpu.launches import launches
from strobe.gpu.work import KINDS, MASKS
from strobe.model.kinds import HOST_KINDS
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints, main_location
from strobe.steps.training_activities import PROFILER_STEP
from strobe.steps.usual_steps import KEPT_AS_SLOW
from strobe.tables.column_arrays import Floats, place_of
from strobe.trace.definition_rows import ranks_of, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_MARKED = "marks of PyTorch's profiler"
_FOUND = "steps as they were found"
_DEVICE = ", each until the work that it launched is done"
# The last step did not get all its kernels into the profile if it has less than this part of those before it.
_WHOLE = 0.8
# By one column, a kept step counts e^5 times as much as another one at most. Columns that differ less are left alone.
_MOST_TILT, _ALIKE = 5, 1e-4
_ROUNDS, _HALVINGS = 8, 25


@dataclass(frozen=True)
class StepSpans:
    """The steps of a process whose spans are all in the trace; columns of equal length. Nanoseconds.

    They follow each other and never overlap. host_start_ns, host_end_ns: the same on the host alone, where launching
    runs ahead. weight: how many steps of the run each stands for in a mean: itself, and those of its class that are
    statistics only; 0 if it is not complete, or its work on the GPU was not recorded to its end. counts: by class, how
    many steps of the run that are. bounds: a phrase for what bounds a step.
    """

    process: int
    rank: int | None
    number: Ints
    start_ns: Ints
    end_ns: Ints
    host_start_ns: Ints
    host_end_ns: Ints
    classes: tuple[str, ...]
    weight: Floats
    counts: Mapping[str, int]
    bounds: str

    def __len__(self) -> int:
        return len(self.number)

    @property
    def counted(self) -> Bools:
        """Which of them enter a mean."""
        return self.weight > 0

    def weights_at(self, time_ns: Ints, beside: float = 0.0) -> Floats:
        """Return the weight of the step that each time lies in; `beside` where that is none that counts."""
        at = np.searchsorted(self.start_ns, time_ns, side="left") - 1
        inside = (at >= 0) & (time_ns <= self.end_ns[at]) & self.counted[at]
        return np.where(inside, self.weight[at], beside)

    def count(self, class_name: str | None = None) -> int:
        """Return of how many steps of the run, or of a class, a mean is."""
        return sum(self.counts.values()) if class_name is None else self.counts[class_name]

    def mean(self, values: Ints, class_name: str | None = None) -> Floats:
        """Return the mean of what each step has (rows of an array), over all steps of the run or of a class."""
        chosen = True if class_name is None else np.array(self.classes, dtype=object) == class_name
        total: Floats = (self.weight * chosen) @ values
        return total / self.count(class_name)


@cached_on_trace
def step_spans(trace: Trace) -> list[StepSpans]:
    """Return the steps of every process that has any; computed once per open trace.

    As torch-tb-profiler 0.4.3 has it (event_parser.py, _find_device_steps and _update_steps_duration): a step that
    launches work on a GPU ends with the last of it, if that is later than the end on the host; the next one begins
    there. The steps at the end that launch nothing do not count, nor does the last one that launches if it has less
    than 0.8 of the activities of the step before it. Where the profiler's marks are steps, they last from the
    mark's start to its end.
    """
    return [_of_process(trace, each) for each in find_steps(trace).processes]


def step_rows(steps: StepSpans, parts: Mapping[str, Ints], by: str) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a process: a row per `step`, or the means over the run, by `class` or of all.

    A row has `duration_ns`, and of each of `parts` (nanoseconds of every step) `NAME_ns` and `NAME_share`.
    """
    who = {"rank": steps.rank, "process": steps.process}
    times = np.column_stack((steps.end_ns - steps.start_ns, *parts.values()))

    def cells(duration: int, *of_parts: int) -> dict[str, object]:
        named = dict(zip(parts, of_parts, strict=True))
        shares = {f"{name}_share": part / duration if duration else None for name, part in named.items()}
        return {"duration_ns": duration, **{f"{name}_ns": part for name, part in named.items()}, **shares}

    if by == "step":
        columns = (steps.number.tolist(), steps.classes, steps.start_ns.tolist(), steps.counted.tolist())
        for number, name, start, counted, row in zip(*columns, times.tolist(), strict=True):
            yield {**who, "step": number, "class": name, "start_ns": start, **cells(*row), "counted": counted}
        return
    for class_name in steps.counts if by == "class" else (None,) if steps.counts else ():
        means = [round(mean) for mean in steps.mean(times, class_name).tolist()]
        yield {**who, "class": class_name, "steps": steps.count(class_name), **cells(*means)}


def _of_process(trace: Trace, steps: ProcessSteps) -> StepSpans:
    start, end, bounds = steps.start_ns.copy(), steps.end_ns, _FOUND
    if any(loop.kind == "range" for loop in steps.loops):
        end, bounds = _ends_of_marks(trace, steps.process, start, end), _MARKED
    # Other tools' profiles begin where their user had them begin.
    complete = steps.complete & (bool(trace.info.source) | ~steps.warm_up)
    before_ns, device_end, launched = _device_ends(trace, steps.process, start, end)
    if launched.any():
        bounds += _DEVICE
        complete &= _with_all_work(launched) | ~steps.kept
        done = np.maximum.accumulate(np.maximum(end, device_end))
        begun = np.maximum(start, np.concatenate(([before_ns], done[:-1])))
        done = np.maximum(begun, done)
    else:
        begun, done = start, end
    kept = np.flatnonzero(steps.kept)
    weight, counts = _weights(steps, complete, _known_of_all(trace, steps, complete))
    return StepSpans(
        process=steps.process,
        rank=ranks_of(trace)[steps.process],
        number=kept + steps.first_number,
        start_ns=begun[kept],
        end_ns=done[kept],
        host_start_ns=start[kept],
        host_end_ns=end[kept],
        classes=tuple(steps.class_names[kept].tolist()),
        weight=weight[kept],
        counts=counts,
        bounds=bounds,
    )


def _known_of_all(trace: Trace, steps: ProcessSteps, complete: Bools) -> list[Ints]:
    """Return times that are known of folded steps, too, an entry per step: what each GPU runs, parts, kinds.

    The wait for data comes last.
    """
    if steps.kept.all():
        return []
    columns: list[Ints] = []
    for device in devices(trace):
        if device.process == steps.process and (found := lanes(trace, device, steps)).known[complete].all():
            masks = np.arange(MASKS)
            columns += [found.set_ns[:, masks >> kind & 1 > 0].sum(axis=1) for kind in range(len(KINDS))]
    columns += [*steps.cells.parts_ns.T[::-1]]
    for kind in range(len(HOST_KINDS)):
        of_kind = [values for number, values in (steps.cells.columns or {}).items() if number % len(HOST_KINDS) == kind]
        columns += [np.sum(of_kind, axis=0)] if of_kind else []
    return columns


def _weights(steps: ProcessSteps, complete: Bools, known_ns: Sequence[Ints]) -> tuple[Floats, dict[str, int]]:
    """Return how many steps each stands for, and by class the number of steps that the means are of.

    A step that is kept because it is slow stands for itself. The other kept ones of a class stand for the time of all
    that are not slow, so that a mean duration is that of all steps, and so is the mean of each of `known_ns`,
    which are known of all steps.
    """
    weight, counts = np.zeros(len(steps)), dict[str, int]()
    for name in dict.fromkeys(steps.class_names[complete & steps.kept].tolist()):
        members = complete & (steps.class_names == name)
        own = members & steps.kept & (steps.kept.all() | (steps.duration_ns > _slow_ns(steps, members)))
        others, kept = members & ~own, members & ~own & steps.kept
        weight[own] = 1.0
        counts[name] = int(own.sum())
        if kept.any():
            duration_ns, all_ns = steps.duration_ns[kept], steps.duration_ns[others].sum()
            shares = np.array([column[kept] for column in known_ns]) / np.maximum(duration_ns, 1)
            wanted = np.array([column[others].sum() for column in known_ns]) / max(1, all_ns)
            tilt = _tilt(shares.reshape(len(known_ns), -1).T, duration_ns, wanted)
            weight[kept] = tilt * all_ns / (tilt @ duration_ns)
            counts[name] += int(others.sum())
    return weight, {name: count for name, count in counts.items() if count}


def _tilt(shares: Floats, duration_ns: Ints, wanted: Floats) -> Floats:
    """Return weights with which the mean of each column of shares, by time, is the wanted one, or as near as may be.

    They are exp(sum of t * share), which differs least from equal weights (Deming and Stephan's raking): one column
    after the other, in rounds; the last column comes out best.
    """
    least = shares.min(axis=0)
    shares, wanted = shares - least, wanted - least
    width = shares.max(axis=0)
    exponents, tilts = np.zeros(len(shares)), np.zeros(shares.shape[1])
    columns = np.flatnonzero(width > _ALIKE).tolist()
    for _ in range(_ROUNDS):
        for at in columns:
            share = shares[:, at]
            time = np.exp(exponents - tilts[at] * share) * duration_ns
            low, high = -_MOST_TILT / width[at], _MOST_TILT / width[at]
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                tilted = time * np.exp(middle * share)
                low, high = (middle, high) if tilted @ share < wanted[at] * tilted.sum() else (low, middle)
            exponents += (middle - tilts[at]) * share
            tilts[at] = middle
    return np.exp(exponents)


def _slow_ns(steps: ProcessSteps, members: Bools) -> float:
    return KEPT_AS_SLOW * float(np.median(steps.duration_ns[members]))


def _ends_of_marks(trace: Trace, process: int, start: Ints, end: Ints) -> Ints:
    """Return the ends of the marks that begin with the steps; the steps' own where none does."""
    location = main_location(trace, process)
    marks = regions_where(trace, lambda region: region.name.startswith(PROFILER_STEP))
    out = end.copy()
    for spans in trace.span_batches(location) if location is not None else ():
        chosen = marks[spans["region"]]
        begin, until = spans["start_ns"][chosen], (spans["start_ns"] + spans["duration_ns"])[chosen]
        step = place_of(begin, start)
        known = step >= 0
        out[step[known]] = np.minimum(until[known], end[step[known]])
    return out


def _device_ends(trace: Trace, process: int, start: Ints, end: Ints) -> tuple[int, Ints, Ints]:
    """Return how the work on all GPUs of a process changes its steps on the host.

    That is: when work from before the first step was done, before the first work of that step began (the step's own
    start where there is none); by step, the end of what it launched; and how many activities that were.
    """
    lowest = np.iinfo(np.int64).min
    first_work, device_end = np.iinfo(np.int64).max, np.full(len(start), lowest)
    count = np.zeros(len(start), dtype=np.int64)
    foreign_end = np.full(0, lowest)
    for device in devices(trace):
        for found, by in launches(trace, device) if device.process == process else ():
            step = np.searchsorted(start, by.call.start_ns, side="right") - 1
            inside = (by.call.row >= 0) & (step >= 0)
            inside &= by.call.end_ns <= end[step]
            np.maximum.at(device_end, step[inside], found.end_ns[inside])
            np.add.at(count, step[inside], 1)
            first = found.start_ns[inside & (step == 0)]
            first_work = min(first_work, int(first.min()) if len(first) else first_work)
            foreign = ~inside & (found.start_ns < end[0])
            foreign_end = np.concatenate((foreign_end, found.end_ns[foreign]))
    earlier = foreign_end[foreign_end < first_work] if count[0] else foreign_end[:0]
    return max(int(start[0]), int(earlier.max()) if len(earlier) else lowest), device_end, count


def _with_all_work(launched: Ints) -> Bools:
    """Which steps have all their work on the GPU in the profile, from the number of activities of each."""
    last = int(np.flatnonzero(launched)[-1])
    whole = np.arange(len(launched)) <= last
    if last > 0 and launched[last] < _WHOLE * launched[last - 1]:
        whole[last] = False
    return whole
