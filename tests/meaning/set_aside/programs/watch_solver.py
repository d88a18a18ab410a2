# run: mpirun -n 2
"""A solver on rank 0 sends a snapshot after each sweep; rank 1 looks out for snapshots and takes their statistics.

Rank 1 asks with Iprobe in a loop until one is there, which keeps its core busy with asking. Truth: 120 messages.
The loop of rank 1 is Python, but it only waits: rank 0 has all the work (straggler). Were the work shared evenly, half
of the time that rank 1 spends asking would be saved (measured there, told to rank 0 at the end).
"""

from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

MESSAGES = 120
SHAPE = (500, 500)
world = MPI.COMM_WORLD


def sweep(u, times=36):
    for _ in range(times):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


def solver():
    u = np.zeros(SHAPE)
    u[0] = 1.0
    cuts = [monotonic_ns()]
    pending = None
    for number in range(MESSAGES):
        sweep(u)
        if pending is not None:
            pending.Wait()
        snapshot = u.copy()
        pending = world.Isend(snapshot, dest=1, tag=number)
        cuts.append(monotonic_ns())
    pending.Wait()
    return cuts, 0


def watcher():
    buffer = np.empty(SHAPE)
    status = MPI.Status()
    asked = idle = 0
    cuts = [monotonic_ns()]
    for number in range(MESSAGES):
        t = monotonic_ns()
        while not world.Iprobe(source=0, tag=MPI.ANY_TAG, status=status):
            asked += 1
        idle += monotonic_ns() - t
        world.Recv(buffer, source=0, tag=status.Get_tag())
        histogram, _ = np.histogram(buffer, bins=20)
        if number % 30 == 0:
            print(number, f"mean {buffer.mean():.5f}", histogram[:3], f"asked {asked} times", flush=True)
        cuts.append(monotonic_ns())
    return cuts, idle


world.Barrier()
cuts, idle = solver() if world.rank == 0 else watcher()
idle_of_watcher = world.bcast(idle, root=1)
write(
    tile(cuts, "message"),
    unit="message",
    rank=world.rank,
    limiting="straggler",
    limiting_rank=0,
    limiting_also=["operators"] if world.rank == 0 else ["communication", "synchronisation"],
    problem=problem(
        "all of the solving is on rank 0 while rank 1 polls",
        "watch_solver.py:sweep",
        "straggler",
        wasted_ns=idle_of_watcher // 2,
    ),
)
