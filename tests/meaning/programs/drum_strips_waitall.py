# run: mpirun -n 2
"""A square drum, cut into strips: halos travel with Isend/Irecv while the inside is computed, Waitall, then the edges.

Healthy: both ranks have the same and compute most of the time in NumPy. The energy is summed over ranks at every 50th
step. Truth: 500 time steps; one may say that the ranks are balanced.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

N, STEPS, C2 = 640, 500, 0.24


class Strip:
    def __init__(self, comm):
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        rows = N // self.size
        y = (np.arange(rows) + self.rank * rows)[:, None] / N
        x = np.arange(N)[None, :] / N
        self.now = np.zeros((rows + 2, N))
        self.now[1:-1] = np.exp(-200 * ((x - 0.4) ** 2 + (y - 0.55) ** 2))
        self.before = self.now.copy()
        self.waiting = 0

    def requests(self):
        for other, send, receive in ((self.rank - 1, 1, 0), (self.rank + 1, -2, -1)):
            if 0 <= other < self.size:
                yield self.comm.Isend(self.now[send], dest=other)
                yield self.comm.Irecv(self.now[receive], source=other)

    def update(self, new, rows):
        a, b = rows
        u = self.now
        lap = u[a - 1 : b - 1, 1:-1] + u[a + 1 : b + 1, 1:-1] + u[a:b, :-2] + u[a:b, 2:] - 4 * u[a:b, 1:-1]
        new[a:b, 1:-1] = 1.999 * u[a:b, 1:-1] - 0.999 * self.before[a:b, 1:-1] + C2 * lap

    def step(self):
        last = self.now.shape[0] - 1
        new = np.zeros_like(self.now)
        t = time.monotonic_ns()
        pending = list(self.requests())
        self.waiting += time.monotonic_ns() - t
        self.update(new, (2, last - 1))
        t = time.monotonic_ns()
        MPI.Request.Waitall(pending)
        self.waiting += time.monotonic_ns() - t
        self.update(new, (1, 2))
        self.update(new, (last - 1, last))
        self.before, self.now = self.now, new

    def energy(self):
        mine = float(np.sum((self.now[1:-1] - self.before[1:-1]) ** 2))
        t = time.monotonic_ns()
        whole = self.comm.allreduce(mine)
        self.waiting += time.monotonic_ns() - t
        return whole


if __name__ == "__main__":
    strip = Strip(MPI.COMM_WORLD)
    strip.comm.Barrier()
    cuts = [time.monotonic_ns()]
    for n in range(STEPS):
        strip.step()
        if n % 50 == 49:
            energy = strip.energy()
            if strip.rank == 0:
                print(n + 1, f"{energy:.6f}")
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "time step"),
        unit="time step",
        limiting="operators",
        limiting_also=["balanced"],
        rank=strip.rank,
        phases_ns={"communication": strip.waiting},
    )
