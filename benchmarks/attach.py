"""Attach to programs in the middle of all kinds of things: what they print, how they end, and whether traces are sound.

PYTHON_VERSION=3.15 ./dev bench attach [--rounds 1] [--only NAME] [--processes 2]

Each program of tests/record/moments runs once without strobe, and then once in each round with a recording in its
middle. Output, errors and exit code must be the same, spans must nest, and the calls of the moment must be there.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from measure import folder, table

from tests.record.moments.playing import MOMENTS, Outcome, attached_faults, play


def visit(task: tuple[int, str, Outcome, Path]) -> tuple[int, str, list[str], float]:
    """Run one program with a recording; return what was wrong."""
    number, name, alone, place = task
    begun = time.monotonic()
    try:
        faults = attached_faults(MOMENTS[name], alone, place)
    except Exception as error:
        faults = [f"{type(error).__name__}: {error}"]
    return number, name, faults, time.monotonic() - begun


def main() -> int:
    """Run all rounds, and print what was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    if sys.version_info < (3, 14):
        print("attaching needs CPython 3.14: PYTHON_VERSION=3.15 ./dev bench attach")
        return 2
    names = [name for name in MOMENTS if arguments.only in name]
    wrong: Counter[str] = Counter()
    done = 0
    with folder() as place, ProcessPoolExecutor(arguments.processes, max_tasks_per_child=50) as pool:
        places = {name: Path(place) / re.sub(r"\W", "_", name) for name in names}
        alone = dict(
            zip(names, pool.map(play, [MOMENTS[n] for n in names], [places[n] / "alone" for n in names]), strict=True)
        )
        tasks = [(k, n, alone[n], places[n] / str(k)) for k in range(arguments.rounds) for n in names]
        for number, name, faults, seconds in pool.map(visit, tasks):
            done += 1
            for fault in faults:
                wrong[name] += 1
                print(f"round {number}, {name} ({seconds:.1f} s): {fault}", flush=True)
    print(table([{"attaches": done, "programs": len(names), "with faults": sum(wrong.values())}]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
