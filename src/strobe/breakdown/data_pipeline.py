"""The data pipeline of a training loop: what each stage does for a step, and what the step waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.step_spans import StepSpans, step_spans
from strobe.breakdown.step_time import ROLES, Kinds, divide_steps, roles
from strobe.gpu.devices import devices
from strobe.steps.batch_makers import making_regions
from strobe.steps.thread_spans import Bools, Ints, main_location
from strobe.steps.training_activities import DATA_LOADER
from strobe.trace.definition_rows import location_rows, process_rows, region_rows, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Kinds of work in order of priority. For the wait that of the TensorBoard plugin: it counts where the GPU and the calls
# of its runtime have nothing to do.
_COMPUTE, _COPY, _LAUNCH, WAIT, _HOST, _REST = range(6)
# What the recorder calls the fetch of a batch, in a worker or in the loop itself.
FETCH = "DataLoader.fetch"
# What to do where no loader is there.
MAKE_AHEAD = "a DataLoader with workers, or a thread, could make them ahead"
# A loader without workers names itself so (torch/utils/data/dataloader.py).
_IN_THE_LOOP = "_SingleProcessDataLoaderIter"

# Waiting is worth a word from 5 % of the step on, and much from 20 % on (XProf, op_stats_to_input_pipeline_analysis.cc;
# torch-tb-profiler's advice has the same 5 %).
MODERATE, HIGH = 0.05, 0.2
# The queue of batches may be empty in this part of the steps (MindInsight, minddata_analyser.py).
_OFTEN_EMPTY = 0.3
# A worker hands a batch over in some tenths of a millisecond: a shorter wait is not saved by one.
_LEAST_NS = 1_000_000
# What is gained of the time that could be hidden at best: workers take cores and memory from the loop. Of two pairs of
# published profiles (kineto, tb_plugin/samples, ResNet-50 with 0 and 4 workers) one gained 0.62 of it, one 0.34.
_GAINED = 0.5


@dataclass(frozen=True)
class Pipeline:
    """The stages of a process that trains; means over the steps that count, in nanoseconds a step.

    duration = wait_exposed + copy_exposed + compute_exposed + host_exposed. wait: the loop waits for its next batch;
    copy: batches are copied to the GPU; compute: GPUs work, or operators run where there is no GPU; host: the rest.
    exposed: the part in which no stage before it in the order compute, copy, wait, host does anything.
    usual_wait: what of wait_exposed passes in steps that are not outliers; slow steps have causes of their own.

    workers: 0 where the loop fetches itself, None for worker processes that were not recorded. fetch: work of all
    workers, or of the loop, for the batches of a step; None where unknown. batches: of a step. asked, empty: how often
    a batch was asked for in these steps, and none was ready; None where the workers' fetches are not in the trace.
    maker: the function of the program that makes most of the batches, "" where a DataLoader does.
    """

    steps: StepSpans
    duration: float
    wait: float
    wait_exposed: float
    usual_wait: float
    copy: float
    copy_exposed: float
    compute: float
    compute_exposed: float
    host_exposed: float
    has_gpu: bool
    workers: int | None
    fetch: float | None
    batches: float
    asked: int | None
    empty: int | None
    maker: str

    @property
    def wait_share(self) -> float:
        """The part of a step in which it waits for data, and nothing else happens; 0 to 1."""
        return self.wait_exposed / self.duration

    @property
    def copy_share(self) -> float:
        """The part of a step in which batches are copied to the GPU, and it does not compute; 0 to 1."""
        return self.copy_exposed / self.duration

    @property
    def verdict(self) -> str:
        """What holds the step up: `data processing`, `data transmission`, or `neither`.

        MindInsight's order: processing if the queue of batches is empty in more than 30 % of the steps; else
        transmission if the GPU lacks data all the same. Where the queue is unknown, the wait itself decides: a batch
        that is ready is not waited for. Only what takes 5 % of the step is worth a verdict: an empty queue that costs
        nothing is not a bottleneck.
        """
        ready = self.asked is not None and self.empty is not None and self.empty <= _OFTEN_EMPTY * self.asked
        if self.wait_share >= MODERATE:
            return "data transmission" if ready else "data processing"
        return "data transmission" if self.copy_share >= MODERATE else "neither"

    @property
    def bound(self) -> str:
        """How much the step is bound by its input: `highly`, `moderately`, or `not` (XProf's 5 % and 20 %)."""
        share = max(self.wait_share, self.copy_share)
        return "highly" if share >= HIGH else "moderately" if share >= MODERATE else "not"

    @property
    def gains(self) -> bool:
        """Whether hiding the wait would make steps faster: see `worth_hiding`."""
        return worth_hiding(self.usual_wait, self.duration)

    @property
    def needed_workers(self) -> int | None:
        """The least number of workers that fetch as fast as the rest of the step goes; None where fetch is unknown."""
        if self.fetch is None or self.best <= 0:
            return None
        return max(1, int(-(-self.fetch // self.best)))

    @property
    def best(self) -> float:
        """How long a step takes if fetching is hidden behind the rest: duration - exposed wait.

        Stages of a pipeline run at the pace of the slowest, so with n workers that is max(rest, fetch / n); it is the
        rest with `needed_workers`.
        """
        return self.duration - self.wait_exposed

    @property
    def predicted(self) -> float:
        """How long a step is expected to take with enough workers: half-way from now to `best`, if that gains."""
        return self.duration - _GAINED * (self.duration - self.best) * self.gains


def worth_hiding(wait_ns: float, duration_ns: float) -> bool:
    """Return whether a wait for data in each usual step is long enough for a gain: a fifth of the step and 1 ms."""
    return wait_ns >= max(_LEAST_NS, HIGH * duration_ns)


def pipelines(trace: Trace) -> Iterator[Pipeline]:
    """Yield the pipeline of every process that runs steps and waits for data in them."""
    names = [region.name for region in region_rows(trace)]
    loads = np.array([name.startswith(DATA_LOADER) for name in names], dtype=bool)
    for steps in step_spans(trace):
        if steps.counted.any() and (location := main_location(trace, steps.process)) is not None:
            # When the main thread asked for each batch and had it, and whether it fetched them all itself.
            begin, end, regions, _ = _spans_in(trace, [location], loads)
            in_loop, maker = all(_IN_THE_LOOP in names[region] for region in np.unique(regions).tolist()), ""
            if not len(begin):
                begin, end, regions, _ = _spans_in(trace, [location], making_regions(trace))
                maker = names[np.bincount(regions, weights=end - begin).argmax()] if len(begin) else ""
            if len(begin):
                yield _pipeline(trace, steps, begin, end, in_loop, maker)


def _pipeline(trace: Trace, steps: StepSpans, begin: Ints, end: Ints, in_loop: bool, maker: str) -> Pipeline:
    """Measure the stages; `begin`, `end`: when a batch was asked for and handed over, in the whole run."""
    on_stream, on_thread = _kinds(trace)
    has_gpu = any(device.process == steps.process for device in devices(trace))
    of_steps, at_all_of_steps = divide_steps(trace, steps, on_stream, on_thread, _REST + 1)
    first, at_all = steps.mean(of_steps), steps.mean(at_all_of_steps)
    operators = float(first[_HOST])
    step = np.searchsorted(steps.start_ns, begin, side="right") - 1
    inside = (step >= 0) & (begin < steps.end_ns[step]) & steps.counted[step]
    batches = float(steps.mean(np.bincount(step[inside], minlength=len(steps))))
    workers, mean, empty = (0, None, None) if in_loop else _fetching(trace, steps.process, begin[inside], end[inside])
    fetch = None if mean is None else mean * batches
    return Pipeline(
        steps=steps,
        duration=float(steps.mean(steps.end_ns - steps.start_ns)),
        wait=float(at_all[WAIT]),
        wait_exposed=float(first[WAIT]),
        usual_wait=float(steps.mean(of_steps[:, WAIT] * ~steps.outlier)),
        copy=float(at_all[_COPY]),
        copy_exposed=float(first[_COPY]),
        compute=float(at_all[_COMPUTE]) if has_gpu else operators,
        compute_exposed=float(first[_COMPUTE]) if has_gpu else operators,
        host_exposed=float(first[_LAUNCH] + first[_REST]) + (operators if has_gpu else 0.0),
        has_gpu=has_gpu,
        workers=workers,
        fetch=float(at_all[WAIT]) if in_loop else fetch,
        batches=batches,
        asked=None if empty is None else int(inside.sum()),
        empty=empty,
        maker=maker,
    )


def _spans_in(trace: Trace, locations: Iterable[int], regions: Bools) -> Ints:
    """Return start, end, region and location (a row each) of the spans in some regions."""
    parts = [np.zeros((4, 0), dtype=np.int64)]
    for location in locations if regions.any() else ():
        for spans in trace.span_batches(location):
            (at,) = np.nonzero(regions[spans["region"]])
            start, region = spans["start_ns"][at], spans["region"][at].astype(np.int64)
            parts.append(np.stack((start, start + spans["duration_ns"][at], region, np.full(len(at), location))))
    return np.concatenate(parts, axis=1)


def fetched(trace: Trace, process: int) -> tuple[set[int], Ints, Ints]:
    """Return the recorded workers of a process, as processes, and when each of their fetches began and ended."""
    processes = process_rows(trace)
    pid = next(each.pid for each in processes if each.process == process)
    children = {each.process for each in processes if each.process != process and each.parent_pid == pid}
    fetches = regions_where(trace, lambda region: region.name == FETCH)
    locations = location_rows(trace)
    of_children = [at.location for at in locations if at.process in children and at.span_count]
    starts, ends, _, where = _spans_in(trace, of_children, fetches)
    return {locations[location].process for location in np.unique(where).tolist()}, starts, ends


def _fetching(trace: Trace, process: int, begin: Ints, end: Ints) -> tuple[int | None, float | None, int | None]:
    """Return how many workers a process has, the mean time of a fetch, and how often none had a batch ready.

    `begin`, `end`: when batches were asked for; None where unknown.
    """
    workers, starts, ends = fetched(trace, process)
    if not workers:
        return None, None, None
    mean = float((ends - starts).mean())
    # What was folded has no times; fetches are never left out as short.
    if any(each in trace.folded and not trace.folded[each].is_short.all() for each in workers):
        return len(workers), mean, None
    return len(workers), mean, count_empty(begin, end, np.sort(ends))


def count_empty(begin: Ints, end: Ints, done: Ints) -> int:
    """Return how often no batch was ready when one was asked for: a worker finished one during the wait.

    `begin`, `end`: of every wait; `done`: when each batch was finished; all in order. Batches come in the order of
    the sampler, so one that is ready out of turn does not count; a batch that was finished before has only to travel.
    """
    during = np.searchsorted(done, end, side="right") > np.searchsorted(done, begin, side="right")
    return int(during.sum())


@cached_on_trace
def _kinds(trace: Trace) -> tuple[Kinds, Kinds]:
    """Return the kind of work of every region where it runs on a stream, and where it runs on a thread."""
    on_stream, on_thread = roles(trace)
    to_device = regions_where(trace, lambda region: _is_to_device(region.name))
    kind_on_stream = np.where(on_stream >= 0, _COMPUTE, -1)
    kind_on_stream[(on_stream >= 0) & to_device] = _COPY
    of_role = np.array([_KIND_OF_ROLE.get(role, _LAUNCH) for role in ROLES])
    kind_on_thread = np.where(on_thread >= 0, of_role[on_thread], -1)
    return kind_on_stream.astype(np.int8), kind_on_thread.astype(np.int8)


_KIND_OF_ROLE = {"data_loader": WAIT, "cpu_exec": _HOST}


def _is_to_device(name: str) -> bool:
    """Whether a copy brings data from the host to a GPU, by the names of Kineto, Nsight Systems and nvprof."""
    plain = name.lower().replace("-", "").replace(" ", "")
    return "htod" in plain or "hosttodevice" in plain
