"""Shallow water on a basin, Lax-Friedrichs, written as a class; diagnostics every 10th step, a snapshot every 100th.

Healthy and compute-bound in NumPy. Truth: 600 time steps of three classes; the snapshots are small.
"""

import tempfile
from pathlib import Path
from time import monotonic_ns

import numpy as np
from truth import tile, write

G = 9.81


class Solver:
    def __init__(self, n=320, folder="."):
        self.n, self.folder = n, Path(folder)
        y, x = np.mgrid[0:n, 0:n] / n
        self.h = 1 + 0.3 * np.exp(-((x - 0.4) ** 2 + (y - 0.5) ** 2) / 0.01)
        self.hu = np.zeros_like(self.h)
        self.hv = np.zeros_like(self.h)
        self.dx = 1 / n
        self.dt = 0.2 * self.dx / np.sqrt(G * 1.3)
        self.history = []
        self.cuts = []
        self.spent = {"advance": 0, "diagnostics": 0, "snapshot": 0}

    def advance(self):
        h, hu, hv = self.h, self.hu, self.hv
        u, v = hu / h, hv / h
        p = 0.5 * G * h * h
        fluxes = ((hu, hv), (hu * u + p, hu * v), (hu * v, hv * v + p))
        c = self.dt / (2 * self.dx)
        new = []
        for q, (fx, fy) in zip((h, hu, hv), fluxes, strict=True):
            r = q.copy()
            r[1:-1, 1:-1] = (
                0.25 * (q[1:-1, :-2] + q[1:-1, 2:] + q[:-2, 1:-1] + q[2:, 1:-1])
                - c * (fx[1:-1, 2:] - fx[1:-1, :-2])
                - c * (fy[2:, 1:-1] - fy[:-2, 1:-1])
            )
            new.append(r)
        self.h, self.hu, self.hv = new

    def apply_boundary(self):
        for q, sx, sy in ((self.h, 1, 1), (self.hu, -1, 1), (self.hv, 1, -1)):
            q[:, 0], q[:, -1] = sx * q[:, 1], sx * q[:, -2]
            q[0], q[-1] = sy * q[1], sy * q[-2]

    def diagnostics(self, step):
        kinetic = 0.5 * ((self.hu**2 + self.hv**2) / self.h).sum()
        self.history.append((step, self.h.sum(), kinetic + 0.5 * G * (self.h**2).sum(), self.h.max()))

    def snapshot(self, step):
        np.save(self.folder / f"h_{step:05d}.npy", self.h)

    def run(self, nsteps):
        self.cuts.append(monotonic_ns())
        for step in range(1, nsteps + 1):
            self.advance()
            self.apply_boundary()
            a = monotonic_ns()
            self.spent["advance"] += a - self.cuts[-1]
            if step % 10 == 0:
                self.diagnostics(step)
                b = monotonic_ns()
                self.spent["diagnostics"] += b - a
                if step % 100 == 0:
                    self.snapshot(step)
                    self.spent["snapshot"] += monotonic_ns() - b
            self.cuts.append(monotonic_ns())


def kind(i):
    return "snapshot" if (i + 1) % 100 == 0 else "diagnostics" if (i + 1) % 10 == 0 else "step"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        solver = Solver(folder=folder)
        solver.run(600)
    for row in solver.history[::10]:
        print("%6d mass %.3f energy %.3f max %.3f" % row)
    assert np.isfinite(solver.h).all() and len(solver.history) == 60
    write(
        tile(solver.cuts, kind),
        unit="time step",
        limiting="operators",
        levels={"diagnostics": 60, "snapshot": 6},
        phases_ns=solver.spent,
    )
