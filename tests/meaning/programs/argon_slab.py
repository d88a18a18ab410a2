# run: mpirun -n 2
"""A Lennard-Jones fluid: each rank moves half of the atoms; positions go round by Isend, Irecv and Waitall.

Neighbour lists are rebuilt every 10th step, thermodynamic output comes every 20th. Healthy: halves are equal.
Truth: 400 time steps: 360 plain, 20 that rebuild, 20 that rebuild and print. Balanced, NumPy takes the time.
"""

from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import tile, write

CUT, SKIN, DT, SIDE = 2.5, 0.4, 0.002, 11

comm = MPI.COMM_WORLD


class Fluid:
    def __init__(self):
        grid = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), -1).reshape(-1, 3).astype(float)
        grid = grid[: len(grid) // comm.size * comm.size]
        rng = np.random.default_rng(7)
        self.box = SIDE * 1.1
        self.n = len(grid) // comm.size
        self.mine = slice(comm.rank * self.n, (comm.rank + 1) * self.n)
        self.x = (grid * 1.1 + 0.02 * rng.standard_normal(grid.shape)) % self.box
        self.v = rng.standard_normal(grid.shape)[self.mine] * 0.8
        self.f = np.zeros((self.n, 3))
        self.waited = 0

    def exchange(self):
        t = monotonic_ns()
        requests = []
        for other in range(comm.size):
            if other != comm.rank:
                requests.append(comm.Irecv(self.x[other * self.n : (other + 1) * self.n], source=other))
                requests.append(comm.Isend(self.x[self.mine], dest=other))
        MPI.Request.Waitall(requests)
        self.waited += monotonic_ns() - t

    def apart(self, i, j):
        d = self.x[self.mine][i] - self.x[j]
        return d - self.box * np.rint(d / self.box)

    def build_lists(self):
        found = []
        for i in range(self.n):
            d2 = np.square(self.apart(i, slice(None))).sum(1)
            near = np.flatnonzero(d2 < (CUT + SKIN) ** 2)
            found.append(near[near != i + self.mine.start])
        self.i = np.repeat(np.arange(self.n), [len(j) for j in found])
        self.j = np.concatenate(found)

    def forces(self):
        d = self.apart(self.i, self.j)
        r2 = np.einsum("ij,ij->i", d, d)
        s6 = np.where(r2 < CUT**2, r2, np.inf) ** -3.0
        pull = 24 * (2 * s6 * s6 - s6) / r2
        for axis in range(3):
            self.f[:, axis] = np.bincount(self.i, pull * d[:, axis], self.n)
        self.potential = 2 * (s6 * s6 - s6).sum()


fluid = Fluid()
fluid.exchange()
fluid.build_lists()
fluid.forces()
comm.Barrier()
fluid.waited = 0
kinds, cuts = [], [monotonic_ns()]
for step in range(1, 401):
    fluid.v += 0.5 * DT * fluid.f
    fluid.x[fluid.mine] = (fluid.x[fluid.mine] + DT * fluid.v) % fluid.box
    fluid.exchange()
    if step % 10 == 0:
        fluid.build_lists()
    fluid.forces()
    fluid.v += 0.5 * DT * fluid.f
    if step % 20 == 0:
        energies = np.array([fluid.potential, 0.5 * np.square(fluid.v).sum()])
        t = monotonic_ns()
        whole = comm.reduce(energies, root=0)
        fluid.waited += monotonic_ns() - t
        if comm.rank == 0:
            print(f"{step:4d} {whole[0]:12.4f} {whole[1]:12.4f} {whole.sum():12.4f}", flush=True)
    kinds.append("step" if step % 10 else "step+lists" if step % 20 else "step+lists+output")
    cuts.append(monotonic_ns())

write(
    tile(cuts, kinds),
    unit="time step",
    rank=comm.rank,
    limiting="balanced",
    limiting_also=["operators"],
    phases_ns={"communication": fluid.waited},
)
