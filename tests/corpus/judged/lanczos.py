"""Lanczos iteration with full reorthogonalisation for the smallest eigenvalues of a graph's Laplacian, with NumPy."""

import os
import time

import numpy as np


def laplacian(n, seed):
    draw = np.random.default_rng(seed)
    edges = draw.integers(0, n, (6 * n, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    degree = np.bincount(edges.ravel(), minlength=n)

    def apply(x):
        y = degree * x
        np.subtract.at(y, edges[:, 0], x[edges[:, 1]])
        np.subtract.at(y, edges[:, 1], x[edges[:, 0]])
        return y

    return apply


def orthogonalise(w, basis):
    for _ in range(2):
        w = w - basis.T @ (basis @ w)
    return w


def ritz_values(alphas, betas):
    t = np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1)
    return np.linalg.eigvalsh(t)


def lanczos(apply, n, most, begins):
    q = np.ones(n) + np.arange(n) / n
    basis = [q / np.linalg.norm(q)]
    alphas, betas, last = [], [], None
    for k in range(most):
        begins.append(time.monotonic_ns())
        w = apply(basis[-1])
        alphas.append(float(w @ basis[-1]))
        w = orthogonalise(w, np.array(basis))
        beta = float(np.linalg.norm(w))
        if k and k % 8 == 0:
            values = ritz_values(alphas, betas)[:3]
            if last is not None and np.abs(values - last).max() < 1e-10:
                break
            last = values
        betas.append(beta)
        basis.append(w / beta)
    return last


if __name__ == "__main__":
    begins = []
    values = lanczos(laplacian(400, 5), 400, 120, begins)
    print("smallest eigenvalues", np.round(values, 6))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)
