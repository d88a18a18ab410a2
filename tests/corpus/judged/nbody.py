"""Gravity between bodies with NumPy: leapfrog, energies every ten steps, a body that leaves is put back."""

import os
import time

import numpy as np


def acceleration(position, mass):
    away = position[None, :, :] - position[:, None, :]
    inverse = (np.square(away).sum(-1) + 0.01) ** -1.5
    np.fill_diagonal(inverse, 0)
    return (away * (inverse * mass)[:, :, None]).sum(1)


def energy(position, velocity, mass):
    distance = np.sqrt(np.square(position[None] - position[:, None]).sum(-1) + 0.01)
    pairs = np.triu(mass[:, None] * mass / distance, 1)
    return 0.5 * (mass * np.square(velocity).sum(1)).sum() - pairs.sum()


def put_back(position, velocity, lost):
    position[lost] *= 0.5
    velocity[lost] *= -0.5


class Simulation:
    def __init__(self, bodies=40, seed=7):
        draw = np.random.default_rng(seed)
        self.position = draw.normal(size=(bodies, 3))
        self.velocity = 0.1 * draw.normal(size=(bodies, 3))
        self.mass = draw.uniform(0.5, 1.5, bodies) / bodies

    def kick(self, dt):
        self.velocity += dt * acceleration(self.position, self.mass)

    def drift(self, dt):
        self.position += dt * self.velocity

    def step(self, dt):
        self.kick(dt / 2)
        self.drift(dt)
        self.kick(dt / 2)
        far = np.abs(self.position).max(1) > 3
        if far.any():
            put_back(self.position, self.velocity, far)


def main():
    simulation, begins = Simulation(), []
    for step in range(200):
        begins.append(time.monotonic_ns())
        simulation.step(0.02)
        if step % 10 == 0:
            total = energy(simulation.position, simulation.velocity, simulation.mass)
            if step % 50 == 0:
                print(f"step {step}: energy {total:.4f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
