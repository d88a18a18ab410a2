"""Dask answers questions to many ranks: a real scheduler and real workers on loopback, one of which is killed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import strobe
from strobe.cli.main import main
from strobe.errors import StrobeError, TraceError, UsageError
from strobe.trace.archive import process_files
from strobe.workers.dask_cluster import slurm_cluster
from strobe.workers.remote_processes import OpenTask
from tests.deep.ranks import write_ranks
from tests.deep.test_map_combine import QUESTIONS, answers, same

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning")

RANKS = 6
# Workers hold their next task while the file `hold` is there, and say so by a file named after their process.
HELD = """
import os, time
from pathlib import Path
from strobe.workers.map_combine import Task
folder = Path(os.environ["HELD"])
run = getattr(Task, "not_held", Task.run)  # Dask runs this file twice
def held(task):
    while (folder / "hold").exists():
        (folder / str(os.getpid())).touch()
        time.sleep(0.01)
    return run(task)
Task.not_held, Task.run = run, held
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ranks(tmp_path_factory.mktemp("dask") / "run", RANKS)


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def soon(there: Callable[[], bool]) -> None:
    while not there():
        time.sleep(0.02)


@contextmanager
def cluster(folder: Path, workers: int, *preload: str) -> Iterator[str]:
    """Start a scheduler and workers of one thread each; yield its address once all workers are there."""
    file = folder / "scheduler.json"
    with ExitStack() as stack:
        scheduler = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        stack.enter_context(running("distributed.cli.dask_scheduler", *scheduler))
        soon(file.exists)
        for number in range(workers):
            own = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder / str(number)))
            at = ("--scheduler-file", str(file), "--host", "127.0.0.1")
            stack.enter_context(running("distributed.cli.dask_worker", *at, *own, *preload))
        with distributed.Client(scheduler_file=str(file)) as client:
            soon(lambda: len(client.nthreads()) == workers)
            address = client.scheduler.address
        yield address


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a file `hold` holds the workers."""
    return tmp_path_factory.mktemp("held")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, held: Path) -> Iterator[str]:
    own = tmp_path_factory.mktemp("cluster")
    (own / "held.py").write_text(HELD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELD", str(held))
        with cluster(own, 2, "--preload", str(own / "held.py")) as found:
            yield found


def test_dask_answers_what_one_loop_does(folder: Path, address: str) -> None:
    with strobe.open(folder, scheduler=address) as trace:
        assert not any(reader._reader for reader in trace.readers)  # type: ignore[attr-defined]
        for name, options in QUESTIONS:
            if name != "step_time":
                trace.ask(name, **options)
        # Nobody but the workers opened a file. (Waits between ranks, of which the time of steps has a sentence, are one
        # answer of all of them: a short log is read here.)
        assert not any(reader._reader for reader in trace.readers)  # type: ignore[attr-defined]
        same(answers(strobe.open(folder, jobs=1)), answers(trace))


def test_what_workers_opened_can_be_read_here_too(folder: Path, address: str) -> None:
    here = strobe.open(folder, jobs=1)
    with strobe.open(folder, scheduler=address) as trace:
        for name in ("processes", "locations", "regions", "call_paths"):
            assert getattr(trace, name).to_arrow().equals(getattr(here, name).to_arrow()), name
        assert trace.spans().to_arrow().equals(here.spans().to_arrow())
        assert trace.info == here.info


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(folder: Path, address: str, held: Path) -> None:
    expected = strobe.open(folder, jobs=1).ask("operators", per="rank", step="all")
    found: list[strobe.Table] = []

    def ask() -> None:
        with strobe.open(folder, scheduler=address) as trace:
            found.append(trace.ask("operators", per="rank", step="all"))

    (held / "hold").touch()
    asking = threading.Thread(target=ask)
    asking.start()
    soon(lambda: len(list(held.iterdir())) == 3)  # each of the two is at a task that it does not finish
    killed = min(path for path in held.iterdir() if path.name != "hold")
    os.kill(int(killed.name), signal.SIGKILL)
    (held / "hold").unlink()
    asking.join(60)
    with distributed.Client(address) as client:
        assert len(client.nthreads()) == 1
    assert found[0].to_arrow().equals(expected.to_arrow())
    assert found[0].about == expected.about


def test_a_worker_that_cannot_see_the_trace_says_so(folder: Path, address: str) -> None:
    with strobe.open(folder, scheduler=address) as trace:
        assert trace.workers is not None
        with pytest.raises(TraceError, match=r"cannot read '/nowhere/run\.strobe'") as error:
            trace.workers.answer([OpenTask(Path("/nowhere/run.strobe"), ())])
    assert "a disk that all workers share" in str(error.value)


def test_a_process_that_cannot_be_read_is_left_out_and_named(folder: Path, address: str, tmp_path: Path) -> None:
    part = tmp_path / "part.strobe"
    part.mkdir()
    for each in process_files(folder)[:3]:
        (part / each.blocks.name).write_bytes(each.blocks.read_bytes())
    (part / "job.json").write_bytes((folder / "job.json").read_bytes())
    process_files(part)[1].blocks.write_bytes(b"no blocks")
    here = strobe.open(part, jobs=1)
    with strobe.open(part, scheduler=address) as trace:
        assert len(trace.readers) == 2
        assert trace.quality.rows() == here.quality.rows()
        assert trace.ask("profile").rows() == here.ask("profile").rows()


def test_no_scheduler_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strobe.workers.dask_cluster._CONNECT_S", 0.3)
    with pytest.raises(StrobeError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        strobe.open(folder, scheduler="tcp://127.0.0.1:9")


def test_a_scheduler_without_workers_is_one_sentence(folder: Path) -> None:
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as alone,
        pytest.raises(StrobeError, match="has no workers"),
    ):
        strobe.open(folder, scheduler=alone.scheduler_address)


# SLURM: what dask-jobqueue submits, by a `sbatch` that starts it here

SBATCH = """#!/bin/sh
if [ "$1" = --test-only ]; then
  if grep -q "SBATCH -p closed" "$2"; then echo "sbatch: error: invalid partition specified: closed" >&2; exit 1; fi
  exit 0
