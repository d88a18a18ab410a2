"""Public traces of trainings on GPUs read straight from their JSON.

Three sequences of each: the main thread's operators with what PyTorch's own ranges say, the same with all names
disguised, and the kernels in launch order under disguised names. The truth are the profiler's steps, which none of the
sequences holds.
"""

import gzip
import json
import random
from collections.abc import Iterable, Sequence

import numpy as np

from strobe.native import core
from strobe.steps.thread_spans import Stream
from tests.public import FOLDER

STEP = "ProfilerStep#"
# With three or more steps: fewer repeat nothing.
TRAININGS = (
    "diff_control",
    "diff_test",
    "nccl_data",
    "ns_resolution",
    "resnet50_loader_workers0",
    "resnet50_loader_workers4",
    "v100_train_rank1of2",
)
TWO_STEPS = ("two_ranks/sampled_rank-0", "two_ranks/sampled_rank-1")
SINGLE_PASSES = ("alexnet_critical_path", "simple_add_critical_path")

Span = tuple[int, int, str]  # start and end in nanoseconds, name


class Trace:
    """One of the files."""

    def __init__(self, name: str) -> None:
        with gzip.open(FOLDER / "kineto" / f"{name}.json.gz") as file:
            events = json.load(file)["traceEvents"]
        self._spans = [event for event in events if event.get("ph") == "X" and "dur" in event]
        steps = [e for e in self._spans if _category(e) in ("operator", "cpu_op", "user_annotation") and _is_step(e)]
        self.begins_ns = np.sort(np.array([_ns(event["ts"]) for event in steps], dtype=np.int64))
        ranges = [event for event in self._spans if _category(event) in ("operator", "cpu_op", "user_annotation")]
        threads = [event["tid"] for event in steps or ranges]
        main = max(set(threads), key=threads.count)
        self._operators = [event for event in ranges if event["tid"] == main and not _is_step(event)]
        self._others = [event for event in ranges if event["tid"] != main and core.is_backward(event["name"])]

    def operators(self) -> Stream:
        """The main thread's operators and ranges, with their names; when other threads ran the backward pass."""
        return stream(map(_span, self._operators), "torch", backward=list(map(_span, self._others)))

    def disguised_operators(self) -> Stream:
        """The main thread's operators without the ranges that frameworks name, under names that mean nothing."""
        plain = [span for span in map(_span, self._operators) if "#" not in span[2]]
        return stream(disguised(plain), "torch")

    def kernels(self) -> Stream:
        """The kernels when they were launched, under names that mean nothing."""
        launches = {
            event["args"]["correlation"]: _ns(event["ts"])
            for event in self._spans
            if _category(event) in ("runtime", "cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})
        }
        launched = [
            (launches[event["args"]["correlation"]], event["name"])
            for event in self._spans
            if _category(event) == "kernel" and event["args"]["correlation"] in launches
        ]
        return stream(disguised([(at, at + 1, name) for at, name in launched]), "cuda")


def stream(spans: Iterable[Span], paradigm: str, backward: Sequence[Span] = ()) -> Stream:
    """A thread's spans as a stream; they nest as their times do."""
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))
    regions: dict[str, int] = {}
    paths: dict[tuple[int, int], int] = {}
    columns: list[tuple[int, int, int, int, int]] = []
    opened: list[int] = []
    for row, (start, end, name) in enumerate(ordered):
        while opened and columns[opened[-1]][0] + columns[opened[-1]][1] < end:
            opened.pop()
        parent = opened[-1] if opened else -1
        region = regions.setdefault(name, len(regions))
        path = paths.setdefault((columns[parent][3] if opened else -1, region), len(paths))
        columns.append((start, end - start, region, path, parent))
        opened.append(row)
    path_parent, path_region = zip(*paths, strict=True)
    return Stream(
        *(np.array(column, dtype=np.int64) for column in zip(*columns, strict=True)),
        names=list(regions),
        paradigms=[paradigm] * len(regions),
        path_parent=np.array(path_parent, dtype=np.int64),
        path_region=np.array(path_region, dtype=np.int64),
        backward_ns=np.array(sorted(span[:2] for span in backward), dtype=np.int64).reshape(-1, 2),
    )


def disguised(spans: Sequence[Span]) -> list[Span]:
    """The same spans under numbers dealt at random."""
    names = sorted({name for _, _, name in spans})
    random.Random(len(names)).shuffle(names)
    numbers = {name: str(number) for number, name in enumerate(names)}
    return [(start, end, numbers[name]) for start, end, name in spans]


def _category(event: dict) -> str:
    return str(event.get("cat", "")).lower()


def _is_step(event: dict) -> bool:
    return str(event["name"]).startswith(STEP)


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _span(event: dict) -> Span:
    return _ns(event["ts"]), _ns(event["ts"]) + _ns(event["dur"]), str(event["name"])
