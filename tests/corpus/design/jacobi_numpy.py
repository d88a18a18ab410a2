"""Jacobi iteration for Poisson's equation on a square with NumPy; the residual is computed every tenth sweep."""

import os
import time

import numpy as np


def sweep(u, f, h):
    new = u.copy()
    new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + h * h * f[1:-1, 1:-1])
    return new


def residual(u, f, h):
    laplace = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return np.linalg.norm(f[1:-1, 1:-1] + laplace / (h * h))


def main():
    n = 128
    h = 1 / (n - 1)
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    f = np.sin(np.pi * x) * np.sin(np.pi * y)
    u = np.zeros((n, n))
    begins = []
    for iteration in range(200):
        begins.append(time.monotonic_ns())
        u = sweep(u, f, h)
        if iteration % 10 == 0:
            r = residual(u, f, h)
            if iteration % 50 == 0:
                print(f"{iteration}: residual {r:.3e}")
            if r < 1e-6:
                break
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
