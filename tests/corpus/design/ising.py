"""The Ising model on a square lattice: checkerboard Metropolis sweeps, magnetisation and energy every fifth sweep."""

import os
import time

import numpy as np


def neighbour_sum(spins):
    return np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)


def half_sweep(spins, mask, beta, rng):
    cost = 2 * spins * neighbour_sum(spins)
    flip = mask & (rng.random(spins.shape) < np.exp(-beta * cost))
    spins[flip] *= -1


def sweep(spins, black, beta, rng):
    half_sweep(spins, black, beta, rng)
    half_sweep(spins, ~black, beta, rng)


def magnetisation(spins):
    return abs(spins.mean())


def energy(spins):
    return -(spins * neighbour_sum(spins)).mean() / 2


def main():
    rng = np.random.default_rng(3)
    n = 48
    spins = rng.choice([-1, 1], size=(n, n))
    black = np.indices((n, n)).sum(axis=0) % 2 == 0
    begins, samples = [], []
    for step in range(250):
        begins.append(time.monotonic_ns())
        sweep(spins, black, 0.5, rng)
        if step % 5 == 4:
            samples.append((magnetisation(spins), energy(spins)))
    print(np.mean(samples, axis=0))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"sweep {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
