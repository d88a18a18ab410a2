"""Pi from random points in batches; a running mean, and its error every eighth batch."""

import math
import os
import random
import time


def inside(x, y):
    return x * x + y * y <= 1.0


def batch(size, rng):
    hits = 0
    for _ in range(size):
        if inside(rng.random(), rng.random()):
            hits += 1
    return 4.0 * hits / size


class Mean:
    def __init__(self):
        self.count, self.sum, self.squares = 0, 0.0, 0.0

    def add(self, value):
        self.count += 1
        self.sum += value
        self.squares += value * value

    def error(self):
        mean = self.sum / self.count
        return math.sqrt(max(self.squares / self.count - mean * mean, 0.0) / self.count)


def main():
    rng = random.Random(5)
    mean, begins = Mean(), []
    for number in range(1, 161):
        begins.append(time.monotonic_ns())
        mean.add(batch(200, rng))
        if number % 8 == 0:
            print(f"{number:4d} {mean.sum / mean.count:.5f} +- {mean.error():.5f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"batch {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
