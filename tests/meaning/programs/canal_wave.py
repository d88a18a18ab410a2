# run: mpirun -n 2
"""A gate opens in a long canal: shallow-water equations by Lax-Friedrichs, each of two ranks has half of the canal.

`while` the wave travels: the time step follows from the fastest wave (Allreduce), the ends are exchanged by Sendrecv.
Healthy and balanced: both halves have the same number of cells, and NumPy takes nearly all of the time. Truth: as many
time steps as the wave needs, some 1500; rank 0 prints every 250th.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

world = MPI.COMM_WORLD
me, ranks = world.rank, world.size
left = me - 1 if me else MPI.PROC_NULL
right = me + 1 if me + 1 < ranks else MPI.PROC_NULL

cells, g, dx = 120_000, 9.81, 1.0
q = np.zeros((2, cells + 2))  # depth and discharge, with a ghost cell at each end
q[0] = 3.0 if me == 0 else 1.0
fastest, largest = np.zeros(1), np.zeros(1)
incoming = np.zeros(2)
now, step, talking = 0.0, 0, 0

world.Barrier()
cuts = [time.monotonic_ns()]
while now < 220.0:
    a = time.monotonic_ns()
    incoming[:] = q[:, 1]
    world.Sendrecv(q[:, -2].copy(), dest=right, recvbuf=incoming, source=left)
    q[:, 0] = incoming
    incoming[:] = q[:, -2]
    world.Sendrecv(q[:, 1].copy(), dest=left, recvbuf=incoming, source=right)
    q[:, -1] = incoming
    talking += time.monotonic_ns() - a

    u = q[1] / q[0]
    fastest[0] = (np.abs(u) + np.sqrt(g * q[0])).max()
    a = time.monotonic_ns()
    world.Allreduce(fastest, largest, op=MPI.MAX)
    talking += time.monotonic_ns() - a
    dt = 0.9 * dx / largest[0]

    flux = np.stack((q[1], q[1] * u + 0.5 * g * q[0] ** 2))
    q[:, 1:-1] = 0.5 * (q[:, :-2] + q[:, 2:]) - 0.5 * dt / dx * (flux[:, 2:] - flux[:, :-2])
    now += dt
    step += 1
    if step % 250 == 0 and me == 0:
        print(f"{now:7.1f} s: step {step}, fastest wave {largest[0]:.3f} m/s", flush=True)
    cuts.append(time.monotonic_ns())

write(
    tile(cuts, "time step"),
    unit="time step",
    rank=me,
    limiting="balanced",
    limiting_also=["operators"],
    phases_ns={"communication": talking},
)
