# run: mpirun -n 4
"""Four all-sky cameras, one to a rank, take frames and stack them; only every 6th frame do the ranks talk.

A frame is exposed for 20 ms (slept), calibrated and added to the camera's own stack; after each sixth frame the stacks
are summed over all cameras by Allreduce and the sky's background is taken from the sum.
Planted: the camera of rank 2 needs 32 ms for a frame, so the others wait for it, but only in every sixth frame.
Truth: 240 frames on each rank of two classes, 200 plain and 40 with the sum; straggler 2. A camera as fast as the
others saves 12 ms of each frame by construction.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

FRAMES, EVERY, SIDE = 240, 6, 240
EXPOSURE = [0.020, 0.020, 0.032, 0.020]


class Camera:
    def __init__(self, number):
        self.number = number
        self.rng = np.random.default_rng(number)
        self.dark = self.rng.normal(100, 2, (SIDE, SIDE))
        self.flat = self.rng.normal(1, 0.01, (SIDE, SIDE))
        self.raw = self.rng.poisson(800, (SIDE, SIDE)).astype(float)

    def expose(self):
        time.sleep(EXPOSURE[self.number])
        return np.roll(self.raw, 1, axis=0)


def calibrate(raw, camera):
    return (raw - camera.dark) / camera.flat


def main():
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    camera = Camera(rank)
    stack = np.zeros((SIDE, SIDE))
    night = np.empty_like(stack)
    backgrounds = []
    exposing = talking = 0
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for frame in range(1, FRAMES + 1):
        t = time.monotonic_ns()
        raw = camera.expose()
        exposing += time.monotonic_ns() - t
        stack += calibrate(raw, camera)
        if frame % EVERY == 0:
            t = time.monotonic_ns()
            comm.Allreduce(stack, night)
            talking += time.monotonic_ns() - t
            backgrounds.append(float(np.median(night)) / (EVERY * comm.Get_size()))
            stack[:] = 0
        cuts.append(time.monotonic_ns())
    if rank == 0:
        print(f"background {np.mean(backgrounds):.1f} +- {np.std(backgrounds):.3f} in {len(backgrounds)} stacks")

    late = int((EXPOSURE[2] - EXPOSURE[0]) * 1e9) * FRAMES
    write(
        tile(cuts, lambda i: "frame+sum" if (i + 1) % EVERY == 0 else "frame"),
        unit="frame",
        limiting="straggler",
        limiting_rank=2,
        limiting_also=["io"] if rank == 2 else [],
        rank=rank,
        phases_ns={"exposure": exposing, "communication": talking},
        problem=problem(
            "rank 2's camera needs 32 ms for a frame, the others 20 ms",
            "four_cameras.py:Camera.expose",
            "straggler",
            gain=late / (cuts[-1] - cuts[0]),
        ),
    )


if __name__ == "__main__":
    main()
