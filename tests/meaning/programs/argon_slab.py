# run: mpirun -n 2
"""A Lennard-Jones fluid: each rank moves half of the atoms; positions go round by Isend, Irecv and Waitall.

Neighbour lists are rebuilt every 10th step, thermodynamic output comes every 20th. Healthy: halves are equal.
Truth: 400 time steps: 360 plain, 20 that rebuild, 20 that rebuild and print. Balanced, NumPy takes the time.
"""

from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import tile, write

CUT, SKIN, DT, ATOMS, BOX = 2.5, 0.4, 0.002, 1330, 12.1
comm = MPI.COMM_WORLD
n, start = ATOMS // 2, ATOMS // 2 * comm.rank
rng = np.random.default_rng(7)
grid = np.stack(np.meshgrid(*[np.arange(11)] * 3, indexing="ij"), -1).reshape(-1, 3)[:ATOMS]
x = (grid * 1.1 + 0.02 * rng.standard_normal(grid.shape)) % BOX
mine, theirs = x[start : start + n], x[n - start : ATOMS - start]
v = 0.8 * rng.standard_normal(grid.shape)[start : start + n]
waited = 0


def exchange():
    global waited
    waited -= monotonic_ns()
    MPI.Request.Waitall([comm.Irecv(theirs, source=1 - comm.rank), comm.Isend(mine, dest=1 - comm.rank)])
    waited += monotonic_ns()


def nearest(d):
    return d - BOX * np.rint(d / BOX)


def neighbours():
    found = []
    for i in range(n):
        d2 = np.square(nearest(mine[i] - x)).sum(1)
        found.append(np.flatnonzero((d2 > 0) & (d2 < (CUT + SKIN) ** 2)))
    return np.repeat(np.arange(n), [len(j) for j in found]), np.concatenate(found)


def forces(i, j):
    d = nearest(mine[i] - x[j])
    r2 = np.einsum("ij,ij->i", d, d)
    s6 = np.where(r2 < CUT**2, r2, np.inf) ** -3.0
    pull = 24 * (2 * s6 * s6 - s6) / r2
    return np.stack([np.bincount(i, pull * d[:, k], n) for k in range(3)], 1), 2 * (s6 * s6 - s6).sum()


f, potential = forces(*(pairs := neighbours()))
comm.Barrier()
cuts = [monotonic_ns()]
for step in range(1, 401):
    v += 0.5 * DT * f
    mine[:] = (mine + DT * v) % BOX
    exchange()
    if step % 10 == 0:
        pairs = neighbours()
    f, potential = forces(*pairs)
    v += 0.5 * DT * f
    if step % 20 == 0:
        energies = np.array([potential, 0.5 * np.square(v).sum()])
        waited -= monotonic_ns()
        whole = comm.reduce(energies, root=0)
        waited += monotonic_ns()
        if comm.rank == 0:
            print(f"{step:4d} {whole[0]:12.4f} {whole[1]:12.4f} {whole.sum():12.4f}", flush=True)
    cuts.append(monotonic_ns())

write(
    tile(cuts, (["step"] * 9 + ["step+lists"] + ["step"] * 9 + ["step+lists+output"]) * 20),
    unit="time step",
    rank=comm.rank,
    limiting="balanced",
    limiting_also=["operators"],
    phases_ns={"communication": waited},
)
