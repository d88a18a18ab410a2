"""Streams for tests: hand-made ones, told as a program would run, and the sample of a real training."""

import json
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from strobe.steps.thread_spans import Stream

SAMPLE = Path(__file__).parents[1] / "samples" / "streams" / "train_cnn.json.xz"


class Program:
    """A thread that runs regions one after the other. Times in nanoseconds; the paradigm is told by the name."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._spans: list[list[int]] = []  # start, duration, region, call path, parent
        self._open: list[int] = []
        self._regions: dict[str, int] = {}
        self._paths: dict[tuple[int, int], int] = {}

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Run what the block runs inside of a region; entering and leaving takes 100 ns each."""
        region = self._regions.setdefault(name, len(self._regions))
        above = self._open[-1] if self._open else -1
        path = self._paths.setdefault((self._spans[above][3] if above >= 0 else -1, region), len(self._paths))
        row = len(self._spans)
        self._spans.append([self.now_ns, 0, region, path, above])
        self._open.append(row)
        self.now_ns += 100
        yield
        self.now_ns += 100
        self._spans[row][1] = self.now_ns - self._spans[row][0]
        self._open.pop()

    def run(self, *names: str, us: float = 10) -> None:
        """Run regions one after the other, each for some microseconds."""
        for name in names:
            with self.inside(name):
                self.now_ns += int(us * 1000)

    def pause(self, us: float) -> None:
        """Let time go by outside of any further region."""
        self.now_ns += int(us * 1000)

    def stream(self) -> Stream:
        """What was recorded of the thread."""
        for row in self._open:  # cut where recording ended
            self._spans[row][1] = self.now_ns - self._spans[row][0]
        columns = [np.array(column, dtype=np.int64) for column in zip(*self._spans, strict=True)]
        return Stream(
            *columns,
            names=list(self._regions),
            paradigms=[paradigm_of(name) for name in self._regions],
            path_parent=np.array([parent for parent, _ in self._paths], dtype=np.int64),
            path_region=np.array([region for _, region in self._paths], dtype=np.int64),
        )


def paradigm_of(name: str) -> str:
    """`torch` for what PyTorch reports, `user` for the program's own marks, `mpi`, else `python`."""
    if name.startswith("MPI_"):
        return "mpi"
    if name.startswith("strobe."):
        return "user"
    return "torch" if "::" in name or "#" in name or name.startswith("##") else "python"


WORKERS_WAIT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SINGLE_WAIT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
FORWARD = ("aten::conv2d", "aten::relu", "aten::linear", "aten::cross_entropy_loss")
BACKWARD = tuple(
    f"autograd::engine::evaluate_function: {node}Backward0" for node in ("NllLoss", "Addmm", "Relu", "Convolution")
)
STEP, ZERO = "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"


def update(program: Program) -> None:
    """One update of a model, without its data: 4 operators forward, 4 backward."""
    program.run(ZERO)
    program.run(*FORWARD, us=100)
    program.run(*BACKWARD, us=150)
    with program.inside(STEP):
        program.run("aten::add_", "aten::add_")


def sample() -> tuple[Stream, list[dict[str, object]]]:
    """A recording of examples/train_cnn.py (60 steps, microseconds) and the true steps; times from the first span.

    Made by recording it with `--steps 60 --epoch-steps 25 --validate-every 10 --checkpoint-every 20 --seed 5`.
    """
    kept = json.loads(lzma.decompress(SAMPLE.read_bytes()))
    call_path, path_parent = np.array(kept["call_path"]), np.array(kept["path_parent"])
    parent, last = np.full(len(call_path), -1), {}
    for row, path in enumerate(call_path.tolist()):
        parent[row] = last.get(path_parent[path], -1)
        last[path] = row
    path_region = np.array(kept["path_region"])
    stream = Stream(
        start_ns=np.cumsum(kept["start_us"]) * 1000,
        duration_ns=np.array(kept["duration_us"]) * 1000,
        region=path_region[call_path],
        call_path=call_path,
        parent=parent,
        names=kept["names"],
        paradigms=kept["paradigms"],
        path_parent=path_parent,
        path_region=path_region,
    )
    return stream, kept["truth"]
