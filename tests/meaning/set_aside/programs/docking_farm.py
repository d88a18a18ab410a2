# run: mpirun -n 3
"""Virtual screening: rank 0 hands 160 ligands to two workers and judges the poses that they send back.

A worker lets an external program dock its ligand (12 ms, slept here) and refines the poses a little. Each worker has
its own half of the ligands, because it keeps their conformers in memory, and gets the next one as it replies.
Planted: the master compares all pairs of a reply's 700 poses in Python before it sends the next ligand, so that both
workers mostly wait for the master. Truth: 160 replies on the master, limited by Python, in `consensus`; 80 tasks on
each worker, straggler 0. The gain is measured: what is left if workers compared poses by NumPy and never waited.
"""

import math
import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

LIGANDS, POSES = 160, 700
WORK, DONE, STOP = 1, 2, 3
PROBLEM = ("the master compares all pairs of poses in Python while workers wait", "docking_farm.py:consensus", "python")


def consensus(poses):
    """The pose that has most others within 2 A."""
    crowd = [0] * len(poses)
    for i, a in enumerate(poses):
        for j in range(i):
            if math.dist(a, poses[j]) < 2.0:
                crowd[i] += 1
                crowd[j] += 1
    return max(range(len(poses)), key=crowd.__getitem__)


def consensus_numpy(poses):
    squares = (poses**2).sum(axis=1)
    return int((squares[:, None] + squares - 2 * poses @ poses.T < 4.0).sum(axis=1).argmax())


def numpy_ns(poses):
    took = []
    for _ in range(5):
        t = time.monotonic_ns()
        consensus_numpy(poses)
        took.append(time.monotonic_ns() - t)
    return min(took)


def dock(ligand):
    time.sleep(0.012)
    rng = np.random.default_rng(ligand)
    poses = rng.normal(0, 4, (POSES, 3))
    return poses - 0.1 * np.sign(poses) * np.sqrt(np.abs(poses))


def worker(comm):
    order = np.empty(1, dtype="i")
    reply = np.empty(1 + 3 * POSES)
    status = MPI.Status()
    talking = docking = 0
    cuts = [time.monotonic_ns()]
    while True:
        t0 = time.monotonic_ns()
        comm.Recv(order, source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == STOP:
            break
        t1 = time.monotonic_ns()
        reply[1:] = dock(int(order[0])).ravel()
        t2 = time.monotonic_ns()
        reply[0] = t2 - t1
        comm.Send(reply, dest=0, tag=DONE)
        cuts.append(time.monotonic_ns())
        talking += t1 - t0 + cuts[-1] - t2
        docking += t2 - t1
    better = numpy_ns(reply[1:].reshape(-1, 3)) * (len(cuts) - 1)
    write(
        tile(cuts, "task"),
        unit="task",
        limiting="straggler",
        limiting_rank=0,
        limiting_also=["synchronisation"],
        rank=comm.Get_rank(),
        phases_ns={"communication": talking, "docking": docking},
        problem=problem(*PROBLEM, wasted_ns=talking - better),
    )


def master(comm):
    workers = range(1, comm.Get_size())
    queues = {each: list(range(each, LIGANDS + 1, len(workers))) for each in workers}
    reply = np.empty(1 + 3 * POSES)
    status = MPI.Status()
    hits, busy, talking, judging = [], 0, 0, 0
    cuts = [time.monotonic_ns()]
    for each in workers:
        comm.Send(np.array(queues[each].pop(), dtype="i"), dest=each, tag=WORK)
    for _ in range(LIGANDS):
        t0 = time.monotonic_ns()
        comm.Recv(reply, source=MPI.ANY_SOURCE, tag=DONE, status=status)
        t1 = time.monotonic_ns()
        poses = reply[1:].reshape(-1, 3)
        hits.append(consensus(poses.tolist()))
        t2 = time.monotonic_ns()
        each = status.Get_source()
        if queues[each]:
            comm.Send(np.array(queues[each].pop(), dtype="i"), dest=each, tag=WORK)
        else:
            comm.Send(np.array(0, dtype="i"), dest=each, tag=STOP)
        cuts.append(time.monotonic_ns())
        busy += int(reply[0])
        talking += t1 - t0 + cuts[-1] - t2
        judging += t2 - t1
    print(f"{len(hits)} ligands, most popular pose {max(set(hits), key=hits.count)}")
    better = numpy_ns(poses) * LIGANDS
    write(
        tile(cuts, "reply"),
        unit="reply",
        limiting="python",
        phases_ns={"communication": talking, "consensus": judging},
        problem=problem(*PROBLEM, wasted_ns=cuts[-1] - cuts[0] - (busy + better) // len(workers)),
    )


if __name__ == "__main__":
    comm = MPI.COMM_WORLD
    worker(comm) if comm.Get_rank() else master(comm)
