# run: mpirun -n 2
"""Split-step Schroedinger equation on a square: FFT along rows, transpose, FFT along the other axis, and all that back.

The transpose is one Alltoall with derived datatypes, as FFT libraries do it: nothing is packed by hand, and MPI walks
the columns element by element.
Truth: 36 time steps of two transposes each; limited by communication, as the Alltoall takes most of the time. The gain
is measured: the same transpose packed with NumPy is timed after the loop, and the best times of both are compared.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

N, STEPS, DT = 1536, 36, 0.01
comm = MPI.COMM_WORLD
rank, size, rows = comm.rank, comm.size, N // comm.size
mine = slice(rank * rows, rank * rows + rows)

element = MPI.C_DOUBLE_COMPLEX
column = element.Create_vector(rows, 1, N).Create_resized(0, 16)
columns = column.Create_contiguous(rows).Create_resized(0, rows * 16).Commit()
square = element.Create_subarray([rows, N], [rows, rows], [0, 0]).Create_resized(0, rows * 16).Commit()
exchanges, by_hand = [], []


def transpose(a, out):
    t = time.monotonic_ns()
    comm.Alltoall([a, 1, columns], [out, 1, square])
    exchanges.append(time.monotonic_ns() - t)


def packed(a, out):
    blocks = np.ascontiguousarray(a.reshape(rows, size, rows).transpose(1, 2, 0))
    comm.Alltoall(blocks, got := np.empty_like(blocks))
    out.reshape(rows, size, rows)[:] = got.transpose(1, 0, 2)


x = np.linspace(-10, 10, N, endpoint=False)
k = 2 * np.pi * np.fft.fftfreq(N, 20 / N)
potential = np.exp(-0.5j * DT * (x[mine, None] ** 2 + x[None, :] ** 2))
kinetic = np.exp(-0.5j * DT * (k[mine, None] ** 2 + k[None, :] ** 2))
psi = np.exp(-((x[mine, None] - 2) ** 2) - x[None, :] ** 2 + 0j)
turned = np.empty_like(psi)

comm.Barrier()
cuts = [time.monotonic_ns()]
for _ in range(STEPS):
    psi *= potential
    np.fft.fft(psi, axis=1, out=psi)
    transpose(psi, turned)
    np.fft.fft(turned, axis=1, out=turned)
    turned *= kinetic
    np.fft.ifft(turned, axis=1, out=turned)
    transpose(turned, psi)
    np.fft.ifft(psi, axis=1, out=psi)
    cuts.append(time.monotonic_ns())

in_loop, typed = sum(exchanges), min(exchanges)
for _ in range(30):
    t = time.monotonic_ns()
    packed(psi, turned)
    by_hand.append(time.monotonic_ns() - t)
transpose(psi, check := np.empty_like(psi))
assert np.array_equal(check, turned)
write(
    tile(cuts, "step"),
    unit="time step",
    rank=rank,
    limiting="communication",
    levels={"transpose": 2 * STEPS},
    phases_ns={"communication": in_loop},
    problem=problem(
        "the transpose sends columns element by element through derived datatypes",
        "wave_packet.py:transpose",
        "communication",
        wasted_ns=in_loop * (1 - min(by_hand) / typed),
    ),
)
