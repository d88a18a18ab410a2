"""Transient temperatures of a heat sink under a changing load, implicit in time, red-black sweeps until converged.

Healthy, compute-bound in NumPy. Truth: 120 time steps of one class; the number of sweeps differs from step to step, as the
load switches on and off; nothing stands out but by its sweeps. Sweeps are the inner level, as many as were counted.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
from dataclasses import dataclass, field

import numpy as np
from truth import tile, write


@dataclass
class HeatSink:
    n: int = 220
    diffusion: float = 6.0
    tolerance: float = 2e-4
    sweeps: list = field(default_factory=list)

    def __post_init__(self):
        self.temp = np.full((self.n, self.n), 20.0)
        y, x = np.mgrid[: self.n, : self.n]
        self.chip = ((x - self.n / 2) ** 2 + (y - self.n / 2) ** 2 < (self.n / 8) ** 2).astype(float)
        self.red = ((x + y) % 2 == 0)[1:-1, 1:-1]

    def relax(self, rhs):
        u, k = self.temp, self.diffusion
        for sweep in range(1, 400):
            biggest = 0.0
            for colour in (self.red, ~self.red):
                around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
                change = (rhs[1:-1, 1:-1] + k * around) / (1 + 4 * k) - u[1:-1, 1:-1]
                change *= colour
                u[1:-1, 1:-1] += 1.3 * change
                biggest = max(biggest, np.abs(change).max())
            if biggest < self.tolerance:
                break
        return sweep

    def advance(self, power):
        rhs = self.temp + power * self.chip
        self.temp[0], self.temp[-1], self.temp[:, 0], self.temp[:, -1] = 20, 20, 20, 20
        began = time.monotonic_ns()
        self.sweeps.append(self.relax(rhs))
        return time.monotonic_ns() - began


def load(step):
    return 0.08 * max(0.0, np.sin(step / 9)) + (0.4 if 40 <= step < 60 else 0.0)


sink = HeatSink()
solving = 0
cuts = [time.monotonic_ns()]
for step in range(120):
    solving += sink.advance(load(step))
    cuts.append(time.monotonic_ns())
print(f"sweeps {min(sink.sweeps)} to {max(sink.sweeps)}, hottest {sink.temp.max():.1f}")
assert max(sink.sweeps) < 399 and len(set(sink.sweeps)) > 3
write(
    tile(cuts, "time step"),
    unit="time step",
    limiting="operators",
    levels={"sweep": sum(sink.sweeps)},
    phases_ns={"solve": solving},
)
