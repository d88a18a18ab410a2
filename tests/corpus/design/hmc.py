"""Hamiltonian Monte Carlo: ten leapfrog steps lead to a sample, which is accepted or not; a step is a sample."""

import os
import time

import numpy as np


def potential(q):
    return float(q[0] ** 2 + 3 * (q[1] - q[0] ** 2) ** 2 + 0.1 * (q**2).sum())


def gradient(q):
    bend = q[1] - q[0] ** 2
    g = 0.2 * q
    g[0] += 2 * q[0] - 12 * q[0] * bend
    g[1] += 6 * bend
    return g


def leapfrog(q, p, h):
    p = p - h / 2 * gradient(q)
    q = q + h * p
    return q, p - h / 2 * gradient(q)


def accept(rng, before, after):
    return rng.random() < np.exp(min(0.0, before - after))


def main():
    rng = np.random.default_rng(0)
    q, chain, begins = np.zeros(4), [], []
    for _ in range(200):
        begins.append(time.monotonic_ns())
        p = rng.normal(size=4)
        new, before = q, potential(q) + p @ p / 2
        for _ in range(10):
            new, p = leapfrog(new, p, 0.1)
        if accept(rng, before, potential(new) + p @ p / 2):
            q = new
        chain.append(q)
    print(np.mean(chain, axis=0))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"sample {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
