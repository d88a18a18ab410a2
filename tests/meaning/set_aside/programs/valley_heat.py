# run: mpirun -n 3
"""Temperature of a valley floor, cut into three strips of rows that exchange their edge rows by Sendrecv each step.

The middle strip has a lake, whose surface temperature is solved implicitly. Planted: `Lake.step` factorises its matrix
anew in every step though it never changes, so that rank 1 needs several times as long as its neighbours, which wait
for its edge rows. Truth: 120 time steps on each rank, straggler 1. Keeping the factorisation leaves a pair of
triangular solves, measured after the loop on the same lake; the difference is the gain, told to all ranks.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import time

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI
from scipy.sparse.linalg import splu
from truth import problem, tile, write

STEPS, ROWS, COLUMNS, REPORT = 120, 160, 480, 30
LAKE = 64


class Strip:
    def __init__(self, comm):
        self.comm = comm
        self.rank = comm.Get_rank()
        self.above = self.rank - 1 if self.rank > 0 else MPI.PROC_NULL
        self.below = self.rank + 1 if self.rank < comm.Get_size() - 1 else MPI.PROC_NULL
        rng = np.random.default_rng(self.rank)
        self.t = 8 + rng.random((ROWS + 2, COLUMNS))
        self.waited = 0

    def exchange(self):
        began = time.monotonic_ns()
        self.comm.Sendrecv(self.t[1], dest=self.above, recvbuf=self.t[-1], source=self.below)
        self.comm.Sendrecv(self.t[-2], dest=self.below, recvbuf=self.t[0], source=self.above)
        self.waited += time.monotonic_ns() - began

    def relax(self, hour):
        t = self.t
        sun = 0.02 * np.sin(2 * np.pi * hour / 24)
        wind = 0.05 * (t[1:-1] - np.roll(t[1:-1], 1, axis=1))
        around = t[:-2] + t[2:] + np.roll(t[1:-1], 1, axis=1) + np.roll(t[1:-1], -1, axis=1)
        t[1:-1] += 0.15 * (around - 4 * t[1:-1]) - wind + sun


class Lake:
    """A square of water in the middle strip, implicit in time."""

    def __init__(self, size):
        line = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(size, size))
        eye = sp.identity(size)
        self.matrix = (sp.identity(size * size) + 0.8 * (sp.kron(line, eye) + sp.kron(eye, line))).tocsc()
        self.size = size
        self.spent = 0

    def step(self, water):
        began = time.monotonic_ns()
        new = splu(self.matrix).solve(water.ravel())
        self.spent += time.monotonic_ns() - began
        return new.reshape(water.shape)


def main():
    comm = MPI.COMM_WORLD
    strip = Strip(comm)
    lake = Lake(LAKE) if strip.rank == 1 else None
    place = slice(40, 40 + LAKE), slice(200, 200 + LAKE)
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for step in range(STEPS):
        strip.exchange()
        strip.relax(step % 24)
        if lake:
            strip.t[place] = lake.step(strip.t[place])
        if (step + 1) % REPORT == 0:
            print(f"rank {strip.rank} step {step + 1}: mean {strip.t[1:-1].mean():.3f}", flush=True)
        cuts.append(time.monotonic_ns())

    comm.Barrier()
    saved = None
    if lake:
        water = strip.t[place]
        kept = splu(lake.matrix)
        began = time.monotonic_ns()
        for _ in range(20):
            quick = kept.solve(water.ravel())
        each = (time.monotonic_ns() - began) // 20
        saved = lake.spent - STEPS * each
        assert np.allclose(quick.reshape(water.shape), lake.step(water))
    saved = comm.bcast(saved, root=1)
    write(
        tile(cuts, lambda i: "step+report" if (i + 1) % REPORT == 0 else "step"),
        unit="time step",
        limiting="straggler",
        limiting_rank=1,
        limiting_also=["operators"] if lake else ["communication", "synchronisation"],
        phases_ns={"communication": strip.waited},
        problem=problem(
            "the lake's matrix, which never changes, is factorised in every step", "valley_heat.py:Lake.step",
            "straggler", wasted_ns=saved,
        ),
        rank=strip.rank,
    )  # fmt: skip


if __name__ == "__main__":
    main()
