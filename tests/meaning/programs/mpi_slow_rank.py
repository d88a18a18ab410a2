# run: mpirun -n 2
"""Two ranks meet in an allreduce each step; rank 1 has four times the work (its sleep is 40 ms, that of rank 0 10 ms).

Truth: 60 steps, straggler 1. Perfect balance (25 ms each) saves 15 of 40 ms by construction.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

comm = MPI.COMM_WORLD
rank = comm.rank
local, total = np.ones(100), np.empty(100)
comm.Barrier()
waiting = 0
cuts = [time.monotonic_ns()]
for _ in range(60):
    time.sleep(0.04 if rank == 1 else 0.01)
    t = time.monotonic_ns()
    comm.Allreduce(local, total)
    waiting += time.monotonic_ns() - t
    cuts.append(time.monotonic_ns())
write(
    tile(cuts, "step"),
    unit="step",
    limiting="straggler",
    limiting_rank=1,
    rank=rank,
    phases_ns={"communication": waiting},
    problem=problem("rank 1 has four times the work", "mpi_slow_rank.py:<module>", "straggler", gain=0.375),
)
