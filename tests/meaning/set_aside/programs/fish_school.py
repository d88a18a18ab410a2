# run: mpirun -n 2
"""A school of fish: each rank moves those in its half of the tank, after all positions went to all ranks.

Truth: 80 time steps. Most fish are in the left half, so that rank 0 has about 80 % of the work and rank 1 waits for it
in Allgatherv. Sharing out the fish evenly would save what the slower rank takes beyond the mean, measured per step.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
waiting = 0


def exchange(mine, counts):
    global waiting
    everyone = np.empty((sum(counts), 4))
    t = time.monotonic_ns()
    comm.Allgatherv(mine, [everyone, [4 * n for n in counts]])
    waiting += time.monotonic_ns() - t
    return everyone


def steer(mine, everyone):
    away = everyone[None, :, :2] - mine[:, None, :2]
    d2 = np.sum(away**2, axis=2) + 1e-3
    near = np.exp(-d2 / 0.02)
    align = near @ everyone[:, 2:] / near.sum(axis=1, keepdims=True) - mine[:, 2:]
    push = -np.sum(away * (np.exp(-d2 / 0.001) / d2)[:, :, None], axis=1)
    return 0.05 * align + 1e-5 * push


def main(steps=80):
    rng = np.random.default_rng(5)
    school = np.concatenate([rng.beta(2, 4, (600, 1)), rng.random((600, 1)), rng.normal(0, 0.1, (600, 2))], axis=1)
    bounds = np.linspace(0, 1, size + 1)
    halves = [school[(school[:, 0] >= a) & (school[:, 0] < b)] for a, b in zip(bounds, bounds[1:])]
    # a fish stays with its rank; the school moves on little in this time
    counts = [len(half) for half in halves]
    mine, working = halves[rank].copy(), []
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for _ in range(steps):
        everyone = exchange(mine, counts)
        began = time.monotonic_ns()
        mine[:, 2:] += steer(mine, everyone)
        mine[:, :2] += 0.002 * mine[:, 2:]
        working.append(time.monotonic_ns() - began)
        cuts.append(time.monotonic_ns())
    work = np.array(comm.allgather(working))
    if rank == 0:
        print(counts, work.sum(axis=1) / 1e9)
    write(
        tile(cuts, "time step"),
        unit="time step",
        limiting="straggler",
        limiting_rank=0,
        rank=rank,
        phases_ns={"communication": waiting},
        problem=problem(
            "rank 0 has most of the fish", "fish_school.py:main", "straggler",
            wasted_ns=int((work.max(axis=0) - work.mean(axis=0)).sum()),
        ),
    )  # fmt: skip


main()
