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
from typing import TYPE_CHECKING, Any, cast

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
_OPTIONS = "Say: --cluster-option cores=8 --cluster-option memory=16GB --cluster-option queue=QUEUE"
_INSTALL = "Install what a cluster needs: pip install 'strobe[cluster]'"


class DaskWorkers:
    """A client of a Dask scheduler. Tasks of workers that die are run again by others."""

    threads = 0

    def __init__(self, client: Any, cluster: Any = None) -> None:
        self._client, self._cluster = client, cluster

    def wanted(self, trace: Trace) -> bool:
        """Whether to ask them: always, we may not have opened a single file ourselves."""
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
            return cast(Partial, found[0].result())

    def close(self) -> None:
        """Leave the scheduler; the cluster that we started ends."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def run_task(task: Runs, version: str) -> Partial:
    """Do what a client asks for, who has this version of strobe."""
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
        said = f"a worker on {socket.gethostname()} failed with {type(error).__name__}: {error}"
        raise StrobeError(said, do="This is a mistake of strobe: please report it.", where=_place(error)) from None


def _place(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{place.filename}:{place.lineno}"


def of_scheduler(address: str) -> DaskWorkers:
    """Return the workers of a scheduler. Raises StrobeError where none answers, or it has no workers."""
    distributed = _imported("distributed")
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        why = str(error) or f"it says nothing for {_CONNECT_S} s"
        raise StrobeError(f"no Dask scheduler answers at '{address}': {why}", do="Start one: dask scheduler") from error
    if not client.nthreads():
        client.close()
        raise StrobeError(f"the Dask scheduler at '{address}' has no workers", do=f"Start some: dask worker {address}")
    return DaskWorkers(client)


def of_slurm(jobs: int, options: Mapping[str, str | int]) -> DaskWorkers:
    """Start workers as jobs of SLURM, and return them once the first one runs: that may wait in the queue for long."""
    cluster = slurm_cluster(options)
    # Nothing tells us later that jobs are refused: we would wait for them.
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(cluster.job_script())
        script.flush()
        tried = subprocess.run(["sbatch", "--test-only", script.name], capture_output=True, text=True)
    if tried.returncode:
        cluster.close()
        said = (tried.stderr.strip() or tried.stdout.strip()).splitlines()
        raise UsageError(f"SLURM refuses such jobs: {said[0] if said else 'it does not say why'}", do=_OPTIONS)
    with _in_words():
        cluster.scale(jobs=jobs)
        client = _imported("distributed").Client(cluster, timeout=_CONNECT_S)
        client.wait_for_workers(1)
    return DaskWorkers(client, cluster)


def slurm_cluster(options: Mapping[str, str | int]) -> Any:
    """Return a cluster of dask-jobqueue with these options; what they leave out is in ~/.config/dask/jobqueue.yaml."""
    jobqueue = _imported("dask_jobqueue")
    if not shutil.which("sbatch"):
        raise UsageError("there is no sbatch on this computer", do="Ask where jobs are submitted: on a login node.")
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
    """Say in a sentence what goes wrong with workers."""
    distributed = _imported("distributed")
    try:
        yield
    except distributed.KilledWorker as error:
        raise StrobeError(
            "the workers of the Dask cluster die at this question, several have",
            do="They may need more memory, or fewer threads each; their logs say why.",
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
    # A worker that dies is none of the user's business, as long as others do its work.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return module
