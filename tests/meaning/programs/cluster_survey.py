# run: mpirun -n 2
"""k-means over a survey table split among two ranks; centroids are summed by Allreduce in every iteration.

Rank 1 has 1.6 times the rows of rank 0, so rank 0 waits for it. Truth: 150 iterations; straggler rank 1; the gain is what
equal shares would save: measured computing time of rank 1 minus the mean of both.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
ROWS = {0: 40_000, 1: 64_000}
K, DIM, ITERS = 24, 12, 150


def assign(table, centres):
    d = -2 * table @ centres.T
    d += (centres * centres).sum(1)
    label = d.argmin(1)
    count = np.bincount(label, minlength=K).astype(float)
    sums = np.stack([np.bincount(label, table[:, k], K) for k in range(DIM)], 1)
    return sums, count


rng = np.random.default_rng(rank)
table = rng.normal(size=(ROWS[rank], DIM)) + rng.integers(0, 4, size=(ROWS[rank], 1))
centres = comm.bcast(table[:K].copy() if rank == 0 else None)
assign(table[:1000], centres)
comm.Barrier()

computing = talking = 0
cuts = [time.monotonic_ns()]
for it in range(ITERS):
    sums, count = assign(table, centres)
    a = time.monotonic_ns()
    both = np.concatenate([sums, count[:, None]], 1)
    comm.Allreduce(MPI.IN_PLACE, both)
    b = time.monotonic_ns()
    centres = both[:, :-1] / np.maximum(both[:, -1:], 1)
    computing += a - cuts[-1]
    talking += b - a
    cuts.append(time.monotonic_ns())

each = comm.allgather(computing)
if rank == 0:
    print("computing, s:", [round(ns / 1e9, 2) for ns in each])
assert each[1] > 1.15 * each[0], each
write(
    tile(cuts, "iteration"),
    unit="iteration",
    limiting="straggler",
    limiting_rank=1,
    limiting_also=["operators"],
    rank=rank,
    phases_ns={"communication": talking},
    problem=problem(
        "rank 1 has 1.6 times the rows", "cluster_survey.py:assign", "straggler", wasted_ns=each[1] - sum(each) // 2
    ),
)
