"""The two-stream instability, particle-in-cell with NumPy: deposit charge, solve for the field, push; diagnostics every
tenth step, particles sorted by cell every fiftieth. The step is a time step.
"""

import os
import time

import numpy as np


class Grid:
    def __init__(self, cells, length):
        self.cells, self.length, self.dx = cells, length, length / cells
        k = 2 * np.pi * np.fft.rfftfreq(cells, self.dx)
        self.k = np.where(k == 0, 1.0, k)
        self.charge = np.zeros(cells)
        self.field = np.zeros(cells)

    def deposit(self, particles):
        left, share = particles.cell_and_share(self.dx)
        weight = self.length / len(particles.x) / self.dx
        self.charge[:] = 1.0
        self.charge -= weight * np.bincount(left, 1 - share, self.cells)
        self.charge -= weight * np.bincount((left + 1) % self.cells, share, self.cells)

    def solve(self):
        spectrum = np.fft.rfft(self.charge)
        potential = spectrum / self.k**2
        potential[0] = 0
        self.field = np.fft.irfft(-1j * self.k * potential, self.cells)

    def at(self, particles):
        left, share = particles.cell_and_share(self.dx)
        return (1 - share) * self.field[left] + share * self.field[(left + 1) % self.cells]


class Particles:
    def __init__(self, count, length, beam, seed):
        draw = np.random.default_rng(seed)
        self.length = length
        self.x = np.sort(draw.uniform(0, length, count))
        self.v = np.where(np.arange(count) % 2 == 0, beam, -beam) + 0.05 * draw.normal(size=count)
        self.v += 0.01 * np.sin(2 * np.pi * self.x / length)

    def cell_and_share(self, dx):
        cell, share = np.divmod(self.x / dx, 1.0)
        return cell.astype(np.intp) % round(self.length / dx), share

    def kick(self, force, dt):
        self.v += dt * force

    def drift(self, dt):
        self.x = (self.x + dt * self.v) % self.length

    def sort(self):
        order = np.argsort(self.x)
        self.x, self.v = self.x[order], self.v[order]


class History:
    def __init__(self):
        self.rows = []

    def record(self, now, grid, particles):
        field = 0.5 * (grid.field**2).sum() * grid.dx
        kinetic = 0.5 * (particles.v**2).mean() * grid.length
        spread, _ = np.histogram(particles.v, bins=32)
        self.rows.append((now, field, kinetic, spread))
        if len(self.rows) % 8 == 0:
            print(f"t = {now:6.2f}: field {field:.4e}, total {field + kinetic:.5f}")


def main(steps=400, dt=0.1):
    length = 2 * np.pi * 3
    grid, history = Grid(64, length), History()
    particles = Particles(20000, length, beam=1.0, seed=62)
    begins = []
    grid.deposit(particles)
    grid.solve()
    particles.kick(-grid.at(particles), -0.5 * dt)
    for step in range(steps):
        begins.append(time.monotonic_ns())
        particles.kick(-grid.at(particles), dt)
        particles.drift(dt)
        if step % 50 == 49:
            particles.sort()
        grid.deposit(particles)
        grid.solve()
        if step % 10 == 0:
            history.record(step * dt, grid, particles)
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
