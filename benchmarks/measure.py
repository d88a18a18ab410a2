"""What the benchmarks share: running commands interleaved, CPU time with children, and a table of the figures."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
STROBE = str(Path(sys.executable).with_name("strobe"))
EXAMPLE = ROOT / "examples/train_cnn.py"


@dataclass(frozen=True)
class Run:
    """One finished command: CPU seconds of it and all its children, its peak memory, and what it printed."""

    cpu_s: float
    peak_kib: int
    stdout: str
    stderr: str
    returncode: int


def run(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end. wait4 reports the children that it waited for, too."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=err, env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Run(
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss,
            out.read().decode(),
            err.read().decode(),
            process.returncode,
        )


def checked(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> Run:
    """Run a command that must succeed."""
    done = run(command, cwd, env)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def interleaved(rounds: int, ways: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rounds in which every way runs once, forwards and backwards in turn, so that a drift of the machine hits all."""
    for number in range(rounds):
        for way in ways if number % 2 == 0 else reversed(ways):
            if sys.stderr.isatty():
                print(f"\r  round {number + 1} of {rounds}: {way:<20}\r", end="", file=sys.stderr, flush=True)
            yield number, way


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for traces, on the disk that the tree is on (a RAM disk would flatter the recorder)."""
    (ROOT / "build").mkdir(exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "build"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a Markdown table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)
