# run: mpirun -n 2
"""Implicit heat conduction on two strips of a plate; every time step solves (I - dt L) u = b by conjugate gradients.

Healthy and balanced, both strips are equal; two Allreduce and one halo exchange in each iteration.
Truth: 80 time steps; the iterations (until the residual is small) are the inner level, counted by the program.
Where Allreduce and Sendrecv are more than 35 % of the time, as where cores are shared, communication can be defended.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write


class Plate:
    def __init__(self, comm, ny=240, nx=400, k=6.0):
        self.comm, self.k = comm, k
        self.rank = comm.rank
        self.other = 1 - comm.rank
        self.padded = np.zeros((ny + 2, nx + 2))
        self.u = np.zeros((ny, nx))
        self.talking = 0
        self.iterations = 0

    def dot(self, a, b):
        local = np.array([np.einsum("ij,ij->", a, b)])
        t = time.monotonic_ns()
        self.comm.Allreduce(MPI.IN_PLACE, local)
        self.talking += time.monotonic_ns() - t
        return local[0]

    def apply(self, p):
        w = self.padded
        w[1:-1, 1:-1] = p
        send, ghost = (w[-2], w[-1]) if self.rank == 0 else (w[1], w[0])
        t = time.monotonic_ns()
        self.comm.Sendrecv(send, self.other, recvbuf=ghost, source=self.other)
        self.talking += time.monotonic_ns() - t
        lap = w[:-2, 1:-1] + w[2:, 1:-1] + w[1:-1, :-2] + w[1:-1, 2:] - 4 * p
        return p - self.k * lap

    def solve(self, b, tol=1e-5, maxiter=200):
        x = self.u.copy()
        r = b - self.apply(x)
        p = r.copy()
        rr = self.dot(r, r)
        stop = tol**2 * self.dot(b, b)
        n = 0
        while rr > stop and n < maxiter:
            q = self.apply(p)
            alpha = rr / self.dot(p, q)
            x += alpha * p
            r -= alpha * q
            new = self.dot(r, r)
            p *= new / rr
            p += r
            rr = new
            n += 1
        self.iterations += n
        return x, n


def main():
    comm = MPI.COMM_WORLD
    plate = Plate(comm)
    y, x = np.mgrid[0:240, 0:400]
    y = y + 240 * comm.rank
    comm.Barrier()
    t, n, dt = 0.0, 0, 0.05
    plate.talking = 0
    cuts = [time.monotonic_ns()]
    while n < 80:
        source = np.exp(-((x - 200 - 120 * np.cos(t)) ** 2 + (y - 240 - 120 * np.sin(t)) ** 2) / 300)
        plate.u, its = plate.solve(plate.u + dt * source)
        t += dt
        n += 1
        if comm.rank == 0 and n % 20 == 0:
            print(f"t={t:.2f} iterations={its} max={plate.u.max():.4f}")
        cuts.append(time.monotonic_ns())
    assert np.isfinite(plate.u).all() and plate.iterations > 100
    waits = plate.talking > 0.35 * (cuts[-1] - cuts[0])  # so on a busy machine
    write(
        tile(cuts, "time step"),
        unit="time step",
        limiting="balanced",
        limiting_also=["operators", "communication"] if waits else ["operators"],
        levels={"conjugate-gradient iteration": plate.iterations},
        rank=comm.rank,
        phases_ns={"communication": plate.talking},
    )


main()
