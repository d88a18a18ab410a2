"""How long would a step take if something in it took another time?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strobe.analyses.steps.what_if import ANALYSIS
from strobe.gpu.devices import devices
from strobe.model.units import format_ns, format_share
from strobe.ranks.critical_path.graph import processes_of
from strobe.ranks.critical_path.what_if import Replay, changes, replays
from strobe.steps.usual_steps import Usual, usual_steps
from strobe.tables.column_arrays import Floats
from strobe.tables.table import Table, make_table
from strobe.trace.folded import ALL
from strobe.trace.trace import Trace

# Consecutive steps of a stretch where a GPU runs behind the host, and stretches that are replayed.
_TOGETHER, _MOST = 4, 12
_LEAST_GAIN, _DEVIATIONS = 0.01, 3.0  # of a step; and of the stretches' median deviation
_Z = 1.96
_NO_GAIN = "no difference beyond the error of the replay and the spread of the steps"
_NOTHING = "no usual step has all its spans in this trace: strobe what-if replays steps"


def run(trace: Trace, *, change: str, by: str, rank: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.what_if`."""
    what, columns, usual = changes(change, "CHANGE"), ANALYSIS.columns_with(by=by), usual_steps(trace)
    (processes, *_) = processes_of(trace, rank)
    stretches = [] if usual is None else _stretches(usual, together=_TOGETHER if devices(trace) else 1)
    found = [] if usual is None else [*replays(trace, usual, processes, stretches, what)]
    found = [each for each in found if each.recorded_ns > 0]
    if usual is None or not found:
        return make_table(columns, [], note=_NOTHING)
    steps, recorded, replayed, least, most = (
        np.array([getattr(each, name) for each in found], dtype=np.float64)
        for name in ("steps", "recorded_ns", "replayed_ns", "least_ns", "most_ns")
    )
    error = np.abs(replayed / recorded - 1)
    predicted = (least + most) / 2
    if by == "stretch":
        rows = [
            {
                "class": usual.class_name,
                "step": each.first,
                "steps": each.steps,
                **_means(each.steps, recorded=recorded[at], replayed=replayed[at], predicted=predicted[at]),
                "error": float(error[at]),
            }
            for at, each in enumerate(found)
        ]
        return make_table(columns, rows)
    low, high = _interval(steps, replayed, least, most, float(error.max()))
    row = {
        "class": usual.class_name,
        "steps": int(steps.sum()),
        **_means(steps.sum(), recorded=recorded.sum(), replayed=replayed.sum(), predicted=predicted.sum()),
        "error": float(error.mean()),
        "largest_error": float(error.max()),
        "gain_low_ns": round(low),
        "gain_high_ns": round(high),
    }
    about = f"{_steps(found)} of class {usual.class_name}: {format_ns(recorded.sum() / steps.sum())} each, "
    about += f"the replay is off by {format_share(error.mean())} on average, {format_share(error.max())} at most"
    if what:
        gain = f"{format_ns(max(0.0, low))} to {format_ns(high)} a step less"
        about += f"; with {change}: {gain if low > 0 else _NO_GAIN}"
    return make_table(columns, [row], about=about)


def _stretches(usual: Usual, *, together: int) -> list[tuple[int, int]]:
    """Return some stretches of consecutive usual steps in detail, first and last, spread over the run."""
    recorded = usual.steps.recorded
    detail = usual.usual if recorded is None else usual.usual & (recorded.detail == ALL)
    (at,) = np.nonzero(detail)
    runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []
    length = min(together, max((len(each) for each in runs), default=1))
    found = [
        (int(each[k]), int(each[k + length - 1])) for each in runs for k in range(0, len(each) - length + 1, length)
    ]
    return [found[k] for k in np.unique(np.linspace(0, len(found) - 1, _MOST).astype(int))] if found else []


def _means(steps: float, *, recorded: float, replayed: float, predicted: float) -> dict[str, int]:
    times = {"recorded_ns": recorded, "replayed_ns": replayed, "predicted_ns": predicted}
    return {name: round(ns / steps) for name, ns in times.items()} | {"gain_ns": round((replayed - predicted) / steps)}


def _interval(steps: Floats, replayed: Floats, least: Floats, most: Floats, error: float) -> tuple[float, float]:
    """Return the least and the most gain of a step, ns; 0 and the most where it is within the error."""
    gains = ((replayed - most) / steps, (replayed - least) / steps)
    middle = (gains[0] + gains[1]) / 2
    of_steps = _Z * float(middle.std(ddof=1)) / len(middle) ** 0.5 if len(middle) > 1 else 0.0
    half = float(np.hypot(error * float(most.sum() / steps.sum()), of_steps))
    low, high = (float(np.average(gain, weights=steps)) for gain in gains)
    deviation = float(np.median(np.abs(middle - np.median(middle))))
    least_gain = max(_LEAST_GAIN * float(replayed.sum() / steps.sum()), _DEVIATIONS * deviation / len(middle) ** 0.5)
    if high > 0:
        low, high = low - half, min(high + half, float(replayed.sum() / steps.sum()))
    return (low if low >= least_gain else 0.0), high


def _steps(found: Sequence[Replay]) -> str:
    count = sum(each.steps for each in found)
    return f"{count} steps" if count > 1 else "1 step"
