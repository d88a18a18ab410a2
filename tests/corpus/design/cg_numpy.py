"""Conjugate gradients for a sparse matrix kept as three arrays; operator and preconditioner are functions."""

import os
import time

import numpy as np


class Poisson:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        u = x.reshape(self.n, self.n)
        y = 4.0 * u
        y[1:] -= u[:-1]
        y[:-1] -= u[1:]
        y[:, 1:] -= u[:, :-1]
        y[:, :-1] -= u[:, 1:]
        return y.ravel()


def jacobi(r):
    return r / 4.0


def pcg(apply, precondition, b, tolerance, begins):
    x = np.zeros_like(b)
    r = b - apply(x)
    z = precondition(r)
    p, rho = z.copy(), r @ z
    for iteration in range(1, 500):
        begins.append(time.monotonic_ns())
        q = apply(p)
        alpha = rho / (p @ q)
        x += alpha * p
        r -= alpha * q
        if np.sqrt(r @ r) < tolerance:
            return x, iteration
        z = precondition(r)
        rho, before = r @ z, rho
        p = z + rho / before * p
    return x, iteration


if __name__ == "__main__":
    n = 64
    b = np.random.default_rng(1).standard_normal(n * n)
    begins = []
    x, iterations = pcg(Poisson(n), jacobi, b, 1e-8, begins)
    print(iterations, "iterations")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)
