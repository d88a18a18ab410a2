"""How long would a step take if something in it took another time?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from strobe.analyses.steps.what_if import ANALYSIS
from strobe.breakdown.gpu_step import MODEL_ERROR
from strobe.breakdown.what_if.changes import OF_LOADER, UNSURE, Change, changes
from strobe.breakdown.what_if.loader import loader_replays
from strobe.breakdown.what_if.proposals import of_loader, of_steps
from strobe.breakdown.what_if.replay import Replay, replay, windows_of
from strobe.errors import InconclusiveError, UsageError
from strobe.gpu.devices import devices
from strobe.model.units import format_ns, format_share
from strobe.ranks.critical_path.graph import processes_of
from strobe.ranks.step_waits import LEAST_BESIDE, share_beside
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
# Changes of ranks. What these wait for on other threads makes the answer unknown.
_OF_RANKS = ("no-straggler", "ranks")
_BESIDE = (
    "cannot be known from this trace: ranks wait for one another on other threads than the main ones (gloo), and when "
    "the main threads wait for these was not recorded"
)
_MOST_PROPOSALS = 8
_NO_PROPOSAL = "no change that is known here makes these steps shorter beyond the error of the replay"
_NOTHING = "no usual step has all its spans in this trace: strobe what-if replays steps"


def run(trace: Trace, *, change: str, by: str, rank: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.what_if`."""
    what, columns, usual = changes(change, "CHANGE"), ANALYSIS.columns_with(by=by), usual_steps(trace)
    if usual is None:
        return make_table(columns, [], note=_NOTHING)
    if by == "change" and not change:
        rows, note = _proposals(trace, usual, rank)
        return make_table(columns, rows, note=note)
    try:
        found = [each for each in _replays(trace, usual, rank, what) if each.recorded_ns > 0]
    except InconclusiveError as why:
        return make_table(columns, [], note=why.what)
    if not found:
        return make_table(columns, [], note=_NOTHING)
    if by == "stretch":
        return make_table(columns, [_of_stretch(usual, each) for each in found])
    row, gain = _row(usual, found, what)
    about = f"{_steps(found)} of class {usual.class_name}, scaled to the mean of all that are usual, "
    about += f"{format_ns(usual.usual_ns)}: the replay is off by {format_share(row['error'])} on average, "
    about += f"{format_share(row['largest_error'])} at most"
    about += f"; with {change}: {gain}" if what else "; nothing is changed in it: --change"
    return make_table(columns, [{"change": change, **row}], about=about)


def _proposals(trace: Trace, usual: Usual, rank: str) -> tuple[list[dict[str, Any]], str]:
    """Return a row for each change that may gain something in these steps, the best first, and a note if none does."""
    (processes, *_) = processes_of(trace, rank)
    on_gpus = bool(devices(trace))
    found: dict[str, list[Replay]] = {}
    unknown = set[str]()
    for first, count, whole in windows_of(trace, usual, processes, _stretches(usual, together=_together(trace))):
        if not found:
            found = {change: [] for change in of_steps(trace, whole, processes, on_gpus=on_gpus)}
            if share_beside(trace) >= LEAST_BESIDE:
                unknown |= set(_OF_RANKS) & set(found)
        for change in found.keys() - unknown:
            try:
                found[change].append(replay(trace, first, count, whole, changes(change, "CHANGE")))
            except (InconclusiveError, UsageError):  # a trace without shapes, peaks or gradients; another stretch
                unknown.add(change)
    for change in of_loader(trace, usual):
        found[change] = loader_replays(trace, usual, changes(change, "CHANGE"))
    rows = []
    for change, replayed in found.items():
        sound = [each for each in replayed if each.recorded_ns > 0]
        if change not in unknown and sound:
            row, gain = _row(usual, sound, changes(change, "CHANGE"))
            if gain.endswith(" less"):
                rows.append({"change": change, **row})
    rows.sort(key=lambda row: -(row["gain_low_ns"] + row["gain_high_ns"]))
    return rows[:_MOST_PROPOSALS], "" if rows else _NO_PROPOSAL if found else _NOTHING


def _of_stretch(usual: Usual, each: Replay) -> dict[str, Any]:
    predicted = (each.least_ns + each.most_ns) / 2
    return {
        "class": usual.class_name,
        "step": each.first,
        "steps": each.steps,
        **_means(each.steps, recorded=each.recorded_ns, replayed=each.replayed_ns, predicted=predicted),
        "error": abs(each.replayed_ns / each.recorded_ns - 1),
    }


