# run: mpirun -n 2
"""Sand dunes move over a plain, cut into blocks of rows. Each step needs one row of each neighbour.

Truth: 120 time steps. `neighbours` collects the whole field on all ranks (pickled allgather) and takes two rows of it;
that is most of the time. Exchanging only these rows, measured afterwards, would save nearly all of it. Ranks have the
same work.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

ROWS, COLS, STEPS = 1024, 1024, 120


def neighbours(comm, block):
    field = np.concatenate(comm.allgather(block))
    first = comm.rank * len(block)
    return field[first - 1], field[(first + len(block)) % len(field)]


def neighbours_only(comm, block):
    above, below = np.empty(COLS), np.empty(COLS)
    up, down = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    comm.Sendrecv(block[-1], dest=down, sendtag=1, recvbuf=above, source=up, recvtag=1)
    comm.Sendrecv(block[0], dest=up, sendtag=2, recvbuf=below, source=down, recvtag=2)
    return above, below


def creep(block, above, below):
    flow = 0.1 * block
    block -= flow
    block[1:] += 0.6 * flow[:-1]
    block[0] += 0.06 * above
    block[:-1] += 0.4 * flow[1:]
    block[-1] += 0.04 * below


comm = MPI.COMM_WORLD
block = np.random.default_rng(comm.rank).random((ROWS // comm.size, COLS))
communicating = 0
comm.Barrier()
n, cuts = 0, [time.monotonic_ns()]
while n < STEPS:
    t = time.monotonic_ns()
    above, below = neighbours(comm, block)
    communicating += time.monotonic_ns() - t
    creep(block, above, below)
    n += 1
    cuts.append(time.monotonic_ns())
if comm.rank == 0:
    print("sand on rank 0:", block.sum())

assert all(np.array_equal(a, b) for a, b in zip(neighbours(comm, block), neighbours_only(comm, block)))
t = time.monotonic_ns()
for _ in range(20):
    neighbours_only(comm, block)
rows_only = (time.monotonic_ns() - t) // 20 * STEPS
write(
    tile(cuts, "time step"),
    unit="time step",
    limiting="communication",
    rank=comm.rank,
    phases_ns={"communication": communicating},
    problem=problem(
        "the whole field is collected on all ranks for two rows of it", "dune_fields.py:neighbours", "communication",
        wasted_ns=communicating - rows_only,
    ),
)  # fmt: skip
