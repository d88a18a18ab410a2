# run: mpirun -n 2
"""Finds streams of stars: a Gaussian mixture is fitted by expectation-maximisation, each rank holding half of the stars.

An iteration computes the responsibilities of the rank's own stars and sums up its moments; these few numbers are added
over ranks by Allreduce, and every rank updates the mixture for itself. Healthy: both ranks have the same number of
stars, and NumPy takes nearly all of the time. Truth: 150 iterations; operators, one may say balanced; `communication`
is the measured time in Allreduce, which is mostly the noise between ranks. (Two ranks, as there are two cores.)
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"
import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

STARS, DIMENSIONS, STREAMS, ITERATIONS = 14_000, 4, 7, 150


def load_stars(rank):
    rng = np.random.default_rng(100 + rank)
    centres = np.random.default_rng(7).normal(0, 4, (STREAMS, DIMENSIONS))
    which = rng.integers(STREAMS, size=STARS)
    return centres[which] + rng.normal(0, 1 + 0.2 * which[:, None], (STARS, DIMENSIONS))


def log_densities(stars, weights, means, covariances):
    out = np.empty((len(stars), STREAMS))
    for k in range(STREAMS):
        factor = np.linalg.cholesky(covariances[k])
        white = np.linalg.solve(factor, (stars - means[k]).T)
        out[:, k] = np.log(weights[k]) - np.log(np.diag(factor)).sum() - 0.5 * (white**2).sum(axis=0)
    return out


def expectation(stars, *mixture):
    logs = log_densities(stars, *mixture)
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    norm = shares.sum(axis=1, keepdims=True)
    return shares / norm, float((np.log(norm) + top).sum())


def moments(stars, shares):
    zeroth = shares.sum(axis=0)
    first = shares.T @ stars
    second = np.stack([(stars * shares[:, k : k + 1]).T @ stars for k in range(STREAMS)])
    return np.concatenate([zeroth, first.ravel(), second.ravel()])


def maximisation(sums):
    zeroth = sums[:STREAMS]
    first = sums[STREAMS : STREAMS * (1 + DIMENSIONS)].reshape(STREAMS, DIMENSIONS)
    second = sums[STREAMS * (1 + DIMENSIONS) :].reshape(STREAMS, DIMENSIONS, DIMENSIONS)
    means = first / zeroth[:, None]
    spread = second / zeroth[:, None, None] - means[:, :, None] * means[:, None, :]
    return zeroth / zeroth.sum(), means, spread + 1e-6 * np.eye(DIMENSIONS)


comm = MPI.COMM_WORLD
rank = comm.Get_rank()
stars = load_stars(rank)
weights = np.full(STREAMS, 1 / STREAMS)
means = np.random.default_rng(3).normal(0, 4, (STREAMS, DIMENSIONS))
covariances = np.repeat(9 * np.eye(DIMENSIONS)[None], STREAMS, axis=0)
communicating = 0

comm.Barrier()
cuts = [time.monotonic_ns()]
for iteration in range(ITERATIONS):
    shares, likelihood = expectation(stars, weights, means, covariances)
    mine = np.append(moments(stars, shares), likelihood)
    total = np.empty_like(mine)
    t = time.monotonic_ns()
    comm.Allreduce(mine, total, op=MPI.SUM)
    communicating += time.monotonic_ns() - t
    weights, means, covariances = maximisation(total[:-1])
    if rank == 0 and iteration % 25 == 0:
        print(f"iteration {iteration}: log-likelihood per star {total[-1] / STARS / comm.Get_size():.4f}", flush=True)
    cuts.append(time.monotonic_ns())

write(
    tile(cuts, "iteration"),
    unit="EM iteration",
    limiting="operators",
    limiting_also=["balanced"],
    phases_ns={"communication": communicating},
    rank=rank,
)
