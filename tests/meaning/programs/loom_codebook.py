"""Learns a codebook of weaves from a memory-mapped stack of cloth pictures: MiniBatchKMeans is fitted chunk by chunk.

Truth: 70 chunks, healthy, limited by operators: scikit-learn's distances and centres. Cutting patches out of the pictures is a part of
data, with reading; the inertia of each chunk is watched, and is cheap.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import MiniBatchKMeans
from truth import tile, write

SIDE, PATCH, PER_CHUNK = 72, 8, 6


def weave_stack(path, count):
    rng = np.random.default_rng(9)
    stack = np.lib.format.open_memmap(path, "w+", np.float32, (count, SIDE, SIDE))
    y, x = np.mgrid[:SIDE, :SIDE]
    for picture in stack:
        warp, weft, phase = rng.uniform(0.3, 1.2), rng.uniform(0.3, 1.2), rng.uniform(0, 6)
        picture[:] = np.sin(warp * x + phase) * np.cos(weft * y) + 0.2 * rng.standard_normal((SIDE, SIDE))
    stack.flush()


def patches_of(pictures):
    windows = sliding_window_view(pictures, (PATCH, PATCH), axis=(1, 2))[:, ::2, ::2]
    flat = windows.reshape(-1, PATCH * PATCH)
    flat = flat - flat.mean(1, keepdims=True)
    return flat / (flat.std(1, keepdims=True) + 1e-3)


def learn(stack, words=256):
    codebook = MiniBatchKMeans(words, random_state=9, n_init=1, reassignment_ratio=0.0)
    watched = []
    spent = {"data": 0, "fit": 0}
    cuts = [time.monotonic_ns()]
    start = 0
    while start < len(stack):
        patches = patches_of(np.asarray(stack[start : start + PER_CHUNK]))
        t0 = time.monotonic_ns()
        codebook.partial_fit(patches)
        t1 = time.monotonic_ns()
        watched.append(float(((patches[:200] - codebook.cluster_centers_[codebook.labels_[:200]]) ** 2).sum(1).mean()))
        start += PER_CHUNK
        spent["data"] += t0 - cuts[-1]
        spent["fit"] += t1 - t0
        cuts.append(time.monotonic_ns())
    return codebook, watched, cuts, spent


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weaves.npy")
        weave_stack(path, 70 * PER_CHUNK)
        codebook, watched, cuts, spent = learn(np.load(path, mmap_mode="r"))
    print(f"{len(codebook.cluster_centers_)} words, distance {watched[0]:.1f} -> {watched[-1]:.1f}")
    write(
        tile(cuts, "chunk"),
        unit="chunk",
        limiting="operators",
        phases_ns=spent,
    )


if __name__ == "__main__":
    main()
