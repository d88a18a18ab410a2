# run: mpirun -n 2
"""The lowest modes of a vibrating string with masses on it: subspace iteration, the string cut in two halves.

Each iteration applies a polynomial of the operator to 28 vectors (edges are exchanged by Sendrecv for all of them at
once), makes them orthonormal, and every 25th takes Rayleigh quotients. Planted: `orthonormalise` is the textbook's
Gram-Schmidt, one vector against one other at a time, with an allreduce of a single number for each pair, 406 in an
iteration; one Allreduce of the Gram matrix (Cholesky) does the same. Truth: 150 iterations of two classes on each
rank; limited by communication, in `orthonormalise`. The gain is measured: what the same vectors take by Cholesky,
after the loop. Ranks have the same work.
"""

import time

import numpy as np
from mpi4py import MPI
from scipy.linalg import solve_triangular
from truth import problem, tile, write

ITERATIONS, MODES, POINTS, DEGREE = 150, 28, 1200, 6
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
talking = orthonormalising = 0


def allreduce(value):
    global talking
    t = time.monotonic_ns()
    total = comm.allreduce(value)
    talking += time.monotonic_ns() - t
    return total


def exchange(block):
    """`block` with a row more at each end: the neighbour's, or zero where the string is held."""
    global talking
    wide = np.zeros((len(block) + 2, block.shape[1]))
    wide[1:-1] = block
    left, right = (rank - 1 if rank else MPI.PROC_NULL), (rank + 1 if rank + 1 < size else MPI.PROC_NULL)
    t = time.monotonic_ns()
    comm.Sendrecv(wide[1], dest=left, recvbuf=wide[-1], source=right)
    comm.Sendrecv(wide[-2], dest=right, recvbuf=wide[0], source=left)
    talking += time.monotonic_ns() - t
    return wide


class String:
    def __init__(self):
        own = POINTS // size
        x = np.arange(rank * own, (rank + 1) * own) / POINTS
        self.mass = 1.0 + 0.8 * (np.abs(x - 0.3) < 0.05) + 1.5 * (np.abs(x - 0.8) < 0.02)

    def apply(self, block):
        wide = exchange(block)
        return (2 * block - wide[:-2] - wide[2:]) / self.mass[:, None]

    def filtered(self, block):
        """Damps what lies above the lowest part of the spectrum."""
        for _ in range(DEGREE):
            block = block - 0.24 * self.apply(block)
        return block


def orthonormalise(block, mass):
    """Modified Gram-Schmidt in the scalar product of the masses."""
    block = block.T.copy()
    for i, vector in enumerate(block):
        for other in block[:i]:
            vector -= allreduce(float((mass * other) @ vector)) * other
        vector /= np.sqrt(allreduce(float((mass * vector) @ vector)))
    return block.T


def orthonormalise_by_cholesky(block, mass):
    gram = np.empty((MODES, MODES))
    comm.Allreduce(block.T @ (mass[:, None] * block), gram)
    return solve_triangular(np.linalg.cholesky(gram), block.T, lower=True).T


def rayleigh(string, block):
    h = allreduce(block.T @ (string.mass[:, None] * string.apply(block)))
    return np.linalg.eigvalsh((h + h.T) / 2)


def main():
    global orthonormalising
    string = String()
    block = np.random.default_rng(rank).standard_normal((POINTS // size, MODES))
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for iteration in range(ITERATIONS):
        block = string.filtered(block)
        t = time.monotonic_ns()
        block = orthonormalise(block, string.mass)
        orthonormalising += time.monotonic_ns() - t
        if iteration % 25 == 24:
            values = rayleigh(string, block)
            if rank == 0:
                print(f"{iteration + 1:4d}: " + "  ".join(f"{v:.6f}" for v in values[:5]), flush=True)
        cuts.append(time.monotonic_ns())
    spent = talking
    begin = time.monotonic_ns()
    for _ in range(ITERATIONS):
        orthonormalise_by_cholesky(block, string.mass)
    quickly = time.monotonic_ns() - begin
    write(
        tile(cuts, lambda index: "iteration+values" if index % 25 == 24 else "iteration"),
        rank=rank,
        unit="iteration",
        limiting="communication",
        limiting_also=["synchronisation"],
        levels={"pair of vectors": ITERATIONS * MODES * (MODES + 1) // 2},
        phases_ns={"communication": spent},
        problem=problem(
            "one allreduce of a number for each pair of vectors, instead of one for all",
            "vibration_modes.py:orthonormalise",
            "communication",
            wasted_ns=orthonormalising - quickly,
        ),
    )


if __name__ == "__main__":
    main()
