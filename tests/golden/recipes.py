"""How each golden trace was made: `RECIPES[name](folder)` leaves `folder/NAME.strobe`. Only make.py calls them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("programs")
BIN = Path(sys.executable).parent
PUBLIC = "GOLDEN_PUBLIC_TRACES"  # the folder of public traces; README.md lists those that are used
MPICH = "GOLDEN_MPICH"  # where MPICH from PyPI is installed

RECIPES: dict[str, Callable[[Path], None]] = {}


def recipe(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """Register a recipe under its name, with dashes."""
    RECIPES[make.__name__.replace("_", "-")] = make
    return make


def run(
    folder: Path, *command: object, environment: Mapping[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> None:
    """Run a command in the folder. Raises RuntimeError unless it ends with one of `codes`."""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **(environment or {})}, check=False
    )
    if done.returncode not in codes:
        raise RuntimeError(f"{command} ended with {done.returncode}")


def record(folder: Path, name: str, *words: object, **more: object) -> None:
    """Run `strobe run WORDS`; the trace is NAME.strobe."""
    run(folder, BIN / "strobe", "run", "--quiet", "-o", f"{name}.strobe", *words, **more)  # type: ignore[arg-type]


def program(folder: Path, name: str) -> str:
    """Copy a program into the folder, so that the trace has a plain path of it."""
    shutil.copy(PROGRAMS / name, folder)
    return name


def imported(folder: Path, name: str, *files: object) -> None:
    """Import files of another tool; the trace is NAME.strobe, and the files are gone when it is opened."""
    cache = folder / "cache"
    run(folder, BIN / "strobe", "info", *files, environment={"STROBE_CACHE": str(cache)})
    (made,) = cache.glob("*.strobe")
    made.rename(folder / f"{name}.strobe")


def public(folder: Path, path: str) -> str:
    """Copy a public trace into the folder."""
    source = Path(os.environ[PUBLIC]) / path
    (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / source.name)
    for each in [folder / source.name, *(folder / source.name).rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    return source.name


# --- recorded ---------------------------------------------------------------------------------------------------------


def _training(folder: Path) -> str:
    shutil.copy(SOURCE / "examples/train_cnn.py", folder)
    return "train_cnn.py"


@recipe
def training(folder: Path) -> None:
    """A PyTorch training with loader workers, as `strobe run` records it by default."""
    record(folder, "training", _training(folder), "--steps", 60)


@recipe
def training_kept(folder: Path) -> None:
    """The same with every step in detail."""
    record(folder, "training-kept", "--keep", "all", _training(folder), "--steps", 12, "--workers", 1)


@recipe
def mpi(folder: Path) -> None:
    """Four ranks of a conjugate gradient solver in C: halos, derived data types, reductions, gathers."""
    source, home = SOURCE / "tests/record/mpi/heat.c", Path(os.environ[MPICH])
    shutil.copy(source, folder)
    run(folder, home / "bin/mpicc", "-g", "-O1", "-fno-inline", "heat.c", "-o", "heat", "-lm")
    record(folder, "mpi", "--", home / "bin/mpirun", "-n", 4, "./heat")


@recipe
def mpi_traffic(folder: Path) -> None:
    """Three ranks that move data in every way that MPI has."""
    source, home = SOURCE / "tests/record/mpi/traffic.c", Path(os.environ[MPICH])
    shutil.copy(source, folder)
    run(folder, home / "bin/mpicc", "-g", "-O1", "traffic.c", "-o", "traffic", "-pthread", "-lm")
    record(folder, "mpi-traffic", "--keep", "all", "--", home / "bin/mpirun", "-n", 3, "./traffic")


@recipe
def gloo(folder: Path) -> None:
    """Two ranks of torch.distributed with gloo, and DDP."""
    shutil.copy(SOURCE / "tests/record/distributed/collectives.py", folder)
    torchrun = [BIN / "torchrun", "--nproc-per-node", 2, "--master-addr", "127.0.0.1", "collectives.py"]
    record(folder, "gloo", "--", *torchrun, environment={"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})


@recipe
def sampled(folder: Path) -> None:
    """Threads looked at 1,000 times a second instead of recorded calls."""
    record(folder, "sampled", "--preset", "sampling", program(folder, "sampled.py"))


@recipe
def ranges(folder: Path) -> None:
    """NVTX ranges, and samples of a loop of which most steps are statistics."""
    record(folder, "ranges", "--preset", "sampling", "--keep", 4, program(folder, "ranges.py"))


@recipe
def source_lines(folder: Path) -> None:
    """Hits and time of source lines."""
    record(folder, "source-lines", "--lines", "counted_lines.py", program(folder, "counted_lines.py"))


@recipe
def annotated(folder: Path) -> None:
    """Regions, counters, marks, steps, counters of each region, C calls, a thread, and a child process."""
    options = ["--trace", "+c_calls", "--counters-per-region", "load,phase-*", "--keep", "all"]
    record(folder, "annotated", *options, program(folder, "annotated.py"))


@recipe
def folded_loop(folder: Path) -> None:
    """A loop of plain Python of which few iterations are in detail."""
    record(folder, "folded-loop", program(folder, "solver.py"))


@recipe
def killed(folder: Path) -> None:
    """A process that SIGKILL ended."""
    record(folder, "killed", program(folder, "killed.py"), codes=(-signal.SIGKILL, 128 + signal.SIGKILL))


def _gpu(folder: Path, name: str, *options: str, steps: int) -> None:
    """Record gpu_training.py on the fake GPU, while the fake NVML is asked."""
    from tests.gpu import fake_cuda
    from tests.record.test_gpu_metrics import FAKES, WITH_DRIVER

    (folder / "driver").touch()
    (folder / "strobe_with_driver.py").write_text(WITH_DRIVER)
    given = fake_cuda.environment("13.0")
    gpus = [{"pid_file": str(folder / "pid"), "gpm": 1, "reasons": 0x4 | 0x20}]
    given |= {
        "FAKE_GPUS": json.dumps({"gpus": gpus, "log": str(folder / "log")}),
        "PYTHONPATH": f"{FAKES}:{given['PYTHONPATH']}",
        "GPU_STEPS": str(steps),
    }
    inside = [sys.executable, "strobe_with_driver.py", "driver", "run", "--quiet", "-o", f"{name}.strobe"]
    run(folder, *inside, *options, program(folder, "gpu_training.py"), environment=given)


@recipe
def gpu(folder: Path) -> None:
    """Kernels, copies, graphs, memory, events and waits on the fake GPU, and what its NVML reads."""
    _gpu(folder, "gpu", "--trace", "+cuda+memory+events", "--keep", "all", steps=24)


@recipe
def gpu_folded(folder: Path) -> None:
    """The same of which most steps are statistics."""
    _gpu(folder, "gpu-folded", "--keep", "5", steps=150)


@recipe
def nccl(folder: Path) -> None:
    """Two ranks with collectives of NCCL on the fake GPU."""
    from tests.gpu import fake_cuda
    from tests.gpu.test_nccl import CALLS, PROGRAM
    from tests.record.workshop import nvtx_headers

    (folder / "calls.c").write_text(CALLS)
    flags = ["-shared", "-fPIC", "-O1", f"-I{nvtx_headers()}", "-o", "calls.so", "calls.c", "-ldl"]
    run(folder, "gcc", *flags)
    (folder / "program.py").write_text(PROGRAM)
    started = []
    for rank in (0, 1):
        job = {"RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "CALLS": str(folder / "calls.so")}
        command = [str(BIN / "strobe"), "run", "--quiet", "-o", "nccl.strobe", "program.py"]
        started.append(subprocess.Popen(command, cwd=folder, env=fake_cuda.environment("13.0") | job))
    for each in started:
        if each.wait(60):
            raise RuntimeError(f"a rank ended with {each.returncode}")


# --- imported ---------------------------------------------------------------------------------------------------------


@recipe
def kineto(folder: Path) -> None:
    """A training of PyTorch on an A100: kernels, launches, waits."""
    imported(folder, "kineto", public(folder, "kineto/alexnet_critical_path.json.gz"))


@recipe
def kineto_ranks(folder: Path) -> None:
    """Two ranks of a training of 128, with collectives of NCCL: a folder as HTA reads it."""
    imported(folder, "kineto-ranks", public(folder, "kineto/two_ranks"))


@recipe
def kineto_stacks(folder: Path) -> None:
    """What torch.profiler writes of a training on the CPU: Python functions, shapes, memory."""
    run(folder, sys.executable, program(folder, "profiled.py"), "profiled.json")
    imported(folder, "kineto-stacks", "profiled.json")


@recipe
def nsys(folder: Path) -> None:
    """A report of Nsight Systems with CUDA, MPI and NVTX."""
    imported(folder, "nsys", public(folder, "nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite"))


@recipe
def otf2(folder: Path) -> None:
    """Two ranks of MPI as Score-P writes them, with counters of PAPI."""
    imported(folder, "otf2", public(folder, "otf2/ping-pong-otf2-papi"))


@recipe
def xplane(folder: Path) -> None:
    """A matrix product of JAX, as its profiler writes it."""
    imported(folder, "xplane", public(folder, "xplane/jax08_gemm.xplane.pb"))


@recipe
def perfetto(folder: Path) -> None:
    """The annotated program, written as Perfetto's protobuf and read again."""
    annotated(folder)
    run(folder, BIN / "strobe", "export", "annotated.strobe", "--to", "perfetto", "-o", "annotated.pftrace")
    imported(folder, "perfetto", "annotated.pftrace")


@recipe
def profile(folder: Path) -> None:
    """A profile without times: the sampled program, written for pprof and read again."""
    sampled(folder)
    run(folder, BIN / "strobe", "export", "sampled.strobe", "--to", "pprof", "-o", "sampled.pb.gz")
    imported(folder, "profile", "sampled.pb.gz")


@recipe
def cprofile(folder: Path) -> None:
    """What cProfile counts of the solver."""
    run(folder, sys.executable, "-m", "cProfile", "-o", "solver.pstats", program(folder, "solver.py"))
    imported(folder, "cprofile", "solver.pstats")


@recipe
def callgrind(folder: Path) -> None:
    """A profile of Valgrind with calls and several events."""
    text = (SOURCE / "tests/samples/callgrind/callgrind.out").read_text()
    (folder / "callgrind.out").write_text(text.replace("/tmp/sample/", "/src/"))
    imported(folder, "callgrind", "callgrind.out")
