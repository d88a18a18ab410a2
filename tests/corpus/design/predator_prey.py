"""Lotka-Volterra with the classic Runge-Kutta method in plain Python: four stages a step, a line every 20 steps."""

import os
import time


def rates(state, a=1.1, b=0.4, c=0.1, d=0.4):
    prey, predators = state
    return (a * prey - b * prey * predators, c * prey * predators - d * predators)


def moved(state, rate, h):
    return tuple(x + h * dx for x, dx in zip(state, rate, strict=True))


def rk4(state, h):
    k1 = rates(state)
    k2 = rates(moved(state, k1, h / 2))
    k3 = rates(moved(state, k2, h / 2))
    k4 = rates(moved(state, k3, h))
    return tuple(x + h / 6 * (p + 2 * q + 2 * r + s) for x, p, q, r, s in zip(state, k1, k2, k3, k4, strict=True))


def report(t, state):
    print(f"{t:7.2f} prey {state[0]:8.3f} predators {state[1]:8.3f}")


begins = []
state, h = (10.0, 5.0), 0.05
for step in range(300):
    begins.append(time.monotonic_ns())
    state = rk4(state, h)
    if step % 20 == 0:
        report(step * h, state)

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"step {ns}\n" for ns in begins)
