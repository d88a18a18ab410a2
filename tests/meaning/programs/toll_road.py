# run: mpirun -n 2
"""Traffic on a ring road of many lanes (Nagel and Schreckenberg), cut into two halves, one to a rank.

Cars that cross a border are sent to the other rank by a nonblocking pair of messages in each step. Planted: the half
of rank 1 holds the toll plaza, whose booths `Plaza.serve` goes through car by car in Python, so that rank 1 takes
several times as long as rank 0, which waits for it. Truth: 640 time steps on each rank; straggler 1. The same booths
with arrays (measured after the loop on the plaza as it is then) take next to nothing; the difference is the gain,
which rank 1 tells to rank 0.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

STEPS, LANES, CELLS, VMAX = 640, 320, 360, 5
EMPTY, BOOTHS = -1, 24
comm = MPI.COMM_WORLD
rank, other = comm.rank, 1 - comm.rank


class Plaza:
    """Booths in all lanes, one behind the other; a car that stops there pays for some steps, then goes on slowly."""

    def __init__(self, first):
        self.cells = range(first, first + BOOTHS)
        self.paying = np.zeros((LANES, BOOTHS), np.int8)
        self.takings, self.clock = 0, 0

    def serve(self, speed):
        for lane in range(LANES):
            for booth, cell in enumerate(self.cells):
                v = speed[lane, cell]
                if v == EMPTY:
                    self.paying[lane, booth] = 0
                elif self.paying[lane, booth] == 0:
                    self.paying[lane, booth] = 1 + (lane + booth) % 3
                    self.takings += 120
                    speed[lane, cell] = 0
                else:
                    self.paying[lane, booth] -= 1
                    speed[lane, cell] = 1 if self.paying[lane, booth] == 0 else 0

    def serve_quickly(self, speed):
        part = speed[:, self.cells.start : self.cells.stop]
        car, new = part != EMPTY, self.paying == 0
        lanes, booths = np.indices(self.paying.shape)
        left = np.where(new, 1 + (lanes + booths) % 3, self.paying - 1)
        part[car] = np.where(~new & (left == 0), 1, 0)[car]
        self.takings += 120 * int((car & new).sum())
        self.paying[:] = np.where(car, left, 0)


class HalfRing:
    def __init__(self):
        self.rng = np.random.default_rng(70 + rank)
        cars = self.rng.random((LANES, CELLS)) < 0.22
        self.speed = np.where(cars, self.rng.integers(0, VMAX + 1, cars.shape), EMPTY).astype(np.int8)
        self.plaza = Plaza(CELLS // 2) if rank == 1 else None
        self.ahead = np.empty((LANES, VMAX), np.int8)
        self.coming = np.empty((LANES, VMAX), np.int8)
        self.waiting = self.passed = 0

    def swap(self, out, into):
        t = time.monotonic_ns()
        requests = [comm.Irecv(into, source=other), comm.Isend(out, dest=other)]
        MPI.Request.Waitall(requests)
        self.waiting += time.monotonic_ns() - t

    def gaps(self):
        """Free cells before each cell's car, at most VMAX, with what lies behind the border."""
        road = np.concatenate([self.speed, self.ahead], axis=1) == EMPTY
        gap, free = np.zeros(self.speed.shape, np.int8), np.ones(self.speed.shape, bool)
        for k in range(1, VMAX + 1):
            free &= road[:, k : k + CELLS]
            gap += free
        return gap

    def step(self):
        if self.plaza:
            t = time.monotonic_ns()
            self.plaza.serve(self.speed)
            self.plaza.clock += time.monotonic_ns() - t
        self.swap(np.ascontiguousarray(self.speed[:, :VMAX]), self.ahead)
        car = self.speed != EMPTY
        v = np.minimum(np.minimum(self.speed + 1, VMAX), self.gaps())
        v -= (v > 0) & (self.rng.random(v.shape, dtype=np.float32) < 0.2)
        new = np.full((LANES, CELLS + VMAX), EMPTY, np.int8)
        lanes, places = np.nonzero(car)
        speeds = v[lanes, places]
        new[lanes, places + speeds] = speeds
        self.swap(np.ascontiguousarray(new[:, CELLS:]), self.coming)
        self.speed = new[:, :CELLS].copy()
        entered = self.coming != EMPTY
        self.speed[:, :VMAX][entered] = self.coming[entered]
        self.passed += int(entered.sum())


def main():
    half = HalfRing()
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for step in range(STEPS):
        half.step()
        if rank == 1 and step % 160 == 159:
            print(f"step {step + 1}: {half.passed} cars came in, {half.plaza.takings / 100:.2f} taken", flush=True)
        cuts.append(time.monotonic_ns())

    saved = None
    if rank == 1:
        speed, t = half.speed.copy(), time.monotonic_ns()
        for _ in range(50):
            half.plaza.serve_quickly(speed)
        saved = half.plaza.clock - (time.monotonic_ns() - t) * STEPS // 50
    saved = comm.bcast(saved, root=1)
    write(
        tile(cuts, "step"),
        rank=rank,
        unit="time step",
        limiting="straggler",
        limiting_rank=1,
        phases_ns={"communication": half.waiting},
        problem=problem(
            "rank 1 serves its toll plaza car by car in Python, the other rank waits",
            "toll_road.py:Plaza.serve",
            "straggler",
            wasted_ns=saved,
        ),
    )


if __name__ == "__main__":
    main()
