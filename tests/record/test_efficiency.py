"""Efficiencies of real MPI programs, balanced and not, against what each rank measured itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import strobe
from tests.record.test_mpi import Mpi
from tests.record.workshop import Workshop

pytestmark = pytest.mark.mpi
RANKS, STEPS = 4, 100


def measured(folder: Path) -> tuple[float, float, float]:
    """Parallel efficiency, load balance and communication efficiency by the ranks' own clocks (POP's formulas)."""
    of_ranks = [np.loadtxt(folder / f"computed-{rank}.txt").sum(axis=0) for rank in range(RANKS)]
    useful = np.array([computed for computed, _ in of_ranks])
    elapsed = max(computed + communicated for computed, communicated in of_ranks)
    return useful.mean() / elapsed, useful.mean() / useful.max(), useful.max() / elapsed


@pytest.mark.parametrize(
    ("name", "keep", "most_ms", "least_ms"),
    [("mpich", "all", 12, 12), ("openmpi", "10", 12, 12), ("mpich", "10", 20, 5), ("openmpi", "all", 20, 5)],
)
def test_factors_are_those_that_the_ranks_measure(
    workshop: Workshop, name: str, keep: str, most_ms: int, least_ms: int
) -> None:
    mpi = Mpi(name, workshop)
    program = mpi.build("uneven")
    words = (program, str(STEPS), str(most_ms * 1000), str(least_ms * 1000))
    done = mpi.recorded(*mpi.mpirun(RANKS, *words), STROBE_KEEP=keep)
    assert done.returncode == 0, done.stderr
    with strobe.open(done.trace) as trace:
        table = trace.efficiency()
        of_ranks = Counter(row["step"] for row in trace.steps().to_pylist() if row["steady"])
    steady = sum(ranks == RANKS for ranks in of_ranks.values())
    found = {row["factor"]: row["value"] for row in table.to_pylist()}
    expected = measured(workshop.folder)
    names = ("parallel_efficiency", "load_balance", "communication_efficiency")
    assert [found[name] for name in names] == pytest.approx(expected, abs=0.03)
    # All steps count, the folded ones, too, but those that are the warm-up of a rank: a busy machine has more of them.
    assert table.to_pylist()[0]["steps"] == steady >= STEPS - 20
    # On a busy machine a balanced program may be uneven, as its ranks measure, too.
    uneven = most_ms > least_ms or expected[1] < 0.98
    assert table.note.startswith("load balance costs most, ") <= uneven
    if most_ms > least_ms:
        # The last rank computes for 20 ms, the mean is (20 + 3 * 5) / 4; a busy machine makes the others longer, too.
        assert expected[1] > 8.75 / 20 - 0.1
        assert table.note.startswith("load balance costs most, ")
        assert f": rank {RANKS - 1} computes for " in table.note
