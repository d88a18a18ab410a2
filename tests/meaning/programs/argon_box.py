"""Molecular dynamics of 324 Lennard-Jones particles in a periodic box: velocity Verlet, all pairs in NumPy.

Every 25th step an observer computes energies and a pair distribution, as one does to watch the equilibration. Healthy.
Truth: 400 time steps of two classes, 384 plain and 16 with the diagnostic; compute-bound in NumPy.
"""

import time

import numpy as np
from truth import tile, write


class Box:
    def __init__(self, side=18, spacing=1.2, temperature=0.7, seed=1):
        rng = np.random.default_rng(seed)
        grid = np.arange(side) * spacing
        self.length = side * spacing
        self.x = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
        self.v = rng.normal(scale=np.sqrt(temperature), size=self.x.shape)
        self.v -= self.v.mean(axis=0)
        self.f, self.potential = self.forces()

    def separations(self):
        d = self.x[:, None, :] - self.x[None, :, :]
        d -= self.length * np.round(d / self.length)
        r2 = (d**2).sum(axis=-1)
        np.fill_diagonal(r2, np.inf)
        return d, r2

    def forces(self):
        d, r2 = self.separations()
        inverse = np.where(r2 < 9.0, 1.0 / r2, 0.0)
        six = inverse**3
        pair = (48.0 * six**2 - 24.0 * six) * inverse
        return (pair[:, :, None] * d).sum(axis=1), 2.0 * (six**2 - six).sum()


class VelocityVerlet:
    def __init__(self, box, dt=0.004):
        self.box, self.dt = box, dt

    def advance(self):
        box = self.box
        box.v += 0.5 * self.dt * box.f
        box.x = (box.x + self.dt * box.v) % box.length
        box.f, box.potential = box.forces()
        box.v += 0.5 * self.dt * box.f


class Observer:
    def __init__(self, every):
        self.every, self.rows = every, []

    def __call__(self, number, box):
        kinetic = 0.5 * (box.v**2).sum()
        r = np.sqrt(box.separations()[1])
        counts, _ = np.histogram(r[np.isfinite(r)], bins=60, range=(0.0, 3.0))
        self.rows.append((number, kinetic, box.potential, kinetic / len(box.x), int(counts.argmax())))
        print("step {} kinetic {:.2f} potential {:.2f} T {:.3f} peak {}".format(*self.rows[-1]))


class Simulation:
    def __init__(self, box, integrator, observer):
        self.box, self.integrator, self.observer = box, integrator, observer

    def run(self, count):
        cuts = [time.monotonic_ns()]
        for number in range(1, count + 1):
            self.integrator.advance()
            if number % self.observer.every == 0:
                self.observer(number, self.box)
            cuts.append(time.monotonic_ns())
        return cuts


box = Box()
simulation = Simulation(box, VelocityVerlet(box), Observer(25))
cuts = simulation.run(400)
kinds = ["step+diagnostic" if n % 25 == 24 else "step" for n in range(400)]
write(tile(cuts, kinds), unit="time step", limiting="operators")
