"""Two loops that do the same, one after the other: neither is the main one, both are."""

import math
import os
import time

begins = []


def prepare(seed):
    return [math.sin(seed + i) for i in range(400)]


def smooth(values):
    return [(a + b) / 2 for a, b in zip(values, values[1:] + values[:1], strict=True)]


def measure(values):
    return sum(abs(value) for value in values)


def first():
    total = 0.0
    for seed in range(60):
        begins.append(time.monotonic_ns())
        total += measure(smooth(prepare(seed)))
    return total


def between():
    return sorted(prepare(0))[200]


def second():
    total = 0.0
    for seed in range(60):
        begins.append(time.monotonic_ns())
        total += measure(smooth(prepare(seed)))
    return total


if __name__ == "__main__":
    print(first(), between(), second())
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)
