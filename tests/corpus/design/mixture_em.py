"""Expectation maximisation of a mixture of four Gaussians; the likelihood is looked at every fifth iteration."""

import os
import time

import numpy as np


def density(x, mean, variance):
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def expect(x, weights, means, variances):
    each = np.array([w * density(x, m, s) for w, m, s in zip(weights, means, variances, strict=True)])
    return each / each.sum(axis=0)


def moments(x, share):
    total = share.sum()
    mean = (share * x).sum() / total
    return total / len(x), mean, (share * (x - mean) ** 2).sum() / total + 1e-6


def maximise(x, shares):
    return (np.array(each) for each in zip(*(moments(x, share) for share in shares), strict=True))


def likelihood(x, weights, means, variances):
    return np.log(sum(w * density(x, m, s) for w, m, s in zip(weights, means, variances, strict=True))).sum()


if __name__ == "__main__":
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.normal(m, s, 700) for m, s in ((-4, 1), (0, 0.5), (3, 1.5), (9, 1))])
    weights, means, variances = np.full(4, 0.25), np.array([-5.0, -1.0, 1.0, 5.0]), np.ones(4)
    begins = []
    for iteration in range(110):
        begins.append(time.monotonic_ns())
        shares = expect(x, weights, means, variances)
        weights, means, variances = maximise(x, shares)
        if iteration % 5 == 0:
            print(f"{iteration}: {likelihood(x, weights, means, variances):.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)
