"""Brusselator on a periodic grid, embedded Heun/Euler steps whose length adapts; rejected tries stay inside a step.

The loop runs over the integrator's generator and prints the state at every 25th accepted step.
Healthy, bound by NumPy's array operations. Truth: 450 accepted time steps, some of them with more than one try.
"""

import time

import numpy as np
from truth import tile, write

A, B, DU, DV = 1.0, 3.2, 2e-3, 4e-4


def laplacian(f, out):
    np.multiply(f, -4.0, out=out)
    out += np.roll(f, 1, 0)
    out += np.roll(f, -1, 0)
    out += np.roll(f, 1, 1)
    out += np.roll(f, -1, 1)
    return out


class Brusselator:
    def __init__(self, n=256, seed=11):
        rng = np.random.default_rng(seed)
        self.y = np.empty((2, n, n))
        self.y[0] = A + 0.1 * rng.standard_normal((n, n))
        self.y[1] = B / A + 0.1 * rng.standard_normal((n, n))
        self.t, self.dt, self.tries = 0.0, 0.05, 0
        self.scratch = np.empty((n, n))

    def rhs(self, y):
        u, v = y
        dy = np.empty_like(y)
        uuv = u * u * v
        dy[0] = A + uuv - (B + 1.0) * u + 100 * DU * laplacian(u, self.scratch)
        dy[1] = B * u - uuv + 100 * DV * laplacian(v, self.scratch)
        return dy

    def steps(self, limit, tol=2e-4):
        accepted = 0
        while accepted < limit:
            k1 = self.rhs(self.y)
            while True:
                self.tries += 1
                k2 = self.rhs(self.y + self.dt * k1)
                error = 0.5 * self.dt * np.sqrt(np.mean((k2 - k1) ** 2))
                if error <= tol:
                    break
                self.dt *= 0.6
            used = self.dt
            self.dt *= min(1.5, (tol / max(error, 1e-14)) ** 0.5)
            self.y = self.y + 0.5 * used * (k1 + k2)
            self.t += used
            accepted += 1
            yield accepted, self.t


def main():
    model = Brusselator()
    cuts = [time.monotonic_ns()]
    for n, t in model.steps(450):
        if n % 25 == 0:
            print(f"{n:4d} t={t:.4f} u={model.y[0].mean():.5f} v={model.y[1].mean():.5f}")
        cuts.append(time.monotonic_ns())
    print(model.tries, "tries")
    write(tile(cuts, "time step"), unit="time step", limiting="operators", levels={"try": model.tries})


main()
