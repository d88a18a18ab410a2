"""Compares runs with those of a baseline. Counts are exact, times need pairs of runs; a verdict for each and all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from strobe.comparison.counts import Counts, differ
from strobe.errors import InconclusiveError
from strobe.gate.runs import Run, StepClass
from strobe.gate.statistics import discoveries, further_pairs, greater_p, interval, least_pairs, middle
from strobe.tables.column_arrays import Floats

OK, REGRESSED, INCONCLUSIVE = "ok", "regressed", "inconclusive"
ALPHA = 0.01  # false alarms of a whole comparison
_FALSE_FUNCTIONS = 0.05  # of the functions that are listed
_RARE = 0.05  # of the steps: classes that may be missing
_LEAST_SHARE = 0.01  # of the step: functions with less time are not tested


class Row(NamedTuple):
    """One comparison. `change`, `low` and `high` are shares of the baseline: 0.05 is 5 % more.

    `verdict` is "" where the row only explains another one.
    """

    step_class: str
    measure: str
    name: str
    baseline: float
    now: float
    unit: str
    change: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    verdict: str = ""


@dataclass(frozen=True)
class Comparison:
    """All rows, and what cannot be decided. `further_pairs`: about how many more pairs of runs would decide."""

    rows: Sequence[Row]
    notes: Sequence[str]
    further_pairs: int = 0

    @property
    def verdict(self) -> str:
        """The worst verdict of a row: regressed before inconclusive before ok."""
        verdicts = {row.verdict for row in self.rows}
        return next((each for each in (REGRESSED, INCONCLUSIVE) if each in verdicts), OK)


def compare(
    baseline: Sequence[Run],
    runs: Sequence[Run],
    *,
    metrics: Sequence[str],
    threshold: float,
    alpha: float = ALPHA,
    apart: bool = False,
    other_machine: bool = False,
) -> Comparison:
    """Compare runs with a baseline.

    `metrics`: the locations (LOCATIONS) of step times that decide. `threshold`: the share by which a step may become
    longer. `alpha`: the probability of a false alarm by times. `apart`: believe times of runs that were not
    interleaved. Raises InconclusiveError for another machine, unless `other_machine`, and without a common class.
    """
    baseline, runs = (sorted(each, key=lambda run: run.started_unix_ns) for each in (baseline, runs))
    if not other_machine:
        _check_machines(baseline, runs)
    everything = (*baseline, *runs)
    names = {name for run in everything for name in run.classes}
    common = sorted(name for name in names if all(name in run.classes for run in everything))
    if not common:
        raise InconclusiveError(f"no class of steps is in all runs: {', '.join(sorted(names))}")
    lost = {run.lost for run in everything if run.lost}
    throttled = {name for run in everything for name in run.throttled}
    notes = [f"counts are too low: {text}" for text in sorted(lost)]
    notes += [f"calls of {name} are not compared: it was throttled" for name in sorted(throttled)]
    rows, further, pairs = _missing(names.difference(common), baseline, runs), 0, min(len(baseline), len(runs))
    level = alpha / (len(common) * len(metrics))
    doubtful = pairs > 1 and not apart and not _interleaved(baseline, runs)
    if pairs < 2:
        notes.append(f"times are not compared: that takes {least_pairs(level)} runs of each side or more")
    for name in common:
        before, now = ([run.classes[name] for run in side] for side in (baseline, runs))
        rows += _counts(name, before, now, throttled, bool(lost))
        for metric in metrics if pairs > 1 else ():
            row, more = _times(name, metric, before[:pairs], now[:pairs], threshold, level)
            further = max(further, more)
            rows.append(row._replace(verdict=INCONCLUSIVE) if doubtful and row.verdict == REGRESSED else row)
        rows += _functions(name, before[:pairs], now[:pairs])
    if doubtful:
        notes.append("runs of both sides were not interleaved: longer steps may be the machine's; see strobe bench")
    return Comparison(rows, notes, further)


def _check_machines(baseline: Sequence[Run], runs: Sequence[Run]) -> None:
    for what in ("cpu", "gpu", "driver"):
        then, now = ({run.machine[what] for run in side if what in run.machine} for side in (baseline, runs))
        if then and now and then != now:
            text = " and ".join(", ".join(sorted(each)) for each in (then, now))
            do = "To compare all the same: --other-machine"
            raise InconclusiveError(f"the baseline is of another {what}: {text}", do=do)


def _interleaved(baseline: Sequence[Run], runs: Sequence[Run]) -> bool:
    """Whether both runs of each pair come before those of the next one."""
    pairs = [(one.started_unix_ns, other.started_unix_ns) for one, other in zip(baseline, runs, strict=False)]
    return all(max(one) < min(other) for one, other in pairwise(pairs))


def _missing(names: Iterable[str], baseline: Sequence[Run], runs: Sequence[Run]) -> list[Row]:
    """Return a row for each class that some runs do not have: inconclusive, unless it is rare everywhere."""
    rows = []
    for name in sorted(names):
        shares = [_share(run, name) for run in (*baseline, *runs)]
        then, now = (float(np.mean([_share(run, name) for run in side])) for side in (baseline, runs))
        verdict = INCONCLUSIVE if max(shares) > _RARE else ""
        rows.append(Row(name, "share of steps", "", then, now, "", now / then - 1 if then else None, verdict=verdict))
    return rows


def _share(run: Run, name: str) -> float:
    return run.classes[name].steps / sum(each.steps for each in run.classes.values()) if name in run.classes else 0.0


def _counts(
    name: str, before: Sequence[StepClass], now: Sequence[StepClass], throttled: set[str], lost: bool
) -> Iterator[Row]:
    for kind in sorted({kind for each in (*before, *now) for kind in each.counts}):
        sides = [[each.counts.get(kind, Counts(each.steps, {}, {})) for each in side] for side in (before, now)]
        things = sorted({thing for side in sides for each in side for thing in each.of} - throttled)
        differing = [thing for thing in things if differ(sides, thing)]
        unit = "bytes" if kind == "bytes copied" else "per step"
        more = sum(_rate(sides[1], [thing]) - _rate(sides[0], [thing]) for thing in differing)
        verdict = INCONCLUSIVE if lost and differing else REGRESSED if more > 0 else OK
        for thing, decided in (("", verdict), *((thing, "") for thing in differing)):
            then, today = (_rate(side, [thing] if thing else things) for side in sides)
            yield Row(name, kind, thing, then, today, unit, today / then - 1 if then else None, verdict=decided)


def _rate(side: Sequence[Counts], things: Sequence[str]) -> float:
    return sum(each.of.get(thing, 0) for each in side for thing in things) / sum(each.steps for each in side)


def _times(
    name: str, metric: str, before: Sequence[StepClass], now: Sequence[StepClass], threshold: float, level: float
) -> tuple[Row, int]:
    """Return the row of a metric of step times, and about how many more pairs would decide it."""
    then, today = (np.array([each.times_ns[metric] for each in side]) for side in (before, now))
    differences: Floats = np.log(today / then)
    low, high = interval(differences, level)
    border = math.log1p(threshold)
    verdict = REGRESSED if low > border else OK if high < border else INCONCLUSIVE
    more = further_pairs(differences, level, border) if verdict == INCONCLUSIVE else 0
    change, least, most = (
        math.expm1(each) if math.isfinite(each) else None for each in (middle(differences), low, high)
    )
    p, measure = greater_p(differences - border), f"{metric} step time"
    return Row(name, measure, "", _ms(then), _ms(today), "ms", change, least, most, p, verdict), more


def _functions(name: str, before: Sequence[StepClass], now: Sequence[StepClass]) -> list[Row]:
    """Return the functions whose own time has changed, as far as a list of so many tests can be believed."""
    found = []
    for function in sorted(set[str].intersection(*(set(each.functions_ns) for each in (*before, *now)))):
        then, today = (np.array([each.functions_ns[function] for each in side]) for side in (before, now))
        step_ns = np.median([each.times_ns["mean"] for each in (*before, *now)])
        if min(then.min(), today.min()) > 0 and max(np.median(then), np.median(today)) >= _LEAST_SHARE * step_ns:
            differences = np.log(today / then)
            p = min(1.0, 2 * min(greater_p(differences), greater_p(-differences)))
            change = math.expm1(middle(differences))
            found.append(Row(name, "own time", function, _ms(then), _ms(today), "ms", change, p=p))
    believed = discoveries(np.array([row.p for row in found], dtype=float), _FALSE_FUNCTIONS)
    return [row for row, each in zip(found, believed.tolist(), strict=True) if each]


def _ms(values_ns: Floats) -> float:
    return float(np.median(values_ns)) / 1e6


def step_times(runs: Sequence[Run]) -> Mapping[str, float]:
    """Return the median step time of some runs by class, ns: the median of those of the runs."""
    names = {name for run in runs for name in run.classes}
    medians = {name: [run.classes[name].times_ns["median"] for run in runs if name in run.classes] for name in names}
    return {name: float(np.median(each)) for name, each in medians.items()}
