"""Whether training waits for its data, at which stage of the pipeline, and what more workers would gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.data_pipeline import Pipeline


def run(trace: Trace, *, form: str = "verdict") -> Table:
    """Judge the data pipeline of every rank that trains, or list its stages; means over the steps that are complete.

    Verdict: `data processing` (batches are not ready), `data transmission` (they are, but do not reach the GPU in
    time), or `neither`. Where the queue between workers and loop is known (strobe recorded the workers) it is
    MindInsight's rule: processing if no batch is ready more than 30 % of the times that one is asked for, else
    transmission. Elsewhere the wait itself tells. Either counts only from 5 % of the step on (torch-tb-profiler,
    XProf): an empty queue that costs nothing is no bottleneck. `highly` is from 20 % on. The wait is exposed time:
    neither the GPU nor calls of its runtime have anything to do.

    Prediction: with enough workers, fetching is hidden behind the rest, `best_step_ns` = step - exposed wait: stages
    side by side run at the pace of the slowest, max(rest, fetch / workers). Workers also take cores and memory from
    the loop: two published pairs of profiles (ResNet-50 with 0 and 4 workers, samples of torch-tb-profiler) gained
    62 % and 34 % of that. So `predicted_step_ns` is half-way from the step to the best.
    """
    from strobe.store.table import make_table
    from strobe.structure.data_pipeline import pipelines

    found = pipelines(trace)
    columns = _verdict_columns() if form == "verdict" else _stage_columns()
    rows = [row for each in found for row in ((_verdict(each),) if form == "verdict" else _stages(each))]
    about = "; ".join(dict.fromkeys(each.steps.said for each in found))
    return make_table(columns, rows, name="data_pipeline", about=about, note="" if rows else _NOTHING)


_NOTHING = (
    "no step that waits for a data loader is in this trace; PyTorch's DataLoader is recorded by itself, "
    "and PyTorch's profiler has its waits"
)


def _verdict_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that trains", extra=True),
        Column("verdict", "string", "", "data processing, data transmission, or neither"),
        Column("input_bound", "string", "", "not, moderately (5 % of the step), or highly (20 %)"),
        Column("duration_ns", "int64", "ns", "how long a step takes"),
        Column("wait_ns", "int64", "ns", "of it, waits for the next batch while nothing else happens"),
        Column("wait_share", "float64", "", "the same as a part of the step, 0 to 1"),
        Column("copy_ns", "int64", "ns", "of it, batches are copied to the GPU while that does not compute"),
        Column("copy_share", "float64", "", "the same as a part of the step, 0 to 1"),
        Column("workers", "int64", "", "worker processes of the loader; 0: the loop fetches, null: not recorded"),
        Column("fetch_ns", "int64", "ns", "work of all workers for the batches of a step, null where not recorded"),
        Column("worker_utilisation", "float64", "", "part of the workers' time that they fetch, 0 to 1"),
        Column("batches", "float64", "", "batches a step asks for", extra=True),
        Column("asked", "int64", "", "batches that these steps asked for, null where the queue is unknown"),
        Column("empty", "int64", "", "how often none was ready then, null where the queue is unknown"),
        Column("needed_workers", "int64", "", "least number of workers that keep up, null where fetch is unknown"),
        Column("predicted_step_ns", "int64", "ns", "expected duration of a step with enough workers"),
        Column("best_step_ns", "int64", "ns", "duration if all fetching were hidden"),
        Column("predicted_gain", "float64", "", "part of the step that the prediction saves, 0 to 1"),
        Column("advice", "string", "", "what to do about it"),
    )


def _stage_columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("rank", "int64", "", "rank of the process, null where it has none"),
        Column("process", "uint32", "", "process that trains", extra=True),
        Column("stage", "string", "", "fetch, queue, copy, compute, host: in the order in which a batch meets them"),
        Column("done_by", "string", "", "who does it"),
        Column("time_ns", "int64", "ns", "time it works in a step, all workers together; null where not recorded"),
        Column("exposed_ns", "int64", "ns", "part of the step that only it accounts for; adds up to the step"),
        Column("share", "float64", "", "exposed_ns as a part of the step, 0 to 1"),
        Column("utilisation", "float64", "", "part of its time that it works; of the queue: that a batch was ready"),
        Column("bottleneck", "bool", "", "whether the step goes at the pace of this stage"),
    )


def _verdict(found: Pipeline) -> tuple[object, ...]:
    """Return the row of one process."""
    return (
        found.steps.rank,
        found.steps.process,
        found.verdict,
        found.bound,
        round(found.duration),
        round(found.wait_exposed),
        found.wait_share,
        round(found.copy_exposed),
        found.copy_share,
        found.workers,
        None if found.fetch is None else round(found.fetch),
        _worker_utilisation(found),
        found.batches,
        found.asked,
        found.empty,
        found.needed_workers,
        round(found.predicted),
        round(found.best),
        1 - found.predicted / found.duration,
        _advice(found),
    )


def _worker_utilisation(found: Pipeline) -> float | None:
    return found.fetch / (found.workers * found.duration) if found.fetch is not None and found.workers else None


def _advice(found: Pipeline) -> str:
    """Return what to do, in one sentence."""
    if found.verdict == "neither":
        return "the data pipeline keeps up: look at compute and host"
    if found.verdict == "data transmission":
        if not found.has_gpu:
            return "batches are ready, but take long to reach the loop: return fewer and larger tensors from a fetch"
        return "let batches travel while the GPU computes: DataLoader(pin_memory=True) and .to(gpu, non_blocking=True)"
    if found.workers == 0:
        enough = 1 + (found.needed_workers or 1)  # one more evens out slow batches
        return f"let worker processes fetch: DataLoader(num_workers={enough}, persistent_workers=True)"
    if found.workers and found.needed_workers is not None and found.needed_workers <= found.workers:
        return "workers keep up on average, slow batches hold the loop up: raise prefetch_factor"
    return "raise num_workers while cores are free, or make a fetch cheaper (decoding, transforms)"


def _stages(found: Pipeline) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one process."""
    who, step = (found.steps.rank, found.steps.process), found.duration
    if found.verdict == "data processing":
        slow = "fetch"
    elif found.verdict == "data transmission":
        slow = "queue" if found.wait_exposed > found.copy_exposed else "copy"
    else:
        slow = "compute" if found.compute_exposed >= found.host_exposed else "host"

    def row(stage: str, by: str, time: float | None, exposed: float, utilisation: float | None) -> tuple[object, ...]:
        known = None if time is None else round(time)
        return (*who, stage, by, known, round(exposed), exposed / step, utilisation, stage == slow)

    if found.workers == 0:
        yield row("fetch", "the loop itself", found.wait, found.wait_exposed, found.wait / step)
    else:
        by = "worker processes" if found.workers is None else f"{found.workers} worker processes"
        ready = 1 - found.empty / found.asked if found.asked and found.empty is not None else None
        yield row("fetch", by, found.fetch, 0.0, _worker_utilisation(found))
        yield row("queue", "the loop, waiting", found.wait, found.wait_exposed, ready)
    if found.has_gpu:
        yield row("copy", "GPU", found.copy, found.copy_exposed, found.copy / step)
    yield row(
        "compute",
        "GPU" if found.has_gpu else "operators on the host",
        found.compute,
        found.compute_exposed,
        found.compute / step,
    )
    yield row("host", "launching, Python", found.host_exposed, found.host_exposed, None)


ANALYSIS = Analysis(
    "data_pipeline",
    "Does training wait for its data, at which stage, and what would more workers gain?",
    run,
    options=(
        Option(
            "form", "one row a rank, or a row a stage", default="verdict", choices=("verdict", "stages"), flags=True
        ),
    ),
)
