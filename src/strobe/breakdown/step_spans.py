"""The steps whose spans are in the trace, as `strobe steps` has them, and how many of the run each stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.lanes import lanes
from strobe.gpu.work import KINDS, MASKS
from strobe.model.kinds import HOST_KINDS
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Bools, Ints
from strobe.steps.usual_steps import KEPT_AS_SLOW
from strobe.tables.column_arrays import Floats
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# By one column, a kept step counts e^5 times as much as another one at most. Columns that differ less are left alone.
_MOST_TILT, _ALIKE = 5, 1e-4
_ROUNDS, _HALVINGS = 8, 25


@dataclass(frozen=True)
class StepSpans:
    """The steps of a process whose spans are all in the trace; columns of equal length. Nanoseconds.

    They follow each other and never overlap. outlier: much slower than their class. weight: how many steps of the run
    each stands for in a mean: itself, and those of its class that are statistics only; 0 if it is not steady. counts:
    by class, how many steps of the run that are.
    """

    process: int
    rank: int | None
    number: Ints
    start_ns: Ints
    end_ns: Ints
    classes: tuple[str, ...]
    outlier: Bools
    weight: Floats
    counts: Mapping[str, int]

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

    A step lasts from where the thread of the loop begins it to where that begins the next one, with a GPU as without:
    what runs on the GPU meanwhile is in it, whichever step launched that.
    """
    found = find_steps(trace).processes
    return [spans_of_steps(trace, each, each.start_ns, each.end_ns, each.steady) for each in found]


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


def spans_of_steps(trace: Trace, steps: ProcessSteps, start_ns: Ints, end_ns: Ints, counted: Bools) -> StepSpans:
    """Return the steps of a process with these bounds, an entry each; means are of those that are `counted`."""
    kept = np.flatnonzero(steps.kept)
    weight, counts = _weights(steps, counted, _known_of_all(trace, steps, counted))
    return StepSpans(
        process=steps.process,
        rank=ranks_of(trace)[steps.process],
        number=kept + steps.first_number,
        start_ns=start_ns[kept],
        end_ns=end_ns[kept],
        classes=tuple(steps.class_names[kept].tolist()),
        outlier=steps.outlier[kept],
        weight=weight[kept],
        counts=counts,
    )


def _known_of_all(trace: Trace, steps: ProcessSteps, counted: Bools) -> list[Ints]:
    """Return times that are known of folded steps, too, an entry per step: what each GPU runs, parts, kinds.

    The wait for data comes last.
    """
    if steps.kept.all():
        return []
    columns: list[Ints] = []
    for device in devices(trace):
        if device.process == steps.process and (found := lanes(trace, device, steps)).known[counted].all():
            masks = np.arange(MASKS)
            columns += [found.set_ns[:, masks >> kind & 1 > 0].sum(axis=1) for kind in range(len(KINDS))]
    columns += [*steps.cells.parts_ns.T[::-1]]
    for kind in range(len(HOST_KINDS)):
        of_kind = [values for number, values in (steps.cells.columns or {}).items() if number % len(HOST_KINDS) == kind]
        columns += [np.sum(of_kind, axis=0)] if of_kind else []
    return columns


def _weights(steps: ProcessSteps, counted: Bools, known_ns: Sequence[Ints]) -> tuple[Floats, dict[str, int]]:
    """Return how many steps each stands for, and by class the number of steps that the means are of.

    A step that is kept because it is slow stands for itself. The other kept ones of a class stand for the time of all
    that are not slow, so that a mean duration is that of all steps, and so is the mean of each of `known_ns`,
    which are known of all steps.
    """
    weight, counts = np.zeros(len(steps)), dict[str, int]()
    for name in dict.fromkeys(steps.class_names[counted & steps.kept].tolist()):
        members = counted & (steps.class_names == name)
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
