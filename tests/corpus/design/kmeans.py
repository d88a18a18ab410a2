"""Lloyd's k-means on blobs: assign and move until nothing changes or the limit is reached."""

import os
import time

import numpy as np


def assign(points, centres):
    distance = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    return distance.argmin(axis=1), distance.min(axis=1).sum()


def move(points, labels, k, rng):
    centres = np.empty((k, points.shape[1]))
    for j in range(k):
        mine = points[labels == j]
        centres[j] = mine.mean(axis=0) if len(mine) else points[rng.integers(len(points))]
    return centres


def kmeans(points, k, iterations, rng, begins):
    centres = points[rng.choice(len(points), k, replace=False)]
    for _ in range(iterations):
        begins.append(time.monotonic_ns())
        labels, inertia = assign(points, centres)
        centres = move(points, labels, k, rng)
    return centres, inertia


if __name__ == "__main__":
    rng = np.random.default_rng(11)
    points = np.concatenate([rng.normal(m, 1.0, (300, 4)) for m in rng.normal(0, 4, (6, 4))])
    begins = []
    centres, inertia = kmeans(points, 6, 80, rng, begins)
    print(f"inertia {inertia:.1f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)
