# run: mpirun -n 2
"""Heat equation in a rod, split over ranks; the ends go by Sendrecv, the residual is reduced every 10th step.

Healthy: both ranks have the same number of cells, and the exchange is two numbers.
Truth: 2200 time steps of two classes, 1980 plain and 220 with the residual; balanced, NumPy takes nearly all.
"""

from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import tile, write

CELLS = 400_000
STEPS = 2200
ALPHA = 0.25

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank < size - 1 else MPI.PROC_NULL

x = (np.arange(CELLS + 2) + rank * CELLS) / (CELLS * size)
u = np.exp(-100 * (x - 0.5) ** 2)
new = u.copy()
flux = np.empty(CELLS)
residual = np.zeros(1)
total = np.zeros(1)

comm.Barrier()
exchange = 0
cuts = [monotonic_ns()]
for step in range(1, STEPS + 1):
    t = monotonic_ns()
    comm.Sendrecv(u[1:2], dest=left, recvbuf=u[-1:], source=right)
    comm.Sendrecv(u[-2:-1], dest=right, recvbuf=u[:1], source=left)
    exchange += monotonic_ns() - t

    np.add(u[2:], u[:-2], out=flux)
    flux -= 2 * u[1:-1]
    new[1:-1] = u[1:-1] + ALPHA * flux

    if step % 10 == 0:
        residual[0] = np.dot(flux, flux)
        t = monotonic_ns()
        comm.Allreduce(residual, total, op=MPI.SUM)
        exchange += monotonic_ns() - t
        if rank == 0 and step % 100 == 0:
            print(f"step {step:5d}  residual {np.sqrt(total[0]):.6e}", flush=True)

    u, new = new, u
    cuts.append(monotonic_ns())

write(
    tile(cuts, lambda i: "step+residual" if i % 10 == 9 else "step"),
    unit="time step",
    rank=rank,
    limiting="balanced",
    limiting_also=["operators"],
    phases_ns={"communication": exchange},
)
