# run: mpirun -n 2
"""Lennard-Jones argon in a periodic box: velocity Verlet, neighbour list anew every 20 steps, thermo every 50.

Healthy and balanced: each rank has the pairs of every other atom, forces are summed by Allreduce. Truth: 700 time steps,
35 of them with the neighbour list (class rebuild), which are several times longer by design.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()

CELLS = 6
RHO = 0.80
RCUT = 2.5
SKIN = 0.35
DT = 0.003
NSTEPS = 700
talking = 0
rebuilding = 0


def fcc(cells, rho):
    a = (4 / rho) ** (1 / 3)
    base = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    grid = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    return ((grid + base).reshape(-1, 3) * a), a * cells


def build_neighbour_list(x, box):
    mine = np.arange(rank, len(x), size)
    ilist, jlist = [], []
    for i in mine:
        # half list: (i, j) goes with i when i + j is odd xor i < j, so that no rank has more
        d = x - x[i]
        d -= box * np.rint(d / box)
        near = np.nonzero((d * d).sum(1) < (RCUT + SKIN) ** 2)[0]
        near = near[((near + i) % 2 == 1) == (near < i)]
        near = near[near != i]
        ilist.append(np.full(len(near), i))
        jlist.append(near)
    return np.concatenate(ilist), np.concatenate(jlist)


def forces(x, box, pairs):
    global talking
    i, j = pairs
    d = x[i] - x[j]
    d -= box * np.rint(d / box)
    r2 = (d * d).sum(1)
    inside = r2 < RCUT**2
    inv6 = np.where(inside, 1 / r2, 0.0) ** 3
    epot = 4 * (inv6 * inv6 - inv6).sum()
    f = (24 * (2 * inv6 * inv6 - inv6) / r2)[:, None] * d
    total = np.empty_like(x)
    for k in range(3):
        total[:, k] = np.bincount(i, f[:, k], len(x)) - np.bincount(j, f[:, k], len(x))
    a = time.monotonic_ns()
    comm.Allreduce(MPI.IN_PLACE, total)
    talking += time.monotonic_ns() - a
    return total, epot


def main():
    global rebuilding, talking
    x, box = fcc(CELLS, RHO)
    rng = np.random.default_rng(7)
    v = rng.normal(scale=np.sqrt(1.2), size=x.shape)
    v -= v.mean(0)
    pairs = build_neighbour_list(x, box)
    f, epot = forces(x, box, pairs)
    comm.Barrier()
    talking = 0
    cuts = [time.monotonic_ns()]
    for step in range(NSTEPS):
        v += 0.5 * DT * f
        x = (x + DT * v) % box
        if step % 20 == 0:
            a = time.monotonic_ns()
            pairs = build_neighbour_list(x, box)
            rebuilding += time.monotonic_ns() - a
        f, epot = forces(x, box, pairs)
        v += 0.5 * DT * f
        if step % 50 == 0:
            pe = comm.allreduce(epot)
            ke = 0.5 * (v * v).sum()
            if rank == 0:
                print(f"{step:6d}  T {2 * ke / (3 * len(x)):.4f}  PE {pe / len(x):.4f}  E {(pe + ke) / len(x):.5f}")
        cuts.append(time.monotonic_ns())
    assert np.isfinite(x).all() and len(cuts) == NSTEPS + 1
    write(
        tile(cuts, lambda i: "rebuild" if i % 20 == 0 else "step"),
        unit="time step",
        limiting="balanced",
        limiting_also=["operators"],
        levels={"neighbour list": NSTEPS // 20, "thermo output": NSTEPS // 50},
        rank=rank,
        phases_ns={"communication": talking, "neighbour list": rebuilding},
    )


if __name__ == "__main__":
    main()
