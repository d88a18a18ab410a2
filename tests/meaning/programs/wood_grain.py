"""Texture of wood: grey-level co-occurrence of each photo, to the right and down, then contrast and homogeneity.

Planted: pairs of pixels are counted in nested Python loops over lists. Truth: 36 photos; limited by Python, in `main`,
which holds the loops; the gain is measured against `np.bincount` on the same photos, run after the loop.
"""

import os
import time

import numpy as np
from truth import problem, tile, write

SIDE, GREYS, PHOTOS = 960, 16, 36


def take_photos(folder):
    os.makedirs(folder)
    rng = np.random.default_rng(21)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    for i in range(PHOTOS):
        rings = np.sin(np.hypot(x - rng.uniform(-200, 800), 0.2 * y) / rng.uniform(4, 9))
        grey = 7.5 + 5 * rings + rng.normal(0, 1.2, (SIDE, SIDE))
        grey.clip(0, GREYS - 1).astype(np.uint8).tofile(f"{folder}/plank{i:03d}.raw")


def count_by_numpy(grey):
    pairs = [grey[:, :-1].ravel() * GREYS + grey[:, 1:].ravel(), grey[:-1].ravel() * GREYS + grey[1:].ravel()]
    return np.bincount(np.concatenate(pairs), minlength=GREYS * GREYS).reshape(GREYS, GREYS)


def main():
    take_photos("planks")
    i, j = np.mgrid[0:GREYS, 0:GREYS]
    table, tables, reading, counting = [], [], 0, 0
    files = sorted(os.listdir("planks"))
    cuts = [time.monotonic_ns()]
    for name in files:
        with open(f"planks/{name}", "rb") as file:
            grey = np.frombuffer(file.read(), np.uint8).reshape(SIDE, SIDE)
        t0 = time.monotonic_ns()
        counts = [[0] * GREYS for _ in range(GREYS)]
        rows = grey.tolist()
        for row in rows:
            for a, b in zip(row, row[1:]):
                counts[a][b] += 1
        for upper, lower in zip(rows, rows[1:]):
            for a, b in zip(upper, lower):
                counts[a][b] += 1
        t1 = time.monotonic_ns()
        p = np.array(counts) / np.sum(counts)
        table.append((name, (p * (i - j) ** 2).sum(), (p / (1 + abs(i - j))).sum()))
        tables.append(counts)
        reading += t0 - cuts[-1]
        counting += t1 - t0
        cuts.append(time.monotonic_ns())

    for name, contrast, homogeneity in table[::6]:
        print(f"{name}: contrast {contrast:.3f}, homogeneity {homogeneity:.3f}")

    t0 = time.monotonic_ns()
    for name, counts in zip(files, tables):
        grey = np.fromfile(f"planks/{name}", np.uint8).reshape(SIDE, SIDE)
        assert (count_by_numpy(grey) == counts).all()
    wasted = counting - (time.monotonic_ns() - t0)
    what = "pairs of pixels are counted one by one in Python"
    write(
        tile(cuts, "photo"),
        unit="photo",
        limiting="python",
        phases_ns={"data": reading},
        problem=problem(what, "wood_grain.py:main", "python", wasted_ns=wasted),
    )


if __name__ == "__main__":
    main()
