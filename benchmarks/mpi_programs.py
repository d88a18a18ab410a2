"""MPI programs as they are, under the recorder: do calls and bytes of every function equal an independent counter's?

./dev bench mpi_programs                            the C programs of tests/record/mpi
./dev bench mpi_programs --demo FOLDER              and mpi4py's own demos: `demo/` of its sources

2, 4 and 8 ranks under MPICH and Open MPI. Each program runs twice: once with the counter preloaded (`bytes.c`, against
the mpi.h of that MPI), once under `strobe run`. `equal`: ranks whose functions all have the same calls and bytes in
both. Polls (MPI_Test, MPI_Iprobe) that find nothing count in neither. Programs that poll, or that receive from anybody,
may make other calls in each run.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from measure import ROOT, STROBE, folder, table

import strobe

PROGRAMS = ROOT / "tests/record/mpi"
# Demos that need nothing but mpi4py, end by themselves, and call the same functions in every run.
DEMOS = ("helloworld.py", "mpi-ref-v1/ex-*.py", "reductions/test_reductions.py", "nxtval/nxtval-mpi3.py", "osu_*.py")
PAIRS = ("osu_bibw.py", "osu_bw.py", "osu_latency.py")  # run with two ranks only
LIMIT_S = 300
_SUMS = """select p.rank as rank, t.function as name, sum(t.calls)::bigint as calls, sum(t.sent_bytes)::bigint as sent,
    sum(t.received_bytes)::bigint as received from message_totals t join locations l on l.location = t.location
    join processes p on p.process = l.process group by all"""
Sums = dict[str, tuple[int, int, int]]


def environment(home: Path, **more: str) -> dict[str, str]:
    """What launchers need on few cores, whoever we are."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("STROBE_")}
    return {
        **own,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "MPI4PY_LIBMPI": str(next((home / "lib").glob("libmpi.so.*"))),
        "TMPDIR": "/tmp",
        **more,
    }


def build(home: Path, name: str, place: Path, *options: str) -> Path:
    """Compile a program of tests/record/mpi."""
    made = place / name
    source = PROGRAMS / f"{name.removesuffix('.so')}.c"
    command = [home / "bin/mpicc", "-O1", "-w", *options, source, "-o", made, "-pthread", "-ldl", "-lm"]
    subprocess.run(command, check=True)
    return made


def counted(place: Path, size: int) -> dict[int, Sums]:
    """What the counter wrote."""
    found: dict[int, Sums] = {}
    for rank in range(size):
        path = place / f"bytes-{rank}.txt"
        if path.exists():
            rows = [line.split() for line in path.read_text().splitlines()]
            found[rank] = {row[0]: (int(row[1]), int(row[2]), int(row[3])) for row in rows}
    return found


def recorded(trace: Path) -> dict[int, Sums]:
    """Calls and bytes in the trace."""
    found: dict[int, Sums] = {}
    for row in strobe.open(trace).sql(_SUMS).to_pylist():
        found.setdefault(row["rank"], {})[row["name"]] = (row["calls"], row["sent"], row["received"])
    return found


def run(command: list[str], place: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=LIMIT_S)


def compare(name: str, program: list[str], size: int, home: Path, counter: Path, place: Path) -> dict[str, object]:
    """One program, one MPI, one number of ranks."""
    for old in place.glob("bytes-*.txt"):
        old.unlink()
    mpirun = [str(home / "bin/mpirun"), "-n", str(size), *program]
    row: dict[str, object] = {"program": name, "mpi": home.name, "ranks": size}
    try:
        plain = run(mpirun, place, environment(home, LD_PRELOAD=str(counter)))
        trace = place / f"{name}-{size}.strobe"
        recorded = run([str(STROBE), "run", "--quiet", "-o", str(trace), "--", *mpirun], place, environment(home))
    except subprocess.TimeoutExpired:
        return {**row, "equal": "no end", "calls": "", "bytes": "", "first difference": ""}
    truth, found = counted(place, size), recorded(trace)
    differences = [
        f"{rank} {function}: {truth.get(rank, {}).get(function)} counted, {found.get(rank, {}).get(function)} recorded"
        for rank in range(size)
        for function in sorted({*truth.get(rank, {}), *found.get(rank, {})})
        if truth.get(rank, {}).get(function) != found.get(rank, {}).get(function)
    ]
    if plain.returncode != recorded.returncode:
        differences.insert(0, f"exit code {plain.returncode}, recorded {recorded.returncode}")
    if not truth:
        differences.insert(0, f"nothing counted: {plain.stderr[-200:]}")
    equal = sum(truth.get(rank) == found.get(rank) for rank in truth)
    calls = sum(sums[0] for own in found.values() for sums in own.values())
    moved = sum(sums[1] + sums[2] for own in found.values() for sums in own.values())
    return {
        **row,
        "equal": f"{equal} of {size}",
        "calls": calls,
        "bytes": moved,
        "first difference": differences[0] if differences else "",
    }


def main() -> None:
    """Compare all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, help="demo/ of mpi4py's sources")
    parser.add_argument("--only", default="", help="programs whose names hold this")
    parser.add_argument("--mpi", nargs="*", default=["mpich", "openmpi"])
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4, 8])
    asked = parser.parse_args()
    rows = []
    for mpi in asked.mpi:
        home = ROOT / ".venv" / mpi
        with folder() as place:
            counter = build(home, "bytes.so", place, "-shared", "-fPIC")
            programs = {f"{name}.c": [str(build(home, name, place))] for name in ("solver", "traffic", "heat")}
            if asked.demo:
                demos = [path for pattern in DEMOS for path in sorted(asked.demo.resolve().glob(pattern))]
                for path in demos:
                    shutil.copytree(path.parent, place, dirs_exist_ok=True)  # some read their neighbours
                programs |= {path.name: [sys.executable, path.name] for path in demos}
            programs = {name: program for name, program in programs.items() if asked.only in name}
            for name, program in programs.items():
                for size in [2] if name in PAIRS else asked.ranks:
                    rows.append(compare(name, program, size, home, counter, place))
                    print(*rows[-1].values(), sep=" | ", flush=True)
    print("\n## MPI programs\n")
    print(table(rows))


if __name__ == "__main__":
    main()
