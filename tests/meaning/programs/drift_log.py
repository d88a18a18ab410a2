"""Drift of 3000 buoys in a double gyre, second-order steps in NumPy; all positions are kept for a chart.

Planted: `Chart.add` appends the positions of a step to one array by np.concatenate, which copies all that was kept so
far, so that steps get slower and slower. Truth: 560 time steps; limited by operators (the copies); the gain is the
measured time of `add` less what writing into an array made once takes, measured after the loop.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import time

import numpy as np
from truth import problem, tile, write

BUOYS, STEPS, DT = 3000, 560, 0.02


class Chart:
    def __init__(self, buoys):
        self.kept = np.empty((0, 2, buoys))
        self.spent = 0

    def add(self, positions):
        began = time.monotonic_ns()
        self.kept = np.concatenate([self.kept, positions[None]])
        self.spent += time.monotonic_ns() - began


def current(positions, t):
    x, y = positions
    a = 0.25 * np.sin(0.6 * t)
    f = a * x**2 + (1 - 2 * a) * x
    df = 2 * a * x + 1 - 2 * a
    return np.stack([-np.pi * np.sin(np.pi * f) * np.cos(np.pi * y), np.pi * np.cos(np.pi * f) * np.sin(np.pi * y) * df])


def advance(positions, t):
    half = positions + 0.5 * DT * current(positions, t)
    return positions + DT * current(half, t + 0.5 * DT)


def main():
    rng = np.random.default_rng(2)
    positions = rng.random((2, BUOYS)) * [[2], [1]]
    chart = Chart(BUOYS)
    cuts = [time.monotonic_ns()]
    for step in range(STEPS):
        positions = advance(positions, step * DT)
        chart.add(positions)
        if step % 100 == 0:
            print(f"step {step}: {np.mean(positions[0] > 1):.1%} of the buoys in the eastern gyre", flush=True)
        cuts.append(time.monotonic_ns())

    whole = np.empty((STEPS, 2, BUOYS))
    began = time.monotonic_ns()
    for step in range(STEPS):
        whole[step] = chart.kept[step]
    once = time.monotonic_ns() - began
    assert np.array_equal(whole, chart.kept)
    write(
        tile(cuts, "step"),
        unit="time step",
        limiting="operators",
        phases_ns={"keeping": chart.spent},
        problem=problem(
            "all kept positions are copied to append those of one step",
            "drift_log.py:Chart.add",
            "operators",
            wasted_ns=chart.spent - once,
        ),
    )


if __name__ == "__main__":
    main()
