# run: mpirun -n 2
"""A sheet of plasma in one dimension, particle in cell: each of two ranks owns half of the cells and what flies there.

A step deposits charge on the cells, solves for the field (one ghost cell and one number travel), kicks and moves the
particles, and sends those that have left to the neighbour. Every 40th step reduces energies and prints them. Healthy:
both halves hold about as many electrons. Truth: 360 time steps of two classes on each rank; limited by operators (one
may say balanced). `communication` is all the time in MPI, waiting for the other rank included.
"""

from itertools import count
from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import tile, write

CELLS = 256  # of each rank
ELECTRONS = 150_000  # of each rank, at the start
DT, END = 0.1, 36.0
REPORT = 40


class Sheet:
    def __init__(self, comm, rng):
        self.comm = comm
        self.left, self.right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        self.x = rng.random(ELECTRONS) * CELLS
        self.v = rng.normal(0.0, 0.4, ELECTRONS) + np.where(rng.random(ELECTRONS) < 0.5, 1.5, -1.5)
        self.weight = CELLS / ELECTRONS
        self.talking = 0

    def swap(self, to_left, to_right):
        """One array to each neighbour, one from each; they may be of any length."""
        t = monotonic_ns()
        got = []
        for tag, (array, dest, source) in enumerate(
            [(to_left, self.left, self.right), (to_right, self.right, self.left)]
        ):
            size = np.zeros(1, "i8")
            self.comm.Sendrecv(np.array([array.size]), dest, tag, size, source, tag)
            into = np.empty(size[0])
            self.comm.Sendrecv(array, dest, 10 + tag, into, source, 10 + tag)
            got.append(into)
        self.talking += monotonic_ns() - t
        return got

    def deposit(self):
        cell = self.x.astype(np.int64)
        part = self.x - cell
        charge = np.bincount(cell, 1 - part, CELLS + 1) + np.bincount(cell + 1, part, CELLS + 1)
        _, from_left = self.swap(np.empty(0), charge[-1:])
        charge = charge[:-1] * self.weight
        charge[0] += from_left[0] * self.weight
        return 1.0 - charge

    def field(self, charge):
        inner = np.cumsum(charge)
        totals = np.empty(self.comm.size)
        t = monotonic_ns()
        self.comm.Allgather(inner[-1:], totals)
        self.talking += monotonic_ns() - t
        e = (inner + totals[: self.comm.rank].sum()) * 0.02
        beyond, _ = self.swap(e[:1], np.empty(0))
        return np.append(e, beyond)

    def push(self, e):
        cell = self.x.astype(np.int64)
        part = self.x - cell
        self.v -= DT * (e[cell] * (1 - part) + e[cell + 1] * part)
        self.x += DT * self.v

    def migrate(self):
        low, high = self.x < 0, self.x >= CELLS
        bundles = []
        for gone, shift in ((low, CELLS), (high, -CELLS)):
            bundles.append(np.concatenate([self.x[gone] + shift, self.v[gone]]))
        stay = ~(low | high)
        come = [b.reshape(2, -1) for b in self.swap(*bundles)]
        self.x = np.concatenate([self.x[stay], *(b[0] for b in come)])
        self.v = np.concatenate([self.v[stay], *(b[1] for b in come)])
        np.clip(self.x, 0, np.nextafter(CELLS, 0), out=self.x)


def energies(sheet, e, step):
    mine = np.array([0.5 * sheet.weight * (sheet.v**2).sum(), 0.5 * (e[:-1] ** 2).sum(), sheet.x.size])
    total = np.empty_like(mine)
    t = monotonic_ns()
    sheet.comm.Reduce(mine, total, root=0)
    sheet.talking += monotonic_ns() - t
    if sheet.comm.rank == 0:
        print(f"step {step}: kinetic {total[0]:.2f} field {total[1]:.4f} electrons {int(total[2])}", flush=True)


def main():
    comm = MPI.COMM_WORLD
    sheet = Sheet(comm, np.random.default_rng(100 + comm.rank))
    times = dict.fromkeys(("deposit", "field", "push", "migrate"), 0)
    comm.Barrier()
    cuts, kinds = [monotonic_ns()], []
    for step in count(1):
        marks = [(monotonic_ns(), sheet.talking)]
        charge = sheet.deposit()
        marks.append((monotonic_ns(), sheet.talking))
        e = sheet.field(charge)
        marks.append((monotonic_ns(), sheet.talking))
        sheet.push(e)
        marks.append((monotonic_ns(), sheet.talking))
        sheet.migrate()
        marks.append((monotonic_ns(), sheet.talking))
        for name, (t0, c0), (t1, c1) in zip(times, marks, marks[1:]):
            times[name] += (t1 - t0) - (c1 - c0)
        if step % REPORT == 0:
            energies(sheet, e, step)
        kinds.append("step" if step % REPORT else "step+report")
        cuts.append(monotonic_ns())
        if step * DT >= END - 1e-9:
            break
    write(
        tile(cuts, kinds),
        unit="time step",
        limiting="operators",
        limiting_also=["balanced"],
        rank=comm.rank,
        phases_ns={**times, "communication": sheet.talking},
    )


if __name__ == "__main__":
    main()
