# run: mpirun -n 2
"""Every 10th step rank 0 writes the gathered field to a slow disk (150 ms) while the other rank waits in a barrier.

Truth: 60 steps of two classes; the other rank's waits are those of a straggler, rank 0; writing costs 6 x 150 ms.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

comm = MPI.COMM_WORLD
rank = comm.rank
field = np.full(1000, float(rank))
comm.Barrier()
output = 0
cuts = [time.monotonic_ns()]
for step in range(60):
    time.sleep(0.005)
    if step % 10 == 9:
        t = time.monotonic_ns()
        whole = comm.gather(field, root=0)
        if rank == 0:
            np.save("field.npy", np.concatenate(whole))
            time.sleep(0.15)
        comm.Barrier()
        output += time.monotonic_ns() - t
    cuts.append(time.monotonic_ns())
write(
    tile(cuts, lambda i: "step+output" if i % 10 == 9 else "step"),
    unit="step",
    rank=rank,
    limiting="io",
    limiting_also=["straggler"],
    phases_ns={"output": output},
    outliers=dict.fromkeys(range(9, 60, 10), "rank 0 writes, the other waits"),
    problem=problem("all wait while rank 0 writes", "mpi_io_rank0.py:<module>", "io", wasted_ns=output),
)
