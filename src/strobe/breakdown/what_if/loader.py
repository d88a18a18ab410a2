"""What if? Other numbers of worker processes of a data loader, and of batches that they make ahead: a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.data_pipeline import Pipeline, fetched, pipelines
from strobe.breakdown.what_if.changes import Change, unknown
from strobe.breakdown.what_if.replay import Replay
from strobe.model.kinds import CORES, OPERATOR_THREADS
from strobe.steps.usual_steps import Usual
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.trace import Trace

_AHEAD = 2  # prefetch_factor of a DataLoader
# A worker hands a batch over in some tenths of a millisecond.
_HANDOVER_NS = 1_000_000
_STRETCHES = 12
# Where it is not known how many cores there are: of two pairs of published profiles with 0 and 4 workers (kineto,
# tb_plugin/samples, ResNet-50) the one with less gained this part of what a queue promises.
_GAINED = 0.34


@dataclass(frozen=True)
class _Queue:
    """A loop and its loader, by batch, ns. rest: from a batch to the next question; fetch: one worker's work for it."""

    rest_ns: Floats
    fetch_ns: Floats

    def lengths_ns(self, workers: int, ahead: int, handover_ns: float) -> Floats:
        """Return how long the loop takes for each batch: waiting and rest.

        As in torch/utils/data/dataloader.py: batches go to the workers in turn, and are handed over in order; a worker
        gets the next one when the loop takes one, so that `ahead` of each are under way.
        """
        if not workers:
            return self.rest_ns + self.fetch_ns
        free, asked, ends, now = [0.0] * workers, [0.0] * (workers * ahead), list[float](), 0.0
        # Twice, so that the second time the queue is as full as usual.
        for at, (rest, fetch) in enumerate(2 * [*zip(self.rest_ns.tolist(), self.fetch_ns.tolist(), strict=True)]):
            free[at % workers] = max(free[at % workers], asked[at % len(asked)]) + fetch
            now = max(now, free[at % workers]) + handover_ns
            asked[at % len(asked)] = now
            now += rest
            ends.append(now)
        return np.diff(ends)[len(self.rest_ns) - 1 :]


def loader_replays(trace: Trace, usual: Usual, what_if: Sequence[Change]) -> list[Replay]:
    """Return replays of stretches of usual steps whose loader has other workers, or other numbers of batches ahead.

    The unchanged one has the workers that it has. At least a step takes what the queue takes; with more workers than
    now at most what the cores need for all that loop and workers compute, if every operator uses its threads, and what
    a batch takes to the loop. Raises InconclusiveError where fetches are not known.
    """
    found = next((each for each in pipelines(trace) if each.steps.process == usual.steps.process), None)
    if found is None:
        raise unknown("its steps ask no loader for batches")
    if found.workers is None or found.fetch is None:
        raise unknown("it has no fetches of the loader's workers; strobe run records them")
    asked = {each.word: int(each.most) for each in what_if}
    now, then = found.workers, asked.get("workers", found.workers)
    steps, (at,), batches = usual.steps, np.nonzero(usual.usual), 1
    if now:
        _, starts, ends = fetched(trace, steps.process)
        batches = max(1, round(len(starts) / len(steps)))
    duration, wait = (np.repeat(each[at] / batches, batches) for each in (steps.duration_ns, steps.cells.waiting_ns))
    # What a GPU computes meanwhile is not lost.
    rest = duration - wait * (found.wait_exposed / found.wait if found.wait else 1.0)
    fetch, handover = wait, 0.0
    if now:
        in_order = np.resize((ends - starts)[np.argsort(starts)], (len(steps), batches))
        fetch, handover = in_order[at].ravel().astype(np.float64), min(float(wait.min()), _HANDOVER_NS)
    queue = _Queue(rest, fetch)
    replayed = queue.lengths_ns(now, _AHEAD, handover) if now else duration
    least = most = replayed
    if asked and (now or then):
        ahead = max(1, asked.get("prefetch", _AHEAD))
        least = most = queue.lengths_ns(then, ahead, handover)
    if then > now:
        slow = queue.lengths_ns(then, ahead, handover if now else _HANDOVER_NS)
        crowded = np.maximum(slow, _crowded_ns(trace, found, queue, replayed, least))
        most = np.minimum(crowded, np.maximum(least, replayed))
    return [
        Replay(
            int(steps.first_number + at[part[0] // batches]),
            len(part) // batches,
            *(round(float(each[part].sum())) for each in (duration, replayed, least, most, duration - rest)),
        )
        for part in np.split(np.arange(len(rest)), _bounds(len(at)) * batches)
    ]


def _bounds(steps: int) -> Ints:
    """Return where stretches of steps begin, but for the first."""
    return np.unique(np.linspace(0, steps, min(_STRETCHES, steps) + 1).astype(np.int64))[1:-1]


def _crowded_ns(trace: Trace, found: Pipeline, queue: _Queue, replayed: Floats, least: Floats) -> Floats:
    """Return how long each batch takes if the cores have to compute all that loop and workers do, with all threads."""
    last = {one.metric: float(one.values[-1]) for one in trace.readings(found.steps.process) if len(one.values)}
    if not (cores := last.get(CORES, 0.0)):
        return replayed - _GAINED * (replayed - least)
    threads = 1.0 if found.has_gpu else min(cores, last.get(OPERATOR_THREADS, 1.0))
    return (queue.fetch_ns + threads * queue.rest_ns) / cores
