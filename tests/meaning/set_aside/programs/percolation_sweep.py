"""Estimates percolation thresholds of random grids: a pool of two processes simulates, the parent averages the results.

Healthy: the tasks are independent, every process has work until the end. Each task opens cells one by one and joins
them in a union-find, in Python.
Truth: 120 results taken from `imap` in order, limited by Python in the pool's processes; the parent only waits.
"""

import multiprocessing
import random
from time import monotonic_ns

from truth import tile, write

SIDE = 200


def find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def threshold(seed):
    """The share of open cells at which top and bottom are connected."""
    n = SIDE * SIDE
    parent = list(range(n + 2))
    cells = list(range(n))
    random.Random(seed).shuffle(cells)
    is_open = bytearray(n)
    for count, cell in enumerate(cells, 1):
        is_open[cell] = 1
        row, column = divmod(cell, SIDE)
        near = [cell - SIDE if row else n, cell + SIDE if row < SIDE - 1 else n + 1]
        near += [cell - 1] * (column > 0) + [cell + 1] * (column < SIDE - 1)
        for other in near:
            if other >= n or is_open[other]:
                parent[find(parent, other)] = find(parent, cell)
        if find(parent, n) == find(parent, n + 1):
            return count / n
    return 1.0


def main():
    total = squares = 0.0
    with multiprocessing.Pool(2) as pool:
        cuts = [monotonic_ns()]
        for n, share in enumerate(pool.imap(threshold, range(120)), 1):
            total, squares = total + share, squares + share * share
            if n % 30 == 0:
                mean = total / n
                print(f"{n} grids: {mean:.4f} +- {((squares / n - mean * mean) / n) ** 0.5:.4f}")
            cuts.append(monotonic_ns())
    write(tile(cuts, "result"), unit="result", limiting="python", limiting_also=["synchronisation"])


if __name__ == "__main__":
    main()
