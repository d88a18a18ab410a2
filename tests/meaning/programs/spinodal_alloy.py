"""An alloy comes apart: the Cahn-Hilliard equation on a periodic square, semi-implicit in Fourier space.

The loop is a `while` in `Alloy.anneal`, whose time step grows until it reaches its largest value. Healthy,
compute-bound in native code: FFTs and array arithmetic. Truth: 715 time steps of two classes, as each 80th measures
the length of the pattern and keeps a snapshot in memory. Phases: `reaction` is the chemical potential, `transform`
the step in Fourier space, `statistics` what each 80th adds.
"""

import time

import numpy as np
from scipy import fft
from truth import tile, write


class Alloy:
    def __init__(self, size=384, kappa=0.6, mobility=1.0, seed=4):
        rng = np.random.default_rng(seed)
        self.c = 0.1 + 0.02 * rng.standard_normal((size, size))
        kx = 2 * np.pi * fft.fftfreq(size)
        ky = 2 * np.pi * fft.rfftfreq(size)
        self.k2 = kx[:, None] ** 2 + ky[None, :] ** 2
        self.kappa, self.mobility = kappa, mobility
        self.time, self.dt = 0.0, 0.02
        self.history, self.snapshots = [], []
        shells = np.hypot(*np.meshgrid(fft.fftfreq(size) * size, fft.rfftfreq(size) * size, indexing="ij"))
        self.shells = shells.astype(int).ravel()
        self.clock = {"reaction": 0, "transform": 0, "statistics": 0}
        self.cuts = []

    def chemical_potential(self):
        c = self.c
        return c * c * c - c

    def advance(self, mu, dt):
        m, k2 = self.mobility * dt, self.k2
        c_hat = fft.rfft2(self.c)
        mu_hat = fft.rfft2(mu)
        c_hat = (c_hat - m * k2 * (mu_hat - 2.0 * c_hat)) / (1 + m * k2 * (self.kappa * k2 + 2.0))
        self.c = fft.irfft2(c_hat, s=self.c.shape)

    def statistics(self):
        power = np.abs(fft.rfft2(self.c - self.c.mean())) ** 2
        ring = np.bincount(self.shells, weights=power.ravel())
        k = np.arange(len(ring))
        length = len(self.c) * ring.sum() / (k * ring).sum()
        self.history.append((self.time, length))
        self.snapshots.append(self.c.astype(np.float32))
        print(f"t {self.time:8.2f}  dt {self.dt:.3f}  length {length:6.2f}  range {np.ptp(self.c):.2f}")

    def anneal(self, until, dt_max=0.5, statistics_every=80):
        self.cuts.append(time.monotonic_ns())
        steps = 0
        while self.time < until:
            dt = min(self.dt, until - self.time)
            begin = self.cuts[-1]
            mu = self.chemical_potential()
            after_mu = time.monotonic_ns()
            self.advance(mu, dt)
            after_step = time.monotonic_ns()
            self.clock["reaction"] += after_mu - begin
            self.clock["transform"] += after_step - after_mu
            self.time += dt
            self.dt = min(1.02 * self.dt, dt_max)
            steps += 1
            if steps % statistics_every == 0:
                self.statistics()
                self.clock["statistics"] += time.monotonic_ns() - after_step
            self.cuts.append(time.monotonic_ns())
        return steps


def main():
    alloy = Alloy()
    mass = alloy.c.mean()
    steps = alloy.anneal(until=300.0)
    print(f"{steps} steps, mass changed by {abs(alloy.c.mean() - mass):.1e}, {len(alloy.snapshots)} snapshots")
    write(
        tile(alloy.cuts, lambda index: "step+statistics" if index % 80 == 79 else "step"),
        unit="time step",
        limiting="operators",
        phases_ns=alloy.clock,
    )


if __name__ == "__main__":
    main()
