"""Customer segmentation: k-means written from scratch in NumPy, five restarts, the best inertia is kept.

Healthy and compute-bound in NumPy. Each restart draws its centres by k-means++ and iterates 30 times, or less if labels
settle (they do not). Truth: the 150 iterations are the steps; the five seedings stand beside them.
"""

from time import monotonic_ns

import numpy as np
from truth import write


def make_customers(rng, n=24000, features=24, groups=40):
    centres = rng.normal(scale=1.6, size=(groups, features))
    return centres[rng.integers(groups, size=n)] + rng.normal(size=(n, features))


def squared_distances(x, centres):
    return (x**2).sum(1)[:, None] - 2.0 * x @ centres.T + (centres**2).sum(1)


def plus_plus(x, k, rng):
    centres = [x[rng.integers(len(x))]]
    nearest = np.full(len(x), np.inf)
    for _ in range(k - 1):
        nearest = np.minimum(nearest, ((x - centres[-1]) ** 2).sum(1))
        centres.append(x[rng.choice(len(x), p=nearest / nearest.sum())])
    return np.array(centres)


def assign(x, centres):
    d = squared_distances(x, centres)
    labels = d.argmin(1)
    return labels, d[np.arange(len(x)), labels].sum()


def update(x, labels, centres):
    return np.array([x[labels == j].mean(0) if (labels == j).any() else centres[j] for j in range(len(centres))])


def main():
    rng = np.random.default_rng(11)
    x = make_customers(rng)
    k, best, steps = 64, np.inf, []
    last = monotonic_ns()
    for restart in range(5):
        centres = plus_plus(x, k, rng)
        labels = None
        now = monotonic_ns()
        steps.append((last, now, "seeding"))
        last = now
        for _ in range(30):
            new, inertia = assign(x, centres)
            settled = labels is not None and (new == labels).all()
            labels = new
            centres = update(x, labels, centres)
            now = monotonic_ns()
            steps.append((last, now, "iteration"))
            last = now
            if settled:
                break
        best = min(best, inertia)
    print(f"inertia {best:.0f}")
    write(steps, unit="k-means iteration", limiting="operators", levels={"restart": 5}, beside=["seeding"])


if __name__ == "__main__":
    main()
