# run: mpirun -n 3
"""Frames pass through three stages, one to a rank: read out, register, store; each gets from the rank before.

Stages wait for their devices: 15 ms for reading out, 30 ms for registering (on a board), 15 ms for storing.
Truth: 120 frames; the chain runs at the pace of rank 1 (straggler). Spread evenly, 20 ms each, a frame would take
20 ms instead of 30: a third is saved, by construction.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

FRAMES = 120


class Stage:
    takes = 0.015

    def __init__(self, comm):
        self.comm = comm
        self.rank = comm.Get_rank()
        self.frame = np.zeros((256, 512))
        self.passing = 0

    def receive(self, number):
        if self.rank == 0:
            self.frame[:] = number
            return
        t = time.monotonic_ns()
        self.comm.Recv(self.frame, source=self.rank - 1, tag=number)
        self.passing += time.monotonic_ns() - t

    def send(self, number):
        if self.rank == self.comm.Get_size() - 1:
            return
        t = time.monotonic_ns()
        self.comm.Ssend(self.frame, dest=self.rank + 1, tag=number)
        self.passing += time.monotonic_ns() - t

    def process(self):
        time.sleep(self.takes)
        self.frame += 1

    def run(self):
        cuts = [time.monotonic_ns()]
        for number in range(FRAMES):
            self.receive(number)
            self.process()
            self.send(number)
            cuts.append(time.monotonic_ns())
        return cuts


class Register(Stage):
    takes = 0.030


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    stage = (Stage, Register, Stage)[world.Get_rank()](world)
    world.Barrier()
    cuts = stage.run()
    write(
        tile(cuts, "frame"),
        unit="frame",
        rank=stage.rank,
        limiting="straggler",
        limiting_rank=1,
        phases_ns={"communication": stage.passing},
        problem=problem(
            "registering takes twice as long as the other stages",
            "frame_chain.py:Stage.process",
            "straggler",
            gain=1 / 3,
        ),
    )
