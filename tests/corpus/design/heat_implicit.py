"""Implicit time stepping of a heat equation: every time step is solved with as many CG iterations as it needs."""

import os
import time

import numpy as np


def apply(u, k):
    y = (1 + 2 * k) * u
    y[1:] -= k * u[:-1]
    y[:-1] -= k * u[1:]
    return y


def dot(a, b):
    return float(a @ b)


def solve(rhs, x, k, tolerance):
    r = rhs - apply(x, k)
    p, rho = r.copy(), dot(r, r)
    for iteration in range(200):
        if rho < tolerance:
            return x, iteration
        q = apply(p, k)
        alpha = rho / dot(p, q)
        x = x + alpha * p
        r -= alpha * q
        rho, before = dot(r, r), rho
        p = r + rho / before * p
    return x, 200


def source(t, n):
    return np.exp(-((np.linspace(0, 1, n) - 0.5 - 0.4 * np.sin(9 * t)) ** 2) * 200)


def main():
    n, dt = 400, 0.01
    u, total, begins = np.zeros(n), 0, []
    for step in range(90):
        begins.append(time.monotonic_ns())
        u, used = solve(u + dt * source(step * dt, n), u, 20.0, 1e-12)
        total += used
    print(f"{total} iterations, mean {u.mean():.4f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
