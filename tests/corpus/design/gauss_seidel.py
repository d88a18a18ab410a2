"""A nonlinear Poisson problem: the coefficient is set anew in every outer iteration, then ten Gauss-Seidel sweeps."""

import os
import time

import numpy as np


def coefficient(u):
    return 1.0 + 0.5 * u * u


def sweep(u, k, f):
    for parity in (0, 1):
        for row in range(1, u.shape[0] - 1):
            at = slice(1 + (row + parity) % 2, -1, 2)
            left, right = u[row, at.start - 1 : -2 : 2], u[row, at.start + 1 :: 2]
            n = min(len(left), len(right), len(u[row, at]))
            u[row, at][:n] = 0.25 * (
                left[:n] + right[:n] + u[row - 1, at][:n] + u[row + 1, at][:n] + f[row, at][:n] / k[row, at][:n]
            )


def defect(u, k, f):
    inner = u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]
    return np.abs(k[1:-1, 1:-1] * inner + f[1:-1, 1:-1]).max()


def main():
    n = 18
    u, f = np.zeros((n, n)), np.full((n, n), 0.3)
    begins, history = [], []
    for _ in range(60):
        begins.append(time.monotonic_ns())
        k = coefficient(u)
        for _ in range(10):
            sweep(u, k, f)
        history.append(defect(u, k, f))
    print(f"{history[0]:.3f} {history[-1]:.2e}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
