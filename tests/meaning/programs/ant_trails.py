"""Ants look for food on a grid and leave trails, in plain Python: each tick moves every ant, then scent fades.

Nothing is wrong: this is what such a simulation is made of. Every 60th tick a line is printed. Truth: 700 ticks, each
of four moves of 500 ants (the inner level); limited by Python. Phases: `ants`, `fading`, as `Colony.tick` has them.
"""

import random
import time

from truth import tile, write

WIDTH, HEIGHT, ANTS, TICKS = 90, 60, 500, 700
AROUND = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]


class Ant:
    __slots__ = ("x", "y", "loaded", "heading")

    def __init__(self, x, y, heading):
        self.x, self.y, self.heading, self.loaded = x, y, heading, False

    def look(self, scent, rng):
        """The most promising of the three cells ahead, at times any of them."""
        best, found = None, -1.0
        for turn in (-1, 0, 1):
            heading = (self.heading + turn) % 8
            dx, dy = AROUND[heading]
            x, y = (self.x + dx) % WIDTH, (self.y + dy) % HEIGHT
            value = scent[y][x] + rng.random()
            if value > found:
                best, found = (x, y, heading), value
        return best

    def home(self, nest):
        dx = (nest[0] > self.x) - (nest[0] < self.x)
        dy = (nest[1] > self.y) - (nest[1] < self.y)
        return self.x + dx, self.y + dy, self.heading


class Colony:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.nest = WIDTH // 2, HEIGHT // 2
        self.scent = [[0.0] * WIDTH for _ in range(HEIGHT)]
        self.food = {}
        for _ in range(12):
            cx, cy = self.rng.randrange(WIDTH), self.rng.randrange(HEIGHT)
            for dx, dy in AROUND:
                self.food[(cx + dx) % WIDTH, (cy + dy) % HEIGHT] = 40
        self.ants = [Ant(*self.nest, self.rng.randrange(8)) for _ in range(ANTS)]
        self.stored = 0
        self.walking = self.fading = 0

    def move(self, ant):
        if ant.loaded:
            ant.x, ant.y, ant.heading = ant.home(self.nest)
            self.scent[ant.y][ant.x] += 1.0
            if (ant.x, ant.y) == self.nest:
                ant.loaded = False
                ant.heading = self.rng.randrange(8)
                self.stored += 1
            return
        ant.x, ant.y, ant.heading = ant.look(self.scent, self.rng)
        left = self.food.get((ant.x, ant.y), 0)
        if left:
            self.food[ant.x, ant.y] = left - 1
            ant.loaded = True

    def fade(self):
        for y, row in enumerate(self.scent):
            self.scent[y] = [value * 0.985 if value > 0.01 else 0.0 for value in row]

    def tick(self):
        a = time.monotonic_ns()
        for _ in range(4):
            for ant in self.ants:
                self.move(ant)
        b = time.monotonic_ns()
        self.fade()
        self.walking += b - a
        self.fading += time.monotonic_ns() - b


def main():
    colony = Colony(seed=8)
    cuts = [time.monotonic_ns()]
    for tick in range(1, TICKS + 1):
        colony.tick()
        if tick % 60 == 0:
            print(f"tick {tick}: {colony.stored} brought home, {sum(colony.food.values())} left", flush=True)
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "tick"),
        unit="tick",
        limiting="python",
        levels={"move": TICKS * 4 * ANTS},
        phases_ns={"ants": colony.walking, "fading": colony.fading},
    )


main()
