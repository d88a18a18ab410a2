# run: mpirun -n 2
"""A spectral Poisson solver on a square: FFT along rows, transpose, FFT along the other axis, and all that back.

The transpose is one Alltoall with derived datatypes, so that no buffer has to be packed by hand; MPI walks the columns
element by element. Truth: 30 time steps of four transposes each; limited by communication, as the Alltoall takes
most of the time. The gain is measured: the same transpose, packed with NumPy, is timed after
the loop, and the best times of both are compared.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

N, STEPS = 1024, 30
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
rows = N // size


def column_types():
    """One block of the transpose: `rows` columns of what is sent, a square of what is received."""
    element = MPI.C_DOUBLE_COMPLEX
    column = element.Create_vector(rows, 1, N).Create_resized(0, 16)
    columns = column.Create_contiguous(rows).Create_resized(0, rows * 16)
    square = element.Create_subarray([rows, N], [rows, rows], [0, 0]).Create_resized(0, rows * 16)
    return columns.Commit(), square.Commit()


SENT, RECEIVED = column_types()
spent = []


def transpose(a):
    out = np.empty_like(a)
    t = time.monotonic_ns()
    comm.Alltoall([a, 1, SENT], [out, 1, RECEIVED])
    spent.append(time.monotonic_ns() - t)
    return out


def packed(a):
    blocks = np.ascontiguousarray(a.reshape(rows, size, rows).transpose(1, 2, 0))
    got = np.empty_like(blocks)
    comm.Alltoall(blocks, got)
    return np.ascontiguousarray(got.transpose(1, 0, 2)).reshape(rows, N)


def solve(rhs, k2):
    f = np.fft.fft(rhs, axis=1)
    f = transpose(f)
    f = np.fft.fft(f, axis=1)
    f /= -k2
    f = np.fft.ifft(f, axis=1)
    f = transpose(f)
    return np.fft.ifft(f, axis=1).real


k = np.fft.fftfreq(N, 1 / N)
k2 = k[rank * rows : (rank + 1) * rows, None] ** 2 + k[None, :] ** 2
if rank == 0:
    k2[0, 0] = np.inf
y, x = np.meshgrid(np.arange(rank * rows, (rank + 1) * rows), np.arange(N), indexing="ij")
rho = np.exp(-((x - N / 3) ** 2 + (y - N / 2) ** 2) / 200.0)

comm.Barrier()
cuts = [time.monotonic_ns()]
for step in range(STEPS):
    phi = solve(rho, k2)
    rho = rho + 0.01 * solve(phi * rho, k2)
    cuts.append(time.monotonic_ns())
    if rank == 0 and step % 10 == 0:
        print(f"step {step} phi {phi.min():.4e} {phi.max():.4e}")

in_loop, typed = sum(spent), min(spent)
sample = np.fft.fft(rho, axis=1)
assert np.array_equal(transpose(sample), packed(sample))
by_hand = []
for _ in range(STEPS):
    t = time.monotonic_ns()
    packed(sample)
    by_hand.append(time.monotonic_ns() - t)
write(
    tile(cuts, "step"),
    unit="time step",
    rank=rank,
    limiting="communication",
    levels={"transpose": 4 * STEPS},
    phases_ns={"communication": in_loop},
    problem=problem(
        "the transpose sends columns element by element through derived datatypes",
        "poisson_transpose.py:transpose",
        "communication",
        wasted_ns=in_loop * (1 - min(by_hand) / typed),
    ),
)
