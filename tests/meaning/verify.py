"""Runs cases twice to see whether their truth is stable: `python tests/meaning/verify.py [--times N] [NAME ...]`.

MPI programs run with `$MEANING_MPI/bin/mpirun` where that is set, and mpi4py. Exit status 1 where a case fails or
differs.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
MPI = Path(os.environ.get("MEANING_MPI") or HERE.parents[1] / ".venv" / "mpich")  # `./dev record` makes it
EXACT = ("unit", "count", "levels", "limiting", "limiting_rank")


def command(path: Path) -> list[str]:
    """How a program is run: its first line says so if not plainly."""
    first = path.read_text().splitlines()[0]
    args, run = [], ""
    if first.startswith("# args:"):
        args = shlex.split(first.removeprefix("# args:"))
    if first.startswith("# run:"):
        run = first.removeprefix("# run:").strip()
    if run.startswith("mpirun"):
        mpirun = MPI / "bin" / "mpirun"
        start = [str(mpirun) if mpirun.exists() else "mpirun", *run.split()[1:], sys.executable]
    elif run.startswith("torchrun"):
        start = [sys.executable, "-m", "torch.distributed.run", *run.split()[1:]]
    else:
        start = [sys.executable]
    return [*start, str(path), *args]


def environment(truths: Path) -> dict[str, str]:
    """One thread per process; the modules here, and MPI, are found."""
    modules = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    library = next(iter((MPI / "lib").glob("libmpi.so.*")), None)
    mpi = {"MPI4PY_LIBMPI": str(library)} if library else {}
    return dict(os.environ, MEANING_TRUTH=str(truths), PYTHONPATH=modules, OMP_NUM_THREADS="1", **mpi)


def run_program(path: Path) -> tuple[dict[int, dict], float]:
    """The truth of every rank, and the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        truths = Path(folder, "truth")
        truths.mkdir()
        began = time.monotonic()
        env = environment(truths)
        done = subprocess.run(command(path), cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        took = time.monotonic() - began
        if done.returncode:
            raise SystemError(done.stderr[-3000:])
        read = [json.loads(each.read_text()) for each in sorted(truths.iterdir())]
        return {each["rank"]: each for each in read}, took


def run_trace(path: Path, folder: Path | None = None) -> tuple[dict[int, dict], float]:
    """The truth that a trace's writer returns, and the seconds it took; `folder`: where the trace is kept."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run_trace(path, Path(temporary))
    sys.path[:0] = [str(HERE)]
    try:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(HERE))
    began = time.monotonic()
    whole = module.write(folder)
    took = time.monotonic() - began
    assert any(folder.iterdir()), "nothing was written"
    return {each["rank"]: each for each in (whole if isinstance(whole, list) else [whole])}, took


def shares(one: dict) -> dict[str, float]:
    """Phases in percent of the steps' time."""
    total = sum(each["end_ns"] - each["begin_ns"] for each in one["steps"])
    return {name: 100 * ns / total for name, ns in (one["phases_ns"] or {}).items()}


def faults(one: dict) -> list[str]:
    """What cannot be true of one truth."""
    found = []
    for before, after in itertools.pairwise(one["steps"]):
        if before["end_ns"] != after["begin_ns"] and not one.get("gaps"):
            found.append("steps do not tile")
            break
    if any(each["end_ns"] <= each["begin_ns"] for each in one["steps"]):
        found.append("an empty step")
    return found


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--times", type=int, default=2)
    asked.add_argument("names", nargs="*")
    asked = asked.parse_args()
    paths = [each for kind in ("programs", "traces") for each in sorted(HERE.glob(f"**/{kind}/*.py"))]
    bad = 0
    for path in paths:
        if asked.names and path.stem not in asked.names:
            continue
        runner = run_trace if path.parent.name == "traces" else run_program
        try:
            runs = [runner(path) for _ in range(asked.times)]
        except (SystemError, AssertionError, OSError, subprocess.TimeoutExpired) as error:
            print(f"FAIL {path.stem}: {error}", flush=True)
            bad += 1
            continue
        failures = []
        for rank, one in runs[0][0].items():
            failures += faults(one)
            others = [each[0][rank] for each in runs[1:]]
            failures += [
                f"rank {rank}: {name} differs" for name in EXACT if any(one[name] != each[name] for each in others)
            ]
            kinds = collections.Counter(each["class"] for each in one["steps"])
            if any(kinds != collections.Counter(each["class"] for each in other["steps"]) for other in others):
                failures.append("classes differ")
            mine = shares(one)
            apart = max((abs(mine[name] - shares(each)[name]) for each in others for name in mine), default=0.0)
            gains = [each["problem"]["gain"] for each in [one, *others] if each["problem"]]
            loop = (one["steps"][-1]["end_ns"] - one["steps"][0]["begin_ns"]) / 1e9
            phases = " ".join(f"{name} {share:.0f}" for name, share in mine.items() if share >= 0.5)
            print(
                f"{path.stem} r{rank}: {one['count']} x {one['unit']}, {dict(kinds)}, {one['levels']}, "
                f"loop {loop:.2f} s of {runs[0][1]:.1f}, {one['limiting']}; {phases} (+-{apart:.1f}) gain {gains}"
            )
        if failures:
            bad += 1
            print(f"FAIL {path.stem}: {'; '.join(failures)}")
        sys.stdout.flush()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
