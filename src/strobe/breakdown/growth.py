"""Why steps take longer than others of their class: the call that grew, or a core that the thread had to wait for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.model.kinds import HOST_KINDS
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import kinds_of, main_location, throttled_regions
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.trace import Trace

# A call explains slow steps if it grew by this share of what they exceed the others by, in this share of them.
_LEAST_SHARE = 0.5
_IN_MOST = 0.6
# What takes so much of a usual step is the step itself.
_THE_STEP = 0.9
# The machine is the reason if the thread waited for a core for this share of what slow steps cost.
BY_THE_MACHINE = 0.5
# Of so many steps the spans are read.
_MOST = 32
_WAIT = "main thread waits for a core"


@dataclass(frozen=True)
class Growth:
    """The innermost call that makes steps slow. Nanoseconds: its mean in these steps, its median in usual ones.

    is_iteration: it is an iteration of a loop that calls nothing recorded: what it does there is not known.
    is_step: what it does besides its recorded calls is nearly all of a usual step.
    communicates: it is a call that may wait for other ranks.
    """

    name: str
    where: str  # "" if it has no file
    slow_ns: int
    usual_ns: int
    is_iteration: bool = False
    is_step: bool = False
    communicates: bool = False


def grown_call(trace: Trace, steps: ProcessSteps, slow: Ints, usual: Ints) -> Growth | None:
    """Return the innermost call of the main thread that explains why the steps `slow` exceed the steps `usual`.

    A call path explains a step if its time there exceeds its median in usual steps by half of what the step exceeds the
    median step. None where no path does so in most of the slow steps, or where there are no spans to compare.
    """
    location, all_slow = main_location(trace, steps.process), slow
    slow, usual = (kept[:: -(-len(kept) // _MOST) or 1] for kept in (slow[steps.kept[slow]], usual[steps.kept[usual]]))
    if location is None or not len(slow) or not len(usual):
        return None
    seen, times = _times(trace, location, steps, np.concatenate([slow, usual]))
    usual_ns, slow_ns = np.median(times[len(slow) :], axis=0), times[: len(slow)].mean(axis=0)
    median_ns = np.median(steps.duration_ns[usual])
    least = _LEAST_SHARE * np.maximum(1, steps.duration_ns[slow] - median_ns)
    grown = np.mean(times[: len(slow)] - usual_ns >= least[:, None], axis=0) >= _IN_MOST
    # Of all slow steps, in detail or not.
    grown &= slow_ns - usual_ns >= _LEAST_SHARE * (steps.duration_ns[all_slow].mean() - median_ns)
    parents, regions = (trace.call_paths.to_arrow().column(name).to_pylist() for name in ("parent", "region"))
    callers = set()
    for path in seen[grown].tolist():
        while (path := parents[path]) is not None and path not in callers:
            callers.add(path)
    inner = np.flatnonzero(grown & ~np.isin(seen, list(callers)))
    if not len(inner):
        return None
    most = int(inner[np.argmax((slow_ns - usual_ns)[inner])])
    # A function that is called by itself has other call paths in each depth.
    called, paths = regions[int(seen[most])], seen.tolist()
    same = {path for path in paths if regions[path] == called}
    of_same, inside = (
        times[len(slow) :, which].sum(axis=1)
        for which in ([path in same for path in paths], [parents[path] in same and path not in same for path in paths])
    )
    region = trace.regions.to_pylist()[called]
    where = f"{region['file']}:{region['line']}" if region["file"] else ""
    (kind,) = kinds_of([region["name"]], [region["paradigm"]], [region["role"]])
    return Growth(
        region["name"],
        where,
        int(slow_ns[most]),
        int(usual_ns[most] or np.median(of_same)),
        is_iteration=region["role"] == "loop",
        is_step=bool(np.median(of_same - inside) >= _THE_STEP * median_ns),
        communicates=HOST_KINDS[kind] == "communication",
    )


def _times(trace: Trace, location: int, steps: ProcessSteps, rows: Ints) -> tuple[Ints, Floats]:
    """The call paths of which calls began in some steps, and the time in these: an array (steps, paths)."""
    paths, durations, counts = [], [], []
    for begin, end in zip(steps.start_ns[rows].tolist(), steps.end_ns[rows].tolist(), strict=True):
        spans = trace.span_arrays(location, begin, end)
        inside = spans["start_ns"] >= begin
        paths.append(spans["call_path"][inside])
        durations.append(spans["duration_ns"][inside])
        counts.append(len(paths[-1]))
    seen, place = np.unique(np.concatenate(paths).astype(np.int64), return_inverse=True)
    times = np.zeros((len(rows), len(seen)))
    np.add.at(times, (np.repeat(np.arange(len(rows)), counts), place), np.concatenate(durations))
    return seen, times


def throttled_ns(trace: Trace, process: int) -> int | None:
    """Return when the last call of a function began that the recorder left out from then on; None without any."""
    throttled, location = throttled_regions(trace, process), main_location(trace, process)
    if throttled is None or location is None:
        return None
    spans = trace.span_arrays(location)
    starts: Ints = spans["start_ns"][throttled[spans["region"]]]
    return int(starts[-1]) if len(starts) else None


def waited_for_core_ns(trace: Trace, process: int, start_ns: Ints, end_ns: Ints) -> int:
    """Return how long the main thread could have run and was not let, in the readings that lie in the given steps.

    A reading counts as a whole: it stands for the time since the one before. 0 where this was not read.
    """
    for each in trace.readings(process):
        if each.metric == _WAIT and len(each.time_ns) > 1:
            waited = each.values[1:] * np.diff(each.time_ns)
            first = np.searchsorted(each.time_ns[1:], start_ns)
            last = np.searchsorted(each.time_ns[1:], end_ns, side="left") + 1
            touched = np.zeros(len(waited) + 2, dtype=np.int64)
            np.add.at(touched, first, 1)
            np.add.at(touched, np.minimum(last, len(waited) + 1), -1)
            return int(waited[np.cumsum(touched)[: len(waited)] > 0].sum())
    return 0
