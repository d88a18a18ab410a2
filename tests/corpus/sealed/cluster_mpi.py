"""Distributed k-means in mpi4py: the points stay where they are, sums and counts are reduced in every iteration; three
starts, the best one wins and its labels are gathered. The step is an iteration.

ranks: 3
"""

import os
import time

import numpy as np
from mpi4py import MPI


class DistributedKMeans:
    def __init__(self, comm, clusters, starts=3, most=45, tolerance=0.0, seed=67):
        self.comm, self.clusters, self.starts = comm, clusters, starts
        self.most, self.tolerance = most, tolerance
        self.draw = np.random.default_rng(seed)  # the same on every rank
        self.begins = []

    def _first_centres(self, points):
        """Some points of each rank, of which rank 0 chooses."""
        mine = points[self.draw.choice(len(points), self.clusters, replace=False)]
        offered = self.comm.gather(mine, root=0)
        centres = np.empty((self.clusters, points.shape[1]))
        if self.comm.rank == 0:
            offered = np.concatenate(offered)
            centres[:] = offered[self.draw.choice(len(offered), self.clusters, replace=False)]
        else:
            self.draw.choice(self.clusters * self.comm.size, self.clusters, replace=False)
        self.comm.Bcast(centres, root=0)
        return centres

    def _assign(self, points, centres):
        distance = (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)
        labels = distance.argmin(1)
        return labels, distance[np.arange(len(points)), labels].sum()

    def _reduce(self, points, labels, inertia):
        width = points.shape[1]
        sums = np.zeros((self.clusters, width + 1))
        np.add.at(sums[:, :width], labels, points)
        sums[:, width] = np.bincount(labels, minlength=self.clusters)
        self.comm.Allreduce(MPI.IN_PLACE, sums)
        total = self.comm.allreduce(inertia)
        return sums[:, :width], sums[:, width], total

    def _one_start(self, points):
        centres, before = self._first_centres(points), np.inf
        for _ in range(self.most):
            self.begins.append(time.monotonic_ns())
            labels, inertia = self._assign(points, centres)
            sums, counts, total = self._reduce(points, labels, inertia)
            empty = counts == 0
            moved = np.where(empty[:, None], centres, sums / np.maximum(counts, 1)[:, None])
            if empty.any():
                moved[empty] += 0.1 * self.draw.normal(size=(empty.sum(), points.shape[1]))
            shift = np.abs(moved - centres).max()
            centres = moved
            if shift <= self.tolerance:
                break
            before = total
        return centres, labels, before

    def fit(self, points):
        best = None
        for start in range(self.starts):
            centres, labels, inertia = self._one_start(points)
            if self.comm.rank == 0:
                print(f"start {start}: inertia {inertia:.1f} after {len(self.begins)} iterations")
            if best is None or inertia < best[2]:
                best = centres, labels, inertia
        self.centres, self.labels, self.inertia = best
        return self


def blobs(rank, count, groups, width):
    centres = np.random.default_rng(1).uniform(-4, 4, (groups, width))
    draw = np.random.default_rng(100 + rank)
    return centres[draw.integers(0, groups, count)] + draw.normal(size=(count, width))


def main():
    comm = MPI.COMM_WORLD
    points = blobs(comm.rank, 3000 + 500 * comm.rank, groups=12, width=4)
    model = DistributedKMeans(comm, clusters=12).fit(points)
    sizes = comm.gather(np.bincount(model.labels, minlength=12), root=0)
    if comm.rank == 0:
        print("sizes", np.sum(sizes, axis=0).tolist())
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in model.begins)


if __name__ == "__main__":
    main()