fi
cp "$1" "$JOBS/$$.sh"
setsid sh "$JOBS/$$.sh" >/dev/null 2>&1 &
echo $! >"$JOBS/$$.pid"
echo "Submitted batch job $$"
"""
SCANCEL = """#!/bin/sh
kill -TERM -- "-$(cat "$JOBS/$1.pid")"
"""


@pytest.fixture
def batch_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """SLURM as far as dask-jobqueue sees it; return the folder with the scripts of submitted jobs."""
    commands, jobs = tmp_path / "bin", tmp_path / "jobs"
    for each in (commands, jobs):
        each.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("JOBS", str(jobs))
    monkeypatch.chdir(tmp_path)
    return jobs


def test_the_commands_of_the_guide_work_and_answer_what_one_loop_does(
    folder: Path, address: str, batch_system: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/cluster.md").read_text()
    shown = guide.partition("```\n")[2].partition("```")[0].replace("\\\n", "").splitlines()
    assert len(shown) == 3
    for line in shown:
        line = line.partition("#")[0].replace("big.strobe", str(folder)).replace("tcp://node1:8786", address)
        words = shlex.split(line)[1:]
        # A job must find its way back to this computer, which has one network only; and one job of one core is enough.
        here = ["--jobs", "1", "--cluster-option", "interface=lo", "--cluster-option", "cores=1"]
        assert main([*words, *(here if "--cluster" in words else ()), "--json"]) == 0
        answer = capsys.readouterr().out
        assert main([*words[:2], "--jobs", "1", "--json"]) == 0
        assert answer == capsys.readouterr().out
    (script,) = [path.read_text() for path in batch_system.glob("*.sh")]
    assert "#SBATCH -p short\n" in script
    assert "#SBATCH -t 00:10:00\n" in script
    assert f"{sys.executable} -m distributed.cli.dask_worker tcp://127.0.0.1:" in script
    # The job ends with the question.
    soon(lambda: not any(alive(int(path.read_text())) for path in batch_system.glob("*.pid")))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_that_slurm_refuses_are_one_sentence(folder: Path, batch_system: Path) -> None:
    options = {"queue": "closed", "cores": 1, "memory": "1GB", "interface": "lo"}
    with pytest.raises(UsageError, match="refuses such jobs: sbatch: error: invalid partition"):
        strobe.open(folder, cluster="slurm", cluster_options=options)
    assert not list(batch_system.iterdir())


def test_options_that_dask_jobqueue_refuses_are_one_sentence(batch_system: Path) -> None:
    with pytest.raises(UsageError, match="cores and memory"):
        slurm_cluster({"queue": "short"})
