"""The analyses of structure leave the interpreter to others while they work."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from strobe.native import core

pytestmark = pytest.mark.every_python

COUNT = 2_000_000
TIMES = np.arange(COUNT, dtype=np.int64)
RANDOM = np.random.default_rng(3).integers(0, 300, COUNT)
IDS = RANDOM.astype(np.uint32)


def graph_of(ids: np.ndarray) -> core.Graph:
    return core.build_graph(ids.astype(np.uint64), TIMES, None, 65536, 262144, 1 << 30)


ANALYSES: dict[str, Callable[[], Callable[[], object]]] = {
    "levels": lambda: lambda: core.find_levels(IDS, TIMES, 3, 64),
    "graph": lambda: lambda: graph_of(RANDOM),
    "replay": lambda: graph_of(RANDOM).replay,
    "encode": lambda: graph_of(RANDOM).encode,
    "fold": lambda: lambda: core.fold(IDS),
}


@pytest.mark.parametrize("name", ANALYSES)
def test_another_thread_runs_meanwhile(name: str) -> None:
    analysis, started, done = ANALYSES[name](), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        analysis()
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    started.wait()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0)  # a thread that gives the interpreter away gets it back only if the analysis does not hold it
    worker.join()
    assert turns > 100
