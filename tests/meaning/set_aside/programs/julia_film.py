# run: mpirun -n 2
"""A film of the Mandelbrot set, frame by frame: rank 0 computes the upper rows, rank 1 the lower ones, rank 0 colours.

Planted: `my_rows` cuts a picture into blocks of rows, but the black inside of the set, where no point ever escapes,
lies in the lower half, so that rank 1 computes several times as long and rank 0 waits for it in Gather. Truth: 110
frames on each rank; straggler 1. Dealing rows out in turn (rank 0 the even ones, rank 1 the odd ones) is measured
after the film on some of its frames, in processor time, as waiting ranks are busy, too; the share by which the slower
rank then takes less than rank 1 took, of rank 1's time in `escape`, is the gain.
"""

import math
from time import monotonic_ns, process_time_ns

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

HEIGHT, WIDTH, DEPTH, FRAMES = 260, 360, 70, 110


def my_rows(comm):
    each = HEIGHT // comm.size
    return np.arange(comm.rank * each, (comm.rank + 1) * each)


def my_rows_in_turn(comm):
    return np.arange(comm.rank, HEIGHT, comm.size)


def camera(frames):
    for k in range(frames):
        swing = 0.06 * math.sin(2 * math.pi * k / frames)
        yield complex(-0.55 + swing, 0.72), 2.3 * 0.9985**k


def escape(centre, width, rows):
    """After how many rounds each point of these rows leaves the circle of radius 2 (DEPTH: not at all)."""
    re = centre.real + width * (np.arange(WIDTH) / WIDTH - 0.5)
    im = centre.imag - width * HEIGHT / WIDTH * (rows / HEIGHT - 0.5)
    c = (re[None, :] + 1j * im[:, None]).ravel()
    rounds = np.full(c.size, DEPTH, dtype=np.int32)
    alive = np.arange(c.size)
    z = np.zeros_like(c)
    for n in range(DEPTH):
        z = z * z + c
        inside = z.real**2 + z.imag**2 < 4.0
        if not inside.all():
            rounds[alive[~inside]] = n
            alive, z, c = alive[inside], z[inside], c[inside]
    return rounds


class Film:
    def __init__(self, comm):
        self.comm = comm
        ramp = np.linspace(0, 1, DEPTH + 1)
        self.palette = (255 * np.stack([ramp, ramp**0.5, 1 - ramp], axis=1)).astype(np.uint8)
        self.whole = np.empty(HEIGHT * WIDTH, dtype=np.int32) if comm.rank == 0 else None
        self.brightness = []
        self.times = {"escape": 0, "communication": 0}
        self.cpu = []

    def shoot(self, frames):
        rows = my_rows(self.comm)
        cuts = [monotonic_ns()]
        for number, (centre, width) in enumerate(camera(frames)):
            cpu, t0 = process_time_ns(), monotonic_ns()
            mine = escape(centre, width, rows)
            t1 = monotonic_ns()
            self.cpu.append(process_time_ns() - cpu)
            self.comm.Gather(mine, self.whole, root=0)
            t2 = monotonic_ns()
            if self.comm.rank == 0:
                self.develop(number)
            self.times["escape"] += t1 - t0
            self.times["communication"] += t2 - t1
            cuts.append(monotonic_ns())
        return cuts

    def develop(self, number):
        picture = self.palette[self.whole].reshape(HEIGHT, WIDTH, 3)
        self.brightness.append(picture.mean())
        if number % 25 == 0:
            print(f"frame {number}: brightness {self.brightness[-1]:.2f}", flush=True)


def saved_in_turn(comm, film, every=6):
    """The share of the slower rank's work that is saved where rows are dealt out in turn, on some of the frames."""
    turn = block = 0
    for number, (centre, width) in list(enumerate(camera(FRAMES)))[::every]:
        t = process_time_ns()
        escape(centre, width, my_rows_in_turn(comm))
        turn += comm.allreduce(process_time_ns() - t, op=MPI.MAX)
        block += comm.allreduce(film.cpu[number], op=MPI.MAX)
    return 1 - turn / block


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    film = Film(world)
    world.Barrier()
    cuts = film.shoot(FRAMES)
    slow = world.bcast(film.times["escape"], root=1)
    write(
        tile(cuts, "frame"),
        unit="frame",
        limiting="straggler",
        limiting_rank=1,
        rank=world.rank,
        phases_ns=film.times,
        problem=problem(
            "blocks of rows give rank 1 nearly all points that never escape", "julia_film.py:my_rows", "straggler",
            wasted_ns=int(slow * saved_in_turn(world, film)),
        ),
    )  # fmt: skip
