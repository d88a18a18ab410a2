# run: mpirun -n 2
"""A flock of 900 birds (Vicsek's model) on two ranks, each of which turns half of the birds in every time step.

All positions and headings are exchanged by Allgather each step. Neighbour lists are rebuilt every 10th step, the order
of the flock is printed every 40th. Planted: the rebuild compares all pairs in nested Python loops.
Truth: 400 time steps of three classes: 350 plain, 40 with a rebuild, 10 with statistics. Both ranks do the same, and
are limited by Python, in `find_neighbours`; the gain is measured against the same lists made by NumPy, after the loop.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

STEPS, REBUILD, REPORT = 400, 10, 40
BIRDS, BOX, SIGHT, SKIN, SPEED, DT = 900, 26.0, 2.0, 0.6, 0.5, 0.05

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
share = BIRDS // comm.Get_size()
own = slice(rank * share, (rank + 1) * share)


def find_neighbours(mine, everyone):
    owner, other = [], []
    reach = (SIGHT + SKIN) ** 2
    everyone = everyone.tolist()
    for i, (x, y) in enumerate(mine.tolist()):
        for j, (xx, yy) in enumerate(everyone):
            dx = x - xx
            dy = y - yy
            dx -= BOX * round(dx / BOX)
            dy -= BOX * round(dy / BOX)
            if dx * dx + dy * dy < reach:
                owner.append(i)
                other.append(j)
    return np.array(owner), np.array(other)


def find_neighbours_numpy(mine, everyone):
    apart = mine[:, None] - everyone[None]
    apart -= BOX * np.rint(apart / BOX)
    return np.nonzero((apart**2).sum(axis=-1) < (SIGHT + SKIN) ** 2)


def turn(places, headings, owner, other, rng):
    apart = places[own][owner] - places[other]
    apart -= BOX * np.rint(apart / BOX)
    seen = (apart**2).sum(axis=1) < SIGHT**2
    sines = np.bincount(owner[seen], np.sin(headings[other[seen]]), share)
    cosines = np.bincount(owner[seen], np.cos(headings[other[seen]]), share)
    return np.arctan2(sines, cosines) + rng.uniform(-0.3, 0.3, share)


rng = np.random.default_rng(rank)
places = np.random.default_rng(10).uniform(0, BOX, (BIRDS, 2))
headings = np.random.default_rng(11).uniform(-np.pi, np.pi, BIRDS)
talking = searching = 0
comm.Barrier()
cuts = [time.monotonic_ns()]
for step in range(STEPS):
    if step % REBUILD == 0:
        t = time.monotonic_ns()
        owner, other = find_neighbours(places[own], places)
        searching += time.monotonic_ns() - t
    mine = turn(places, headings, owner, other, rng)
    moved = (places[own] + SPEED * DT * np.column_stack([np.cos(mine), np.sin(mine)])) % BOX
    t = time.monotonic_ns()
    comm.Allgather(mine, headings)
    comm.Allgather(moved, places)
    talking += time.monotonic_ns() - t
    if step % REPORT == REPORT - 1:
        total = comm.allreduce(np.exp(1j * mine).sum())
        if rank == 0:
            print(f"step {step + 1}: order {abs(total) / BIRDS:.3f}, {len(owner) / share:.1f} neighbours")
    cuts.append(time.monotonic_ns())

t = time.monotonic_ns()
for _ in range(5):
    find_neighbours_numpy(places[own], places)
better = (time.monotonic_ns() - t) // 5
write(
    tile(cuts, lambda i: "rebuild" if i % REBUILD == 0 else "statistics" if i % REPORT == REPORT - 1 else "plain"),
    unit="time step",
    limiting="python",
    rank=rank,
    phases_ns={"communication": talking, "neighbours": searching},
    problem=problem(
        "neighbour lists are made by nested Python loops over all pairs",
        "flock_lists.py:find_neighbours",
        "python",
        wasted_ns=searching - better * (STEPS // REBUILD),
    ),
)
