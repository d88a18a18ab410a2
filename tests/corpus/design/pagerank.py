"""PageRank of a random web by power iteration; one helper for the residual is all that an iteration calls."""

import os
import time

import numpy as np


def random_web(pages, links, rng):
    source = rng.integers(0, pages, links)
    target = (rng.pareto(1.2, links) * 10).astype(int) % pages
    return source, target


def residual(new, old):
    return np.abs(new - old).sum()


def main():
    rng = np.random.default_rng(7)
    pages = 20_000
    source, target = random_web(pages, 160_000, rng)
    degree = np.bincount(source, minlength=pages)
    weight = 1.0 / degree[source]
    rank = np.full(pages, 1.0 / pages)
    damping, begins = 0.97, []
    for _ in range(120):
        begins.append(time.monotonic_ns())
        flow = np.bincount(target, weights=rank[source] * weight, minlength=pages)
        new = damping * flow + (1.0 - damping * flow.sum()) / pages
        change = residual(new, rank)
        rank = new
        if change < 1e-14:
            break
    print(f"{len(begins)} iterations, change {change:.2e}, best page {rank.argmax()}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
