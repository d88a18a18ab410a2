# run: mpirun -n 2
"""Shallow water on a periodic channel; every 10th step rank 0 gathers the fields and writes a restart file.

The file is written in records, each flushed and synced "to be safe", while the other rank stands in a Barrier. The
disk is a slow one: it takes 10 ms more for each record.
Truth: 60 steps of two classes, 54 plain and 6 that write; limited by io on rank 0; the gain is the measured time of
`write_restart` there (told to the other rank at the end), as the file could be written beside the next steps.
"""

import os
import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

NX, NY = 400, 300
STEPS, EVERY, RECORDS = 60, 10, 16
FIELDS = ("height", "u", "v")


def step(f, dt=0.05, g=9.81, substeps=2):
    for _ in range(substeps):
        f["u"] -= dt * g * (np.roll(f["height"], -1, 1) - np.roll(f["height"], 1, 1)) / 2
        f["v"] -= dt * g * (np.roll(f["height"], -1, 0) - np.roll(f["height"], 1, 0)) / 2
        out = (np.roll(f["u"], -1, 1) - np.roll(f["u"], 1, 1) + np.roll(f["v"], -1, 0) - np.roll(f["v"], 1, 0)) / 2
        f["height"] -= 0.01 * dt * out


def write_restart(path, whole):
    with open(path, "wb") as out:
        for field in whole.values():
            for record in np.array_split(field, RECORDS):
                out.write(record.tobytes())
                out.flush()
                os.fsync(out.fileno())
                time.sleep(0.01)


def main():
    comm = MPI.COMM_WORLD
    rng = np.random.default_rng(comm.rank)
    f = {name: 1.0 * (name == "height") + 1e-3 * rng.standard_normal((NX, NY)) for name in FIELDS}
    whole = {name: np.empty((comm.size * NX, NY)) if comm.rank == 0 else None for name in FIELDS}
    writing = meeting = 0
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for n in range(1, STEPS + 1):
        step(f)
        if n % EVERY == 0:
            a = time.monotonic_ns()
            for name in FIELDS:
                comm.Gather(f[name], whole[name], root=0)
            b = time.monotonic_ns()
            if comm.rank == 0:
                write_restart("restart.bin", whole)
            c = time.monotonic_ns()
            comm.Barrier()
            meeting, writing = meeting + b - a + time.monotonic_ns() - c, writing + c - b
        cuts.append(time.monotonic_ns())
    phases = {"communication": meeting, **({} if comm.rank else {"checkpoint": writing})}
    write(
        tile(cuts, lambda i: "step" if (i + 1) % EVERY else "step+restart"),
        unit="time step",
        rank=comm.rank,
        limiting="io",
        limiting_also=["straggler"] if comm.rank else [],
        phases_ns=phases,
        problem=problem(
            "rank 0 syncs each record to disk while the other rank waits",
            "shallow_water_restart.py:write_restart",
            "io",
            wasted_ns=comm.bcast(writing, root=0),
        ),
    )


if __name__ == "__main__":
    main()
