"""CPU time of the iteration stack: python benchmarks/stack.py [STEPS] [SPANS A STEP]  (default 500 900).

Prints what building, comparing, and sending a screen of it costs, in seconds of this process: for steps that all take
one path, and for steps that all differ.
"""

import random
import sys
import time
from collections.abc import Callable

import numpy as np

from strobe.server.pictures.iteration_cells import cells_of
from strobe.steps.iteration_stack.stack import stack_of
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import Stream


def program(steps: int, spans: int, differing: bool) -> tuple[Stream, ProcessSteps]:
    """A thread with `steps` iterations of `spans` operators each; where they differ, each lacks some of its own."""
    chance = random.Random(5)
    bodies = [[op % 97 for op in range(spans) if not differing or chance.random() > 0.02] for _ in range(steps)]
    region = np.concatenate(bodies).astype(np.int64)
    duration = np.random.default_rng(1).integers(1000, 9000, len(region))
    start = np.cumsum(duration + 500) - duration
    begins = start[np.cumsum([0, *map(len, bodies[:-1])])]
    ends = np.append(begins[1:], start[-1] + duration[-1])
    number = np.arange(97, dtype=np.int64)
    names = [f"aten::op{i}" for i in range(97)]
    root = np.full(97, -1, dtype=np.int64)
    stream = Stream(start, duration, region, region, np.full(len(region), -1), names, ["torch"] * 97, root, number)
    no, parts = np.zeros(steps, dtype=bool), np.zeros((steps, 5), dtype=np.int64)
    found = ProcessSteps(
        process=0,
        start_ns=begins,
        duration_ns=ends - begins,
        classes=("train",) * steps,
        parts_ns=parts,
        complete=~no,
        warm_up=no,
        outlier=no,
        cause=("",) * steps,
        anchored=True,
        confidence="high",
        reason="",
    )
    return stream, found


def cpu_s(what: Callable[[], object]) -> float:
    begun = time.process_time()
    what()
    return time.process_time() - begun


def measure(stream: Stream, found: ProcessSteps, kind: str) -> None:
    """Print one line."""
    build = cpu_s(lambda: stack_of(stream, found))
    stack = stack_of(stream, found)
    compare = cpu_s(lambda: (stack.values("duration"), stack.values("gap")))
    rows, columns = (np.linspace(0, n, min(n, 1000), endpoint=False).astype(np.int64) for n in stack.shape)
    send = cpu_s(lambda: cells_of(stack.values(), rows, columns))
    print(f"{kind:10}  {stack.shape}: build {build:.2f} s, compare {compare:.3f} s, a screen {send:.3f} s")


def main() -> None:
    """Measure both kinds of program."""
    steps, spans = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 500), (2, 900)))
    measure(*program(steps, spans, differing=False), "one path")
    measure(*program(steps, spans, differing=True), "all differ")


if __name__ == "__main__":
    main()
