"""The workers of a Dask cluster: of a scheduler that runs already, or started as jobs of a batch system."""

from __future__ import annotations

import gc
import logging
import shutil
import socket
import subprocess
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import strobe
from strobe.errors import StrobeError, UsageError
from strobe.workers.map_combine import Partial, Runs, balanced, combined

if TYPE_CHECKING:
    from strobe.trace.trace import Trace

# Processes (ranks) of a task: the scheduler takes about 1 ms for a task, so one for each of 10 000 ranks is too many.
_MOST_PROCESSES = 32
_PARTS_EACH = 4
# Answers that one task combines.
_FAN_IN = 16
_CONNECT_S = 10
_OPTIONS = "Example: --cluster-option cores=8 --cluster-option memory=16GB --cluster-option queue=QUEUE"
_INSTALL = "Install what a cluster needs: pip install 'strobe[cluster]'"


class DaskWorkers:
    """A client of a Dask scheduler. Tasks of workers that die are run again by others."""

    threads = 0

    def __init__(self, client: Any, cluster: Any = None) -> None:
        self._client, self._cluster = client, cluster

    def wanted(self, trace: Trace) -> bool:
        """Return True: this process may not have opened a single file itself."""
        return True

    def parts(self, spans: Sequence[int]) -> list[range]:
        """Cut processes into parts of about equal work, some for each worker, of at most 32 processes."""
        threads = sum(self._client.nthreads().values())
        return balanced(spans, max(1, threads) * _PARTS_EACH, _MOST_PROCESSES)

    def answer(self, tasks: Sequence[Runs]) -> Partial:
        """Run all tasks, and combine what they return as a tree: also that is done by the workers."""
        with _in_words():
            version = strobe.__version__
            found = [self._client.submit(run_task, task, version, pure=False) for task in tasks]
            while len(found) > 1:
                groups = [found[at : at + _FAN_IN] for at in range(0, len(found), _FAN_IN)]
                found = [self._client.submit(combined, group, pure=False) for group in groups]
            answer: Partial = found[0].result()
            return answer

    def close(self) -> None:
        """Leave the scheduler; the cluster that we started ends."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def run_task(task: Runs, version: str) -> Partial:
    """Run a task of a client that has this version of strobe."""
    if version != strobe.__version__:
        raise StrobeError(
            f"the worker on {socket.gethostname()} has strobe {strobe.__version__}, and {version} asks",
            do="Install the same strobe for both.",
        )
    try:
        return task.run()
    except StrobeError:
        raise
    except Exception as error:
        # In words: an exception that cannot be sent would leave the client waiting.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}:{place.lineno}"
        what = f"a worker on {socket.gethostname()} failed with {type(error).__name__}: {error}"
        raise StrobeError(what, do="This is a mistake of strobe: please report it.", where=where) from None


def of_scheduler(address: str) -> DaskWorkers:
    """Return the workers of a scheduler. Raises StrobeError if none answers, or it has no workers."""
    distributed = _imported("distributed")
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        why = str(error) or f"no answer within {_CONNECT_S} s"
        raise StrobeError(f"no Dask scheduler answers at '{address}': {why}", do="Start one: dask scheduler") from error
    if not client.nthreads():
        client.close()
        raise StrobeError(f"the Dask scheduler at '{address}' has no workers", do=f"Start some: dask worker {address}")
    return DaskWorkers(client)


def of_slurm(jobs: int, options: Mapping[str, str | int]) -> DaskWorkers:
    """Start workers as jobs of SLURM, and return them once the first one runs: that may wait in the queue for long."""
    cluster = slurm_cluster(options)
    # If jobs were refused later, we would wait for them without notice.
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(cluster.job_script())
        script.flush()
        tried = subprocess.run(["sbatch", "--test-only", script.name], capture_output=True, text=True)
    if tried.returncode:
        cluster.close()
        message = (tried.stderr.strip() or tried.stdout.strip()).splitlines()
        raise UsageError(f"SLURM refuses such jobs: {message[0] if message else 'no reason given'}", do=_OPTIONS)
    with _in_words():
        cluster.scale(jobs=jobs)
        client = _imported("distributed").Client(cluster, timeout=_CONNECT_S)
        client.wait_for_workers(1)
    return DaskWorkers(client, cluster)


def slurm_cluster(options: Mapping[str, str | int]) -> Any:
    """Return a cluster of dask-jobqueue with these options; others are taken from ~/.config/dask/jobqueue.yaml."""
    jobqueue = _imported("dask_jobqueue")
    if not shutil.which("sbatch"):
        raise UsageError("this computer has no sbatch", do="Ask where jobs are submitted: on a login node.")
    # Dask complains, too, that what it refused to make was never closed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            return jobqueue.SLURMCluster(scheduler_options={"dashboard": False, "dashboard_address": ":0"}, **options)
        except (TypeError, ValueError) as error:
            refused = str(error).splitlines()[0]
        gc.collect()
    what = f"dask-jobqueue refuses these options of the cluster: {refused}"
    raise UsageError(what, do=f"It needs cores and memory. {_OPTIONS}")


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise StrobeError for errors of workers."""
    distributed = _imported("distributed")
    try:
        yield
    except distributed.KilledWorker as error:
        raise StrobeError(
            "several workers of the Dask cluster have died at this question",
            do="They may need more memory, or fewer threads each; see their logs.",
        ) from error
    except (distributed.client.FutureCancelledError, distributed.comm.CommClosedError, OSError) as error:
        raise StrobeError("the Dask scheduler is gone", do="Start it anew, and ask again.") from error
    except ModuleNotFoundError as error:
        raise StrobeError(
            f"a worker of the Dask cluster has no module {error.name}",
            do="Install strobe with the Python of the workers, the same version as here.",
        ) from error


def _imported(name: str) -> ModuleType:
    from importlib import import_module

    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"this needs {name.replace('_', '-')}, which is not installed", do=_INSTALL) from error
    # The death of a worker does not concern the user, as long as others do its work.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return module
