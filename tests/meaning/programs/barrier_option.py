"""Prices a down-and-out call by Monte Carlo in plain Python: one function per path, batches of 500 paths.

After each batch the running mean and its error are kept, as stopping rules need them. Truth: 100 batches are the steps,
limited by Python, in `payoff`; the gain is measured against the same paths in NumPy, run after the loop.
"""

import math
import random
import time

import numpy as np
from truth import problem, tile, write

SPOT, STRIKE, BARRIER, RATE, SIGMA, DAYS = 100.0, 105.0, 85.0, 0.02, 0.25, 250
DT = 1.0 / DAYS
DRIFT, VOL = (RATE - 0.5 * SIGMA**2) * DT, SIGMA * math.sqrt(DT)


def payoff(rng):
    """One path of daily prices; worthless once the barrier was touched."""
    s, alive = SPOT, True
    for _ in range(DAYS):
        s *= math.exp(DRIFT + VOL * rng.gauss(0.0, 1.0))
        if s <= BARRIER:
            alive = False
    return max(s - STRIKE, 0.0) if alive else 0.0


def payoffs(rng, n):
    """The same for n paths at once."""
    s, alive = np.full(n, SPOT), np.ones(n, bool)
    for _ in range(DAYS):
        s *= np.exp(DRIFT + VOL * rng.standard_normal(n))
        alive &= s > BARRIER
    return np.where(alive, np.maximum(s - STRIKE, 0.0), 0.0)


def main(batches=100, size=500):
    rng = random.Random(3)
    total = squares = 0.0
    cuts = [time.monotonic_ns()]
    for b in range(batches):
        values = [payoff(rng) for _ in range(size)]
        total += sum(values)
        squares += sum(v * v for v in values)
        n = (b + 1) * size
        mean = total / n
        error = math.sqrt((squares / n - mean * mean) / n)
        cuts.append(time.monotonic_ns())
    price = math.exp(-RATE) * mean
    print(f"price {price:.3f} +- {math.exp(-RATE) * error:.3f}")

    fast = np.random.default_rng(3)
    begin = time.monotonic_ns()
    check = np.mean([payoffs(fast, size).mean() for _ in range(20)])
    vectorised = (time.monotonic_ns() - begin) * batches // 20
    print(f"check {math.exp(-RATE) * check:.3f}")
    return cuts, vectorised


cuts, vectorised = main()
write(
    tile(cuts, "batch"),
    unit="batch",
    limiting="python",
    levels={"sample": 50000},
    problem=problem(
        "paths are simulated day by day in the interpreter",
        "barrier_option.py:payoff",
        "python",
        wasted_ns=cuts[-1] - cuts[0] - vectorised,
    ),
)
