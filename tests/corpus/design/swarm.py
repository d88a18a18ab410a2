"""Particle swarm optimisation in plain Python: 20 particles move once in an iteration; inertia falls every tenth."""

import itertools
import os
import random
import time


def rosenbrock(x):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x))


class Particle:
    def __init__(self, rng, size):
        self.x = [rng.uniform(-2, 2) for _ in range(size)]
        self.v = [0.0] * size
        self.best, self.value = self.x, rosenbrock(self.x)

    def move(self, leader, inertia, rng):
        for k in range(len(self.x)):
            mine, theirs = self.best[k] - self.x[k], leader[k] - self.x[k]
            self.v[k] = inertia * self.v[k] + 1.5 * rng.random() * mine + 1.5 * rng.random() * theirs
        self.x = [a + b for a, b in zip(self.x, self.v, strict=True)]

    def look(self):
        value = rosenbrock(self.x)
        if value < self.value:
            self.best, self.value = self.x, value


def leader_of(swarm):
    return min(swarm, key=lambda particle: particle.value)


rng = random.Random(12)
swarm = [Particle(rng, 6) for _ in range(20)]
begins, inertia = [], 0.9
for iteration in range(120):
    begins.append(time.monotonic_ns())
    leader = leader_of(swarm)
    for particle in swarm:
        particle.move(leader.best, inertia, rng)
        particle.look()
    if iteration % 10 == 9:
        inertia *= 0.95
print(f"best {leader_of(swarm).value:.5f}")
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"iteration {ns}\n" for ns in begins)
