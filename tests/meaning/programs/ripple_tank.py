# run: mpirun -n 2
"""Waves in a small tank cut in two: three fields, explicit substeps, edges sent cell by cell.

Communication is most of the time: each substep sends 3 x 24 single numbers by Sendrecv, and computes on 24 x 12 cells.
Truth: 300 frames of 10 substeps; the gain is measured: time in Sendrecv less that of one packed message per substep,
which is tried after the loop.
"""

from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank
NY, NX, FRAMES, SUBSTEPS = 24, 12, 300, 10


def exchange(fields, edge, ghost):
    one = np.empty(1)
    for f in fields:
        for row in range(1, NY + 1):
            comm.Sendrecv(f[row, edge : edge + 1], other, 0, one, other, 0)
            f[row, ghost] = one[0]


def substep(h, u, v, dt):
    u[1:-1, 1:-1] -= dt * (h[1:-1, 2:] - h[1:-1, :-2])
    v[1:-1, 1:-1] -= dt * (h[2:, 1:-1] - h[:-2, 1:-1])
    h[1:-1, 1:-1] -= dt * (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1])


h, u, v = (np.zeros((NY + 2, NX + 2)) for _ in range(3))
if rank == 0:
    h[8:12, 4:8] = 1.0
edge, ghost = (NX, NX + 1) if rank == 0 else (1, 0)
comm.Barrier()
talking = 0
cuts = [monotonic_ns()]
for frame in range(FRAMES):
    for _ in range(SUBSTEPS):
        a = monotonic_ns()
        exchange((h, u, v), edge, ghost)
        talking += monotonic_ns() - a
        substep(h, u, v, 0.05)
    cuts.append(monotonic_ns())
assert np.isfinite(h).all()

packed, got = np.empty(3 * NY), np.empty(3 * NY)
a = monotonic_ns()
for _ in range(500):
    packed[:] = np.concatenate([f[1:-1, edge] for f in (h, u, v)])
    comm.Sendrecv(packed, other, 0, got, other, 0)
    for k, f in enumerate((h, u, v)):
        f[1:-1, ghost] = got[k * NY : (k + 1) * NY]
better = (monotonic_ns() - a) * FRAMES * SUBSTEPS // 500
share = talking / (cuts[-1] - cuts[0])
print(f"rank {rank}: {share:.0%} in exchange, packed would be {better / talking:.0%} of it")
assert share > 0.6 and better < talking / 2
write(
    tile(cuts, "frame"),
    unit="frame of 10 substeps",
    limiting="communication",
    levels={"substep": FRAMES * SUBSTEPS},
    rank=rank,
    phases_ns={"communication": talking},
    problem=problem(
        "edges are sent cell by cell", "ripple_tank.py:exchange", "communication", wasted_ns=talking - better
    ),
)
