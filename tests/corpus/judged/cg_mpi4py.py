"""Conjugate gradients in mpi4py: lower-case allreduce, ghost rows by sendrecv, two ranks; restarted every 50.

ranks: 2
"""

import os
import time

import numpy as np
from mpi4py import MPI


class Grid:
    def __init__(self, comm, rows, columns):
        self.comm, self.rows, self.columns = comm, rows, columns
        self.up = comm.rank - 1 if comm.rank else MPI.PROC_NULL
        self.down = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
        self.above, self.below = np.zeros(columns), np.zeros(columns)

    def ghosts(self, u):
        self.comm.Sendrecv(u[0].copy(), self.up, 0, self.below, self.down, 0)
        self.comm.Sendrecv(u[-1].copy(), self.down, 1, self.above, self.up, 1)

    def apply(self, u):
        self.ghosts(u)
        padded = np.vstack([self.above, u, self.below])
        v = 4.05 * u - padded[:-2] - padded[2:]
        v[:, 1:] -= u[:, :-1]
        v[:, :-1] -= u[:, 1:]
        return v

    def dot(self, a, b):
        return self.comm.allreduce(float((a * b).sum()))


def solve(grid, b, begins, most=160):
    x = np.zeros_like(b)
    done = 0
    while done < most:
        r = b - grid.apply(x)
        p, rho = r.copy(), grid.dot(r, r)
        for _ in range(50):
            begins.append(time.monotonic_ns())
            q = grid.apply(p)
            alpha = rho / grid.dot(p, q)
            x += alpha * p
            r -= alpha * q
            new = grid.dot(r, r)
            done += 1
            if new < 1e-16 or done == most:
                return x, done
            p = r + new / rho * p
            rho = new
    return x, done


def main():
    comm = MPI.COMM_WORLD
    grid, begins = Grid(comm, 48, 96), []
    b = np.random.default_rng(comm.rank).standard_normal((48, 96))
    _, iterations = solve(grid, b, begins)
    if comm.rank == 0:
        print(iterations, "iterations")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
