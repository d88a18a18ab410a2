"""Threads in processes that fork, killed all at once: each trace holds what each thread had counted, and nests."""

import os
import shutil
import signal
import time

import pytest

from tests.record import crowd
from tests.record.workshop import TIMEOUT_S, Workshop


@pytest.mark.parametrize(("processes", "threads", "delay_s"), [(4, 4, 0.1), (7, 2, 0.35)])
def test_a_killed_crowd_loses_no_call(workshop: Workshop, processes: int, threads: int, delay_s: float) -> None:
    shutil.copy(crowd.__file__, workshop.folder / "crowd.py")
    process = workshop.start("crowd.py", "counts", str(processes), str(threads), "0.001")
    counts = workshop.folder / "counts"
    while len(found := crowd.pids(counts)) < processes * threads:
        time.sleep(0.01)
    time.sleep(delay_s)
    os.killpg(os.getpgid(found[0]), signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL
    wrong, figures = crowd.faults(workshop.trace, counts)
    assert wrong == []
    assert figures["threads"] == processes * threads
    assert figures["processes"] == processes
    assert figures["calls"] > 0