def _row(usual: Usual, found: Sequence[Replay], what: Sequence[Change]) -> tuple[dict[str, Any], str]:
    """Return the row of a change, and its gain in words."""
    steps, recorded, replayed, least, most = (
        np.array([getattr(each, name) for each in found], dtype=np.float64)
        for name in ("steps", "recorded_ns", "replayed_ns", "least_ns", "most_ns")
    )
    error = np.abs(replayed / recorded - 1)
    predicted = (least + most) / 2
    beside = MODEL_ERROR if any(each.word in UNSURE for each in what) else 0.0
    # The steps that are replayed are some of the usual ones: their times are scaled to the mean of all.
    scale = usual.usual_ns * steps.sum() / recorded.sum()
    recorded, replayed, predicted, least, most = (each * scale for each in (recorded, replayed, predicted, least, most))
    low, high = _interval(steps, replayed, least, most, float(error.max()), beside)
    gains = [each.most_gain_ns for each in found]
    if all(gain is not None for gain in gains) and high > 0:
        # How sure it is widens the interval on both sides, but a wait that is not there cannot go.
        high = min(high, max(low, scale * sum(gain or 0 for gain in gains) / steps.sum()))
    best, worst = (_interval(steps, replayed, each, each, float(error.max()), beside) for each in (least, most))
    row = {
        "class": usual.class_name,
        "steps": int(steps.sum()),
        **_means(steps.sum(), recorded=recorded.sum(), replayed=replayed.sum(), predicted=predicted.sum()),
        "error": float(error.mean()),
        "largest_error": float(error.max()),
        "gain_low_ns": round(low),
        "gain_high_ns": round(high),
    }
    return row, _text(low, high, less=best[0] > 0, more=worst[1] < 0)


def _replays(trace: Trace, usual: Usual, rank: str, what: Sequence[Change]) -> list[Replay]:
    (processes, *_) = processes_of(trace, rank)
    if any(each.word in OF_LOADER for each in what):
        return loader_replays(trace, usual, what)
    if any(each.word in _OF_RANKS for each in what) and share_beside(trace) >= LEAST_BESIDE:
        raise InconclusiveError(_BESIDE)
    graphs = windows_of(trace, usual, processes, _stretches(usual, together=_together(trace)))
    return [replay(trace, first, count, whole, what) for first, count, whole in graphs]


def _together(trace: Trace) -> int:
    """Return of how many consecutive steps a stretch is."""
    return _TOGETHER if devices(trace) else 1


def _stretches(usual: Usual, *, together: int) -> list[tuple[int, int]]:
    """Return some stretches of consecutive usual steps in detail, first and last, spread over the run."""
    recorded = usual.steps.recorded
    detail = usual.usual & (True if recorded is None else recorded.detail == ALL)
    if together > 1 and len(detail) > together:
        detail[0] = False  # the GPU may be behind with what was launched before the trace
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


def _interval(
    steps: Floats, replayed: Floats, least: Floats, most: Floats, error: float, beside: float
) -> tuple[float, float]:
    """Return the least and the most gain of a step, ns; negative where it takes longer, 0 where that is not sure.

    beside: how much of the gain a change may cost or bring beside what it is about.
    """
    gains = ((replayed - most) / steps, (replayed - least) / steps)
    middle = (gains[0] + gains[1]) / 2
    of_steps = _Z * float(middle.std(ddof=1)) / len(middle) ** 0.5 if len(middle) > 1 else 0.0
    half = float(np.hypot(error * float(most.sum() / steps.sum()), of_steps))
    low, high = (float(np.average(gain, weights=steps)) for gain in gains)
    deviation = float(np.median(np.abs(middle - np.median(middle))))
    least_gain = max(_LEAST_GAIN * float(replayed.sum() / steps.sum()), _DEVIATIONS * deviation / len(middle) ** 0.5)
    if (low, high) == (0, 0):
        return 0.0, 0.0
    low, high = low - beside * abs(low), high + beside * abs(high)
    low, high = low - half, min(high + half, float(replayed.sum() / steps.sum()))
    if -low > high:  # it takes longer
        return low, high if high <= -least_gain else 0.0
    return low if low >= least_gain else 0.0, high


def _text(low: float, high: float, *, less: bool, more: bool) -> str:
    """Return a gain in words. less, more: whether it may be as sure a gain, or loss, at the ends of its range."""
    word, near, far = ("less", low, high) if low > 0 or (less and high >= -low) else ("more", high, low)
    if low > 0 or high < 0:
        return f"{format_ns(abs(near))} to {format_ns(abs(far))} a step {word}"
    return f"at most {format_ns(abs(far))} a step {word}" if less or more else _NO_GAIN


def _steps(found: Sequence[Replay]) -> str:
    count = sum(each.steps for each in found)
    return f"{count} steps" if count > 1 else "1 step"
