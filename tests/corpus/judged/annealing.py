"""Simulated annealing of a tour in Python: a step is one temperature with many tried moves, silent until the end."""

import math
import os
import random
import time

random.seed(11)


class Tour:
    def __init__(self, n):
        self.places = [(random.random(), random.random()) for _ in range(n)]
        self.order = list(range(n))

    def distance(self, i, j):
        (ax, ay), (bx, by) = self.places[self.order[i]], self.places[self.order[j]]
        return math.hypot(ax - bx, ay - by)

    def gain(self, i, j):
        n = len(self.order)
        return (
            self.distance(i - 1, i)
            + self.distance(j, (j + 1) % n)
            - self.distance(i - 1, j)
            - self.distance(i, (j + 1) % n)
        )

    def turn(self, i, j):
        self.order[i : j + 1] = reversed(self.order[i : j + 1])

    def length(self):
        return sum(self.distance(i - 1, i) for i in range(len(self.order)))


def accept(gain, temperature):
    return gain > 0 or random.random() < math.exp(gain / temperature)


def cool(tour, temperature, tries):
    taken = 0
    for _ in range(tries):
        i, j = sorted(random.sample(range(1, len(tour.order) - 1), 2))
        gain = tour.gain(i, j)
        if accept(gain, temperature):
            tour.turn(i, j)
            taken += 1
    return taken


begins = []
tour = Tour(60)
temperature = 1.0
for _ in range(120):
    begins.append(time.monotonic_ns())
    cool(tour, temperature, 80)
    temperature *= 0.96
print(f"length {tour.length():.2f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"step {ns}\n" for ns in begins)
