"""A cluster of stars, whose forces come from a quadtree (Barnes and Hut) in plain Python; leapfrog in time.

The main loop runs over the generator method `Cluster.evolve`, which yields after each time step. Planted: the
generator computes the energy by a direct sum over all pairs after every step, though it is printed and kept only at
every 20th. Truth: 180 time steps, limited by Python (the tree is the rest of it, and there is nothing wrong with it).
The gain is the measured time of `Cluster.energy` in steps whose energy nobody looks at.
"""

import math
import random
import time

from truth import problem, tile, write

STEPS, EVERY, SOFT, THETA = 180, 20, 0.02, 0.7


class Star:
    __slots__ = ("x", "y", "vx", "vy", "m", "ax", "ay")

    def __init__(self, x, y, vx, vy, m):
        self.x, self.y, self.vx, self.vy, self.m = x, y, vx, vy, m
        self.ax = self.ay = 0.0


class Cell:
    __slots__ = ("x", "y", "half", "mass", "mx", "my", "star", "parts")

    def __init__(self, x, y, half):
        self.x, self.y, self.half = x, y, half
        self.mass = self.mx = self.my = 0.0
        self.star, self.parts = None, None

    def insert(self, star, depth=0):
        if self.mass == 0.0:
            self.star = star
        elif depth < 24:
            if self.parts is None:
                h = self.half / 2
                self.parts = [Cell(self.x + sx * h, self.y + sy * h, h) for sy in (-1, 1) for sx in (-1, 1)]
                self.part_of(self.star).insert(self.star, depth + 1)
                self.star = None
            self.part_of(star).insert(star, depth + 1)
        self.mass += star.m
        self.mx += star.m * star.x
        self.my += star.m * star.y

    def part_of(self, star):
        return self.parts[(star.x > self.x) + 2 * (star.y > self.y)]

    def pull(self, star):
        if self.mass == 0.0 or self.star is star:
            return
        dx, dy = self.mx / self.mass - star.x, self.my / self.mass - star.y
        d2 = dx * dx + dy * dy + SOFT * SOFT
        if self.parts is None or 4 * self.half * self.half < THETA * THETA * d2:
            f = self.mass / (d2 * math.sqrt(d2))
            star.ax += f * dx
            star.ay += f * dy
        else:
            for part in self.parts:
                part.pull(star)


class Cluster:
    def __init__(self, number=340, seed=8):
        rng = random.Random(seed)
        self.stars = []
        for _ in range(number):
            r, phi = 0.1 + rng.random() ** 0.7, rng.random() * 2 * math.pi
            v = 0.75 * math.sqrt(r)
            x, y = r * math.cos(phi), r * math.sin(phi)
            self.stars.append(Star(x, y, -v * y / r, v * x / r, 1 / number))
        self.summing = 0

    def forces(self):
        reach = max(max(abs(star.x), abs(star.y)) for star in self.stars)
        root = Cell(0.0, 0.0, reach * 1.01)
        for star in self.stars:
            root.insert(star)
        for star in self.stars:
            star.ax = star.ay = 0.0
            root.pull(star)

    def energy(self):
        total = 0.0
        for i, a in enumerate(self.stars):
            total += 0.5 * a.m * (a.vx * a.vx + a.vy * a.vy)
            for b in self.stars[:i]:
                dx, dy = a.x - b.x, a.y - b.y
                total -= a.m * b.m / math.sqrt(dx * dx + dy * dy + SOFT * SOFT)
        return total

    def evolve(self, steps, dt=0.01):
        self.forces()
        for step in range(steps):
            for star in self.stars:
                star.vx += 0.5 * dt * star.ax
                star.vy += 0.5 * dt * star.ay
                star.x += dt * star.vx
                star.y += dt * star.vy
            self.forces()
            for star in self.stars:
                star.vx += 0.5 * dt * star.ax
                star.vy += 0.5 * dt * star.ay
            t = time.monotonic_ns()
            energy = self.energy()
            if step % EVERY != EVERY - 1:
                self.summing += time.monotonic_ns() - t
            yield step, energy


def main():
    cluster = Cluster()
    kept, before = [], cluster.energy()
    cuts = [time.monotonic_ns()]
    for step, energy in cluster.evolve(STEPS):
        if step % EVERY == EVERY - 1:
            kept.append(energy)
            print(f"step {step + 1:4d}  energy {energy:.6f}  drift {energy / before - 1:+.2e}")
        cuts.append(time.monotonic_ns())
    print(f"{len(kept)} energies between {min(kept):.5f} and {max(kept):.5f}")
    write(
        tile(cuts, "step"),
        unit="time step",
        limiting="python",
        problem=problem(
            "the energy of all pairs is summed after each step, but used at every 20th only",
            "cluster_tree.py:Cluster.energy",
            "python",
            wasted_ns=cluster.summing,
        ),
    )


if __name__ == "__main__":
    main()
