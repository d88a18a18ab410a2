"""Chooses a model of a vineyard's yield by successive halving of its own: gradient boosting with ever more trees.

`halve` calls itself with the better third of the candidates and three times as many trees, until few are left; the best
is then fitted to everything and tested. Truth: 117 fits (39 candidates of three rungs, three folds each) of three
classes by number of trees, which grow longer by design. Healthy, limited by operators: scikit-learn's compiled trees.
"""

import itertools
import random
import time
from dataclasses import dataclass, field

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import PolynomialFeatures
from truth import tile, write

GRID = {"learning_rate": (0.03, 0.1, 0.3), "max_depth": (2, 3, 4), "subsample": (0.6, 0.8, 1.0)}
FOLDS = 3


@dataclass
class Log:
    cuts: list = field(default_factory=list)
    kinds: list = field(default_factory=list)
    spent: dict = field(default_factory=lambda: {"fit": 0, "score": 0})


def vineyards(count=600, seed=11):
    """Sun, rain, slope and the like of each plot, and tons per hectare."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 7))
    sun, rain, slope, age, *_ = x.T
    tons = 8 + 1.5 * sun - 0.8 * (rain - 0.3) ** 2 + 0.7 * sun * slope + np.tanh(age) + 0.4 * rng.normal(size=count)
    return PolynomialFeatures(2, interaction_only=True, include_bias=False).fit_transform(x), tons


def folds(rows):
    part = np.arange(rows) % FOLDS
    for k in range(FOLDS):
        yield np.flatnonzero(part != k), np.flatnonzero(part == k)


def candidates():
    for values in itertools.product(*GRID.values()):
        yield dict(zip(GRID, values, strict=True))


def error(candidate, trees, x, y, train, test, log):
    t0 = time.monotonic_ns()
    model = GradientBoostingRegressor(n_estimators=trees, random_state=0, **candidate)
    model.fit(x[train], y[train])
    t1 = time.monotonic_ns()
    wrong = mean_absolute_error(y[test], model.predict(x[test]))
    log.spent["fit"] += t1 - t0
    log.spent["score"] += time.monotonic_ns() - t1
    log.kinds.append(f"fit of {trees} trees")
    log.cuts.append(time.monotonic_ns())
    return wrong


def halve(contenders, trees, x, y, log):
    if len(contenders) == 1:
        return contenders[0]
    wrong = []
    for contender in contenders:
        wrong.append(np.mean([error(contender, trees, x, y, train, test, log) for train, test in folds(len(y))]))
    order = np.argsort(wrong, kind="stable")
    print(f"{len(contenders)} candidates with {trees} trees: best {wrong[order[0]]:.3f}, worst {wrong[order[-1]]:.3f}")
    return halve([contenders[i] for i in order[: len(contenders) // 3]], 3 * trees, x, y, log)


def main():
    x, y = vineyards()
    held_x, held_y = vineyards(seed=12)
    log, contenders = Log(), list(candidates())
    random.Random(1).shuffle(contenders)
    log.cuts.append(time.monotonic_ns())
    best = halve(contenders, 15, x, y, log)
    model = GradientBoostingRegressor(n_estimators=135, random_state=0, **best).fit(x, y)
    print(best, f"error on other plots {mean_absolute_error(held_y, model.predict(held_x)):.3f}")
    write(
        tile(log.cuts, log.kinds),
        unit="fit of a candidate on a fold",
        levels={"candidate": 39, "rung": 3},
        limiting="operators",
        phases_ns=log.spent,
    )


if __name__ == "__main__":
    main()
