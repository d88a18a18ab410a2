# run: mpirun -n 3
"""A scan of 100 tiles: rank 0 hands tiles out to whichever of two workers is free, as the classic example does.

A tile takes 40 to 120 ms on its instrument (slept here, so that three ranks fit two cores) and a small fit afterwards.
Healthy: handing out is quick and both workers are busy all the time; rank 0 has nothing to do but to receive.
Truth: 100 tiles handed out, on rank 0, whose file is the only one: how many each worker gets is not fixed. Balanced.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

TILES = 100
READY, WORK, DONE, STOP = 1, 2, 3, 4


def exposure(number):
    return 0.04 + 0.02 * (number * 7 % 5)


def worker(comm):
    order = np.empty(1, dtype="i")
    answer = np.zeros(8)
    status = MPI.Status()
    comm.Send(answer, dest=0, tag=READY)
    while True:
        comm.Recv(order, source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == STOP:
            return
        time.sleep(exposure(int(order[0])))
        x = np.linspace(-1, 1, 2000)
        y = np.sin(x * order[0]) + x**2
        answer[:] = order[0], *np.polynomial.chebyshev.chebfit(x, y, 6)
        comm.Send(answer, dest=0, tag=DONE)


def master(comm):
    workers = comm.Get_size() - 1
    results = {}
    answer = np.empty(8)
    order = np.empty(1, dtype="i")
    status = MPI.Status()
    receiving = sending = 0
    cuts = [time.monotonic_ns()]
    for number in range(TILES):
        t = time.monotonic_ns()
        comm.Recv(answer, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        receiving += time.monotonic_ns() - t
        if status.Get_tag() == DONE:
            results[int(answer[0])] = answer[1:].copy()
        order[0] = number
        t = time.monotonic_ns()
        comm.Send(order, dest=status.Get_source(), tag=WORK)
        sending += time.monotonic_ns() - t
        cuts.append(time.monotonic_ns())

    for _ in range(workers):
        comm.Recv(answer, source=MPI.ANY_SOURCE, tag=DONE, status=status)
        results[int(answer[0])] = answer[1:].copy()
        comm.Send(order, dest=status.Get_source(), tag=STOP)
    print(f"{len(results)} tiles, mean coefficient {np.mean([r[0] for r in results.values()]):.4f}")
    write(
        tile(cuts, "tile"),
        unit="task handed out",
        limiting="balanced",
        limiting_also=["io"],
        phases_ns={"communication": receiving + sending},
    )


if __name__ == "__main__":
    comm = MPI.COMM_WORLD
    if comm.Get_rank() == 0:
        master(comm)
    else:
        worker(comm)
