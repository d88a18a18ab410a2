# run: mpirun -n 2
"""A plate is heated by a pulsed laser; implicit time steps are solved by Jacobi until both halves have converged.

Two ranks own half of the rows each. Every Jacobi iteration exchanges one row with the neighbour and reduces the largest
change. Time steps are short while the laser is on and long while it is off, so a step takes from about 15 to about 60
iterations. Every 24th step the peak temperature is printed. Healthy and balanced; NumPy takes nearly all of the time.
Truth: 96 time steps, whatever their length; iterations are the inner level.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

STEPS, ROWS, COLS = 96, 300, 500
TOLERANCE = 1e-4

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
up = rank - 1 if rank > 0 else MPI.PROC_NULL
down = rank + 1 if rank < size - 1 else MPI.PROC_NULL
talking = 0


def exchange(field):
    global talking
    t = time.monotonic_ns()
    comm.Sendrecv(field[-2], dest=down, recvbuf=field[0], source=up)
    comm.Sendrecv(field[1], dest=up, recvbuf=field[-1], source=down)
    talking += time.monotonic_ns() - t


def largest(value):
    global talking
    t = time.monotonic_ns()
    value = comm.allreduce(value, op=MPI.MAX)
    talking += time.monotonic_ns() - t
    return value


def solve(field, rhs, r):
    """Jacobi for (1 - r Laplace) field = rhs; returns the number of iterations."""
    for iteration in range(1, 500):
        exchange(field)
        around = field[:-2, 1:-1] + field[2:, 1:-1]
        around += field[1:-1, :-2]
        around += field[1:-1, 2:]
        around *= r
        around += rhs
        around /= 1 + 4 * r
        change = float(np.abs(around - field[1:-1, 1:-1]).max())
        field[1:-1, 1:-1] = around
        if largest(change) < TOLERANCE:
            break
    return iteration


def laser(step):
    """Whether it is on, and the ratio of diffusion that this time step's length makes."""
    phase = step % 24
    return (True, 0.3) if phase < 8 else (False, min(1.5, 0.3 + 0.15 * (phase - 8)))


y, x = np.mgrid[0:ROWS, 1 : COLS - 1]
beam = np.exp(-((y + rank * ROWS - ROWS) ** 2 + (x - COLS / 2) ** 2) / 400.0)
field = np.full((ROWS + 2, COLS), 300.0)
iterations = 0
comm.Barrier()
cuts = [time.monotonic_ns()]
for step in range(STEPS):
    on, r = laser(step)
    rhs = field[1:-1, 1:-1] + (40.0 * beam if on else 0.0)
    iterations += solve(field, rhs, r)
    if step % 24 == 23:
        peak = largest(float(field.max()))
        if rank == 0:
            print(f"step {step + 1}: peak {peak:.1f} K, {iterations} iterations so far")
    cuts.append(time.monotonic_ns())
write(
    tile(cuts, "time step"),
    unit="time step",
    limiting="balanced",
    limiting_also=["operators"],
    rank=rank,
    levels={"iteration": iterations},
    phases_ns={"communication": talking},
)
