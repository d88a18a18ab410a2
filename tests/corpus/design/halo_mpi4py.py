"""Jacobi with halo exchange in mpi4py: rows distributed, nonblocking neighbours, the norm reduced every tenth sweep.

ranks: 4
"""

import os
import time

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
ROWS, COLUMNS = 32, 128


def exchange(u):
    up, down = rank - 1 if rank else MPI.PROC_NULL, rank + 1 if rank < size - 1 else MPI.PROC_NULL
    requests = [
        comm.Irecv(u[0], source=up, tag=1),
        comm.Irecv(u[-1], source=down, tag=2),
        comm.Isend(u[1].copy(), dest=up, tag=2),
        comm.Isend(u[-2].copy(), dest=down, tag=1),
    ]
    MPI.Request.Waitall(requests)


def sweep(u):
    new = u.copy()
    new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return new


def main():
    u = np.zeros((ROWS + 2, COLUMNS))
    u[:, 0] = 1.0
    begins = []
    for iteration in range(150):
        begins.append(time.monotonic_ns())
        exchange(u)
        new = sweep(u)
        if iteration % 10 == 9:
            change = comm.allreduce(float(np.abs(new - u).max()), op=MPI.MAX)
            if rank == 0 and iteration % 50 == 49:
                print(f"{iteration + 1}: {change:.2e}")
        u = new
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
