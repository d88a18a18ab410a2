# run: mpirun -n 2
"""An ensemble of Lorenz-96 models: each rank integrates its members for 50 steps, and only the end is gathered.

Healthy: same number of members for each rank, nothing to wait for until the end.
Truth: 50 steps (a step is six hours of 40 Runge-Kutta substeps); balanced, limited by NumPy.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write


def tendency(x, forcing=8.0):
    return (np.roll(x, -1, axis=1) - np.roll(x, 2, axis=1)) * np.roll(x, 1, axis=1) - x + forcing


def rk4(x, dt):
    k1 = tendency(x)
    k2 = tendency(x + 0.5 * dt * k1)
    k3 = tendency(x + 0.5 * dt * k2)
    k4 = tendency(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def forecast(x, steps, substeps):
    """Yields the ensemble after each step."""
    for _ in range(steps):
        for _ in range(substeps):
            x = rk4(x, 0.05 / substeps)
        yield x


def main():
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    members, variables, steps, substeps = 256, 480, 50, 40
    start = 8.0 + 0.01 * np.random.default_rng(100 + rank).standard_normal((members // size, variables))

    spread = []
    cuts = [time.monotonic_ns()]
    for x in forecast(start, steps, substeps):
        spread.append(x.std(axis=0).mean())
        cuts.append(time.monotonic_ns())

    everything = np.empty((members, variables)) if rank == 0 else None
    comm.Gather(x, everything, root=0)
    if rank == 0:
        print(f"spread {spread[0]:.4f} -> {spread[-1]:.4f}, of all {everything.std(axis=0).mean():.4f}")

    write(
        tile(cuts, "step"),
        unit="step",
        rank=rank,
        levels={"substep": steps * substeps},
        limiting="balanced",
        limiting_also=["operators"],
    )


if __name__ == "__main__":
    main()
