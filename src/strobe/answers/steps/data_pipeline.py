"""Whether training waits for its data, at which stage of the pipeline, and what more workers would gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from strobe.analyses.steps.data_pipeline import ANALYSIS
from strobe.breakdown.data_pipeline import MAKE_AHEAD, Pipeline, pipelines
from strobe.model.units import format_share
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace


def run(trace: Trace, *, form: str) -> Table:
    """Return the answer; see `strobe.analyses.steps.data_pipeline`."""
    found = list(pipelines(trace))
    rows = [row for each in found for row in ((_verdict(each),) if form == "verdict" else _stages(each))]
    return make_table(ANALYSIS.columns_with(form=form), rows, note="" if rows else _NOTHING)


_NOTHING = (
    "no step in this trace waits for a data loader; strobe records PyTorch's DataLoader, and PyTorch's profiler has its"
    " waits"
)


def _verdict(found: Pipeline) -> Mapping[str, object]:
    return {
        **vars(found),
        "rank": found.steps.rank,
        "process": found.steps.process,
        "verdict": found.verdict,
        "input_bound": found.bound,
        "duration_ns": round(found.duration),
        "wait_ns": round(found.wait_exposed),
        "wait_share": found.wait_share,
        "copy_ns": round(found.copy_exposed),
        "copy_share": found.copy_share,
        "fetch_ns": None if found.fetch is None else round(found.fetch),
        "worker_utilisation": _worker_utilisation(found),
        "needed_workers": found.needed_workers,
        "predicted_step_ns": round(found.predicted),
        "best_step_ns": round(found.best),
        "predicted_gain": 1 - found.predicted / found.duration,
        "advice": _advice(found),
    }


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
    if not found.gains:
        if found.usual_wait < found.wait_exposed / 2:
            return "most of the wait is in steps that are slow: `strobe steps --outliers` lists them with their cause"
        usual = format_share(found.usual_wait / found.duration)
        return f"in steps that are not slow the wait is {usual} of a step: a gain by other workers is not sure"
    if found.maker:
        return f"the main thread makes batches itself, in {found.maker}: {MAKE_AHEAD}"
    if found.workers == 0:
        enough = 1 + (found.needed_workers or 1)  # one more evens out slow batches
        return f"let worker processes fetch: DataLoader(num_workers={enough}, persistent_workers=True)"
    if found.workers and found.needed_workers is not None and found.needed_workers <= found.workers:
        return "workers keep up on average, slow batches hold the loop up: raise prefetch_factor"
    return "raise num_workers while cores are free, or make a fetch cheaper (decoding, transforms)"


def _stages(found: Pipeline) -> Iterator[Mapping[str, object]]:
    step = found.duration
    if found.verdict == "data processing":
        slow = "fetch"
    elif found.verdict == "data transmission":
        slow = "queue" if found.wait_exposed > found.copy_exposed else "copy"
    else:
        slow = "compute" if found.compute_exposed >= found.host_exposed else "host"

    def row(stage: str, by: str, time: float | None, exposed: float, utilisation: float | None) -> Mapping[str, object]:
        return {
            "rank": found.steps.rank,
            "process": found.steps.process,
            "stage": stage,
            "done_by": by,
            "time_ns": None if time is None else round(time),
            "exposed_ns": round(exposed),
            "share": exposed / step,
            "utilisation": utilisation,
            "bottleneck": stage == slow,
        }

    if found.workers == 0:
        yield row("fetch", "the loop itself", found.wait, found.wait_exposed, found.wait / step)
    else:
        by = "worker processes" if found.workers is None else f"{found.workers} worker processes"
        ready = 1 - found.empty / found.asked if found.asked and found.empty is not None else None
        yield row("fetch", by, found.fetch, 0.0, _worker_utilisation(found))
        yield row("queue", "the loop, waiting", found.wait, found.wait_exposed, ready)
    if found.has_gpu:
        yield row("copy", "GPU", found.copy, found.copy_exposed, found.copy / step)
    by = "GPU" if found.has_gpu else "operators on the host"
    yield row("compute", by, found.compute, found.compute_exposed, found.compute / step)
    yield row("host", "launching, Python", found.host_exposed, found.host_exposed, None)
