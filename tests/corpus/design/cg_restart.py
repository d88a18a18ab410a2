"""Conjugate gradients whose residual is computed anew, and the direction reset, every 25 iterations."""

import os
import time

import numpy as np


def laplace(x, n, shift):
    u = x.reshape(n, n)
    y = (4.0 + shift) * u
    y[1:] -= u[:-1]
    y[:-1] -= u[1:]
    y[:, 1:] -= u[:, :-1]
    y[:, :-1] -= u[:, 1:]
    return y.ravel()


def dot(a, b):
    return float(a @ b)


def restart(apply, b, x):
    r = b - apply(x)
    return r, r.copy(), dot(r, r)


def solve(apply, b, iterations, begins):
    x = np.zeros_like(b)
    r, p, rho = restart(apply, b, x)
    for iteration in range(1, iterations + 1):
        begins.append(time.monotonic_ns())
        q = apply(p)
        alpha = rho / dot(p, q)
        x += alpha * p
        r -= alpha * q
        if iteration % 25 == 0:
            r, p, rho = restart(apply, b, x)
            continue
        rho, before = dot(r, r), rho
        p = r + rho / before * p
    return x, rho


n = 80
begins = []
b = np.random.default_rng(2).standard_normal(n * n)
x, rho = solve(lambda v: laplace(v, n, 0.001), b, 250, begins)
print(f"residual {rho**0.5:.2e}")
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"iteration {ns}\n" for ns in begins)
