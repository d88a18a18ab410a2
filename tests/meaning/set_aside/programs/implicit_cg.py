# run: mpirun -n 2
"""Implicit diffusion on a plate: each time step solves (I - k L) u = b by conjugate gradients, rows split over ranks.

Each iteration exchanges one row with the neighbour and has two Allreduce of one number. Healthy: halves are equal.
Truth: 40 time steps; the iterations of the solver are the inner level and no steps; balanced, NumPy takes the time.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

comm = MPI.COMM_WORLD


class Plate:
    def __init__(self, rows, columns, k):
        self.k = k
        self.below = (comm.rank - 1) if comm.rank else MPI.PROC_NULL
        self.above = (comm.rank + 1) if comm.rank + 1 < comm.size else MPI.PROC_NULL
        self.padded = np.zeros((rows + 2, columns + 2))
        self.communication = self.iterations = 0

    def dot(self, a, b):
        mine, whole = np.array([np.vdot(a, b)]), np.empty(1)
        t = time.monotonic_ns()
        comm.Allreduce(mine, whole)
        self.communication += time.monotonic_ns() - t
        return whole[0]

    def apply(self, v):
        p = self.padded
        p[1:-1, 1:-1] = v
        t = time.monotonic_ns()
        comm.Sendrecv(p[1], self.below, recvbuf=p[-1], source=self.above)
        comm.Sendrecv(p[-2], self.above, recvbuf=p[0], source=self.below)
        self.communication += time.monotonic_ns() - t
        return v - self.k * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * v)

    def solve(self, b, x, tolerance=1e-8):
        r = b - self.apply(x)
        d = r.copy()
        rr = self.dot(r, r)
        while rr > tolerance:
            q = self.apply(d)
            alpha = rr / self.dot(d, q)
            x = x + alpha * d
            r = r - alpha * q
            rr, old = self.dot(r, r), rr
            d = r + rr / old * d
            self.iterations += 1
        return x


def main(time_steps=40, n=640):
    plate = Plate(n // comm.size, n, k=8.0)
    u = np.random.default_rng(comm.rank).random((n // comm.size, n))
    source = np.zeros_like(u)
    source[:, n // 3 : n // 2] = 0.05
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for step in range(time_steps):
        u = plate.solve(u + source, u)
        if comm.rank == 0 and step % 10 == 9:
            print(f"t={step + 1} iterations so far {plate.iterations} mean {u.mean():.4f}", flush=True)
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "step"),
        unit="time step",
        rank=comm.rank,
        limiting="balanced",
        limiting_also=["operators"],
        levels={"iteration": plate.iterations},
        phases_ns={"communication": plate.communication},
    )


if __name__ == "__main__":
    main()
