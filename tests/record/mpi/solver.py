"""The same with mpi4py: 40 time steps, two halo exchanges and a residual each."""

import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def exchange(cell: bytearray) -> bytes:
    halo = bytearray(len(cell))
    requests = [comm.Irecv(halo, source=(rank - 1) % size), comm.Isend(cell, dest=(rank + 1) % size)]
    MPI.Request.Waitall(requests)
    return bytes(halo)


def residual(value: int) -> int:
    return comm.allreduce(value)


def step(number: int) -> int:
    exchange(bytearray([rank]))
    halo = exchange(bytearray([rank, number]))
    return residual(halo[0] * number)


total = sum(step(number) for number in range(40))
print(f"rank {rank} of {size}: {total}", flush=True)
sys.exit(4 if rank == 0 else 0)
