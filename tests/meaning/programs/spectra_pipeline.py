# run: mpirun -n 3
"""A pipeline of ranks: 0 makes detector frames, 1 takes out spikes, 2 sums spectra. Frames go on with Send and Recv.

Truth: 120 frames on each rank. Rank 1 goes through each row in plain Python and holds up the others, which wait in Send
and Recv. A median filter with NumPy, measured afterwards, leaves at most the slowest other stage: that is the gain.
Within rank 1 it is Python, of course.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

FRAMES, SHAPE = 120, (48, 1024)
comm = MPI.COMM_WORLD
rank = comm.Get_rank()
waiting = 0


def waits(call, *args, **kwargs):
    global waiting
    t = time.monotonic_ns()
    call(*args, **kwargs)
    waiting += time.monotonic_ns() - t


def source():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, SHAPE[1])
    for k in range(FRAMES):
        frame = 10 + 100 * np.exp(-(((x - 0.2 - k / 300) / 0.03) ** 2)) + rng.standard_normal(SHAPE)
        frame[rng.random(SHAPE) < 0.01] += 400
        waits(comm.Send, np.ascontiguousarray(frame), dest=1)
        yield frame


def despike(frame):
    clean = []
    for row in frame.tolist():
        out = row[:1]
        for left, here, right in zip(row, row[1:], row[2:]):
            level = (left + right) / 2
            out.append(min(left, right) if here > 60 + level else here)
        out.append(row[-1])
        clean.append(out)
    return np.array(clean)


def despike_numpy(frame):
    left, here, right = frame[:, :-2], frame[:, 1:-1], frame[:, 2:]
    clean = frame.copy()
    clean[:, 1:-1] = np.where(here > 60 + (left + right) / 2, np.minimum(left, right), here)
    return clean


def filtering():
    frame = np.empty(SHAPE)
    for _ in range(FRAMES):
        waits(comm.Recv, frame, source=0)
        clean = despike(frame)
        waits(comm.Send, clean, dest=2)
        yield frame


def sink():
    clean, spectrum = np.empty(SHAPE), np.zeros(SHAPE[1])
    for _ in range(FRAMES):
        waits(comm.Recv, clean, source=1)
        spectrum += np.median(clean, axis=0)
        yield clean
    print("peak at", int(spectrum.argmax()))


comm.Barrier()
cuts = [time.monotonic_ns()]
for frame in (source, filtering, sink)[rank]():
    cuts.append(time.monotonic_ns())
working = cuts[-1] - cuts[0] - waiting
comm.Barrier()
if rank == 1:
    assert np.array_equal(despike(frame), despike_numpy(frame))
    t = time.monotonic_ns()
    for _ in range(10):
        despike_numpy(frame)
    working = (time.monotonic_ns() - t) // 10 * FRAMES
slowest = max(comm.allgather(working))
write(
    tile(cuts, "frame"),
    unit="frame",
    limiting="straggler",
    limiting_rank=1,
    limiting_also=["python"] if rank == 1 else ["communication"],
    rank=rank,
    phases_ns={"communication": waiting},
    problem=problem(
        "the middle stage filters in plain Python", "spectra_pipeline.py:despike", "straggler",
        wasted_ns=cuts[-1] - cuts[0] - slowest,
    ),
)  # fmt: skip
