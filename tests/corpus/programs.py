"""The corpus: real programs that write down their own steps, and how they are recorded.

A program is one file in `design/` (rules may be tuned on it), `judged/` or `sealed/` (for judging only: look at the
figures, not at the programs; the sealed ones were written by somebody who does not know the rules) or `negative/`
(programs in which there is nothing to find, or nothing to be sure of). It needs no arguments and a few seconds. A line
`ranks: 4` in its opening comment makes it an MPI program; C files are compiled with mpicc.

At its end every process writes the file `$CORPUS_TRUTH/<pid>`: one line `<what> <CLOCK_MONOTONIC, ns>` for every
beginning of a step. The first `what` is the truth, others are accepted: a batch of a GAN is two updates, a request some
tokens.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
GROUPS = ("design", "judged", "sealed")  # negative/ has tests of its own
CACHE = ROOT / "build" / "corpus"
MPICH = ROOT / ".venv" / "mpich"
STROBE = str(Path(sys.executable).with_name("strobe"))
TIMEOUT_S = 300
# Whatever of these changes may change what is recorded.
RECORDER = (
    *("src/strobe/record", "native/core", "native/structure", "native/adapters", "native/python"),
    "native/include",
)


@dataclass(frozen=True)
class Program:
    """One program of the corpus. ranks: 0 where MPI is not used."""

    path: Path
    ranks: int

    @property
    def name(self) -> str:
        """What tests and tables call it."""
        return self.path.stem

    @property
    def group(self) -> str:
        """`design`, `judged`, `sealed` or `negative`."""
        return self.path.parent.name

    def command(self, build: Path) -> list[str]:
        """What is started, after `strobe run`."""
        program = [str(compiled(self.path, build))] if self.path.suffix == ".c" else [sys.executable, str(self.path)]
        if self.ranks:
            return ["--", tool("mpiexec"), "-n", str(self.ranks), *program]
        return ["--", *program] if self.path.suffix == ".c" else program[1:]


@dataclass(frozen=True)
class Recording:
    """A trace of a program, and what its processes say their steps were: by pid and kind, times in CLOCK_MONOTONIC."""

    program: Program
    trace: Path
    truth: Mapping[int, Mapping[str, np.ndarray]]


def programs(*groups: str) -> list[Program]:
    """All programs of some groups (default: all), by name."""
    found = [path for group in groups or GROUPS for path in (HERE / group).iterdir()]
    return [Program(path, _ranks(path)) for path in sorted(found, key=lambda p: p.name) if path.suffix in (".py", ".c")]


def _ranks(path: Path) -> int:
    opening = path.read_text(encoding="utf-8")[:2000]
    found = re.search(r"\branks: (\d+)", opening)
    return int(found[1]) if found else 0


def tool(name: str) -> str:
    """A program of MPICH, which lies in a place of its own."""
    path = MPICH / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `./dev record` and `./dev bench corpus` put it there")
    return str(path)


def compiled(path: Path, build: Path) -> Path:
    """Compile a C program with MPI, optimised and with debug information, as users do."""
    binary = build / path.stem
    build.mkdir(parents=True, exist_ok=True)
    command = [tool("mpicc"), "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-o", str(binary), str(path), "-lm"]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return binary


def environment(truth: Path) -> dict[str, str]:
    """One thread per process, no hub, and nothing of a test runner or of another recording."""
    foreign = ("STROBE_", "PYTEST_", "COVERAGE", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    return {
        **kept,
        "CORPUS_TRUTH": str(truth),
        "MPI4PY_LIBMPI": str(next((MPICH / "lib").glob("libmpi.so.*"), "")),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONWARNINGS": "ignore",
    }


def record(
    program: Program, options: Sequence[str] = ("--keep", "all"), fresh: bool = False, any_recorder: bool = False
) -> Recording:
    """Record a program, or hand on the recording that an earlier call made of the same text with the same recorder.

    fresh: record it again. any_recorder: an earlier recorder's will do.
    """
    text = program.path.read_bytes() + " ".join(options).encode()
    name = f"{program.name}-{hashlib.sha256(text).hexdigest()[:12]}"
    folder = CACHE / f"{name}-{_recorder()}"
    done = [path.parent for path in CACHE.glob(f"{name}-*/done")] if any_recorder else []
    if done and not fresh:
        folder = max(done, key=lambda path: path.stat().st_mtime)
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:  # two tests may want the same recording
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _run(program, options, folder)
    truth = {int(path.name): _truth(path) for path in (folder / "truth").iterdir()}
    return Recording(program, folder / "trace.strobe", truth)


@cache
def _recorder() -> str:
    """A short name for this very recorder: recordings of another one are not used."""
    digest = hashlib.sha256()
    for folder in RECORDER:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _run(program: Program, options: Sequence[str], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "truth").mkdir(parents=True)
    command = [STROBE, "run", "--quiet", *options, "-o", str(folder / "trace.strobe"), *program.command(folder)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder / "truth"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(
            f"{program.name} ended with {done.returncode}:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        )
    (folder / "done").touch()


def _truth(path: Path) -> dict[str, np.ndarray]:
    times: dict[str, list[int]] = {}
    for line in path.read_text().splitlines():
        what, ns = line.split()
        times.setdefault(what, []).append(int(ns))
    return {what: np.array(each, dtype=np.int64) for what, each in times.items()}
