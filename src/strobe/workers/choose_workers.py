"""The choice of workers for a trace: a pool of processes, or a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strobe.errors import UsageError

if TYPE_CHECKING:
    from strobe.workers.map_combine import Workers

CLUSTERS = ("slurm",)


def hire(jobs: int | None, scheduler: str, cluster: str, options: Mapping[str, str | int]) -> Workers:
    """Return the workers that `strobe.open` is asked for: see there. Raises UsageError if that makes no sense."""
    if scheduler and cluster:
        raise UsageError("workers come from a scheduler or from a cluster, not from both", do="Leave one of them out.")
    if options and not cluster:
        raise UsageError("options for a cluster, but no cluster", do="--cluster slurm")
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} jobs cannot answer anything", do="1 or more")
    if scheduler:
        if jobs is not None:
            raise UsageError("how many workers a scheduler has is not chosen here", do="Leave --jobs out.")
        from strobe.workers.dask_cluster import of_scheduler

        return of_scheduler(scheduler)
    if cluster:
        if cluster not in CLUSTERS:
            raise UsageError(f"no kind of cluster '{cluster}'", do=f"Kinds: {', '.join(CLUSTERS)}")
        from strobe.workers.dask_cluster import of_slurm

        return of_slurm(jobs or 1, options)
    from strobe.workers.process_pool import LEAST_SPANS, Pool, default_jobs

    return Pool(default_jobs(), least_spans=LEAST_SPANS) if jobs is None else Pool(jobs)
