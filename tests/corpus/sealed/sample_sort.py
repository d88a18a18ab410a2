"""Parallel sorting by regular sampling in mpi4py, again and again on new keys of changing distribution; every tenth
result is verified. The step is a sort.

ranks: 4
"""

import itertools
import os
import sys
import time

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()


def keys_for(number, count, draw):
    kind = number % 3
    if kind == 0:
        return draw.uniform(0, 1, count)
    if kind == 1:
        return draw.exponential(0.3, count)
    return np.concatenate([draw.normal(RANK, 0.1, count // 2), draw.normal(0, 2, count - count // 2)])


def choose_pivots(keys):
    at = (np.arange(SIZE) * len(keys)) // SIZE
    sample = np.empty(SIZE * SIZE) if RANK == 0 else None
    COMM.Gather(keys[at], sample, root=0)
    pivots = np.empty(SIZE - 1)
    if RANK == 0:
        sample.sort()
        pivots[:] = sample[SIZE + SIZE // 2 - 1 :: SIZE][: SIZE - 1]
    COMM.Bcast(pivots, root=0)
    return pivots


def exchange(keys, pivots):
    cuts = np.concatenate([[0], np.searchsorted(keys, pivots), [len(keys)]])
    send_counts = np.diff(cuts).astype("i")
    receive_counts = np.empty(SIZE, dtype="i")
    COMM.Alltoall(send_counts, receive_counts)
    send_from = cuts[:-1].astype("i")
    receive_at = np.concatenate([[0], np.cumsum(receive_counts)[:-1]]).astype("i")
    received = np.empty(receive_counts.sum())
    COMM.Alltoallv([keys, (send_counts, send_from), MPI.DOUBLE], [received, (receive_counts, receive_at), MPI.DOUBLE])
    return received


def sample_sort(keys):
    keys = np.sort(keys)
    pivots = choose_pivots(keys)
    received = exchange(keys, pivots)
    received.sort(kind="stable")
    return received


def verify(before, after):
    total = COMM.allreduce(len(after)) == COMM.allreduce(len(before))
    same = abs(COMM.allreduce(float(after.sum())) - COMM.allreduce(float(before.sum()))) < 1e-6
    edges = COMM.allgather((after[0], after[-1]) if len(after) else None)
    edges = [edge for edge in edges if edge is not None]
    ordered = all(a[1] <= b[0] for a, b in itertools.pairwise(edges))
    return bool(total and same and ordered and (np.diff(after) >= 0).all())


def main(sorts=90, count=6000):
    draw = np.random.default_rng(66 + RANK)
    begins, largest = [], 0.0
    COMM.Barrier()
    started = MPI.Wtime()
    for number in range(sorts):
        begins.append(time.monotonic_ns())
        keys = keys_for(number, count, draw)
        result = sample_sort(keys)
        largest = max(largest, len(result) / count)
        if number % 10 == 9 and not verify(keys, result):
            print(f"rank {RANK}: sort {number} is wrong", file=sys.stderr)
            COMM.Abort(1)
    worst = COMM.reduce(largest, op=MPI.MAX, root=0)
    if RANK == 0:
        print(f"{sorts * count * SIZE / (MPI.Wtime() - started):.3g} keys/s, imbalance {worst:.2f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"sort {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
