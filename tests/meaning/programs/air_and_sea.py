# run: mpirun -n 2
"""Two coupled models, air on rank 0 and sea on rank 1, of equal cost: air steps and sends fluxes, then sea steps and
sends its surface back. While one computes, the other stands in Recv.

Truth: 140 coupling steps; no rank is slower, but they take turns: limited by synchronisation. Coupled with a lag of one
step, both would compute at the same time; the gain is the measured wait in Recv, about half of the loop.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

N = 400
comm = MPI.COMM_WORLD
rank = comm.Get_rank()
partner = 1 - rank


def advance(state, forcing, substeps=12):
    for _ in range(substeps):
        lap = np.roll(state, 1, 0) + np.roll(state, -1, 0) + np.roll(state, 1, 1) + np.roll(state, -1, 1) - 4 * state
        state = state + 0.1 * lap
        state[0] += 0.01 * forcing
    return state


def get(buffer):
    t = time.monotonic_ns()
    comm.Recv(buffer, source=partner)
    return time.monotonic_ns() - t


def couple(steps):
    state = np.random.default_rng(rank).random((N, N))
    boundary = np.zeros(N)
    waited = 0
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for _ in range(steps):
        if rank == 0:
            state = advance(state, boundary)
            comm.Send(state[0], dest=partner)
            waited += get(boundary)
        else:
            waited += get(boundary)
            state = advance(state, boundary)
            comm.Send(state[0], dest=partner)
        cuts.append(time.monotonic_ns())
    print(f"rank {rank}: mean {state.mean():.4f}", flush=True)
    return cuts, waited


cuts, waited = couple(140)
write(
    tile(cuts, "step"),
    unit="coupling step",
    rank=rank,
    limiting="synchronisation",
    limiting_also=["communication"],
    phases_ns={"communication": waited},
    problem=problem(
        "the models take turns: each waits for the other's result of the same step",
        "air_and_sea.py:couple",
        "synchronisation",
        wasted_ns=waited,
    ),
)
