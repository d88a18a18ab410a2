"""Conway's game of life with NumPy on a torus; every 50th generation the population is printed.

Healthy, compute-bound in NumPy. Truth: 2000 generations.
"""

import time

import numpy as np
from truth import tile, write


def generation(grid):
    around = sum(np.roll(grid, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((around == 3) | ((around == 2) & (grid == 1))).astype(np.int8)


grid = (np.random.default_rng(3).random((500, 500)) < 0.3).astype(np.int8)
cuts = [time.monotonic_ns()]
for g in range(2000):
    grid = generation(grid)
    if g % 50 == 49:
        print(g, int(grid.sum()))
    cuts.append(time.monotonic_ns())
write(tile(cuts, "generation"), unit="generation", limiting="operators")
