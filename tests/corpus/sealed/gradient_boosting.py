"""Gradient boosting by hand with NumPy: each round grows a regression tree on a sample of the rows and adds it; the
loss on held-out rows is looked at every fifth round. The step is a round.
"""

import os
import time

import numpy as np


class Node:
    __slots__ = ("feature", "left", "right", "threshold", "value")

    def __init__(self, value):
        self.value, self.feature, self.threshold, self.left, self.right = value, None, None, None, None


class Tree:
    def __init__(self, depth, smallest, penalty):
        self.depth, self.smallest, self.penalty = depth, smallest, penalty

    def fit(self, binned, gradient, hessian, features):
        self.features = features
        self.root = self._grow(binned, gradient, hessian, np.arange(len(gradient)), 0)
        return self

    def _score(self, g, h):
        return g * g / (h + self.penalty)

    def _best_split(self, binned, gradient, hessian, rows):
        best = (1e-3, None, None)
        g, h = gradient[rows], hessian[rows]
        whole = self._score(g.sum(), h.sum())
        for feature in self.features:
            bins = binned[rows, feature]
            g_left = np.cumsum(np.bincount(bins, g, minlength=16))[:-1]
            h_left = np.cumsum(np.bincount(bins, h, minlength=16))[:-1]
            gain = self._score(g_left, h_left) + self._score(g.sum() - g_left, h.sum() - h_left) - whole
            at = int(gain.argmax())
            if gain[at] > best[0]:
                best = (gain[at], feature, at)
        return best

    def _grow(self, binned, gradient, hessian, rows, level):
        node = Node(-gradient[rows].sum() / (hessian[rows].sum() + self.penalty))
        if level == self.depth or len(rows) < self.smallest:
            return node
        _, feature, threshold = self._best_split(binned, gradient, hessian, rows)
        if feature is None:
            return node
        left = binned[rows, feature] <= threshold
        node.feature, node.threshold = feature, threshold
        node.left = self._grow(binned, gradient, hessian, rows[left], level + 1)
        node.right = self._grow(binned, gradient, hessian, rows[~left], level + 1)
        return node

    def predict(self, binned):
        found = np.empty(len(binned))
        open_nodes = [(self.root, np.arange(len(binned)))]
        while open_nodes:
            node, rows = open_nodes.pop()
            if node.feature is None:
                found[rows] = node.value
            else:
                left = binned[rows, node.feature] <= node.threshold
                open_nodes += [(node.left, rows[left]), (node.right, rows[~left])]
        return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_loss(y, score):
    return float(np.mean(np.logaddexp(0, score) - y * score))


class Booster:
    def __init__(self, rounds=140, rate=0.15, depth=4, rows=0.7, columns=0.6, patience=6, seed=63):
        self.rounds, self.rate, self.depth, self.patience = rounds, rate, depth, patience
        self.rows, self.columns, self.draw = rows, columns, np.random.default_rng(seed)
        self.trees, self.begins = [], []

    def _bin(self, x):
        return np.stack([np.searchsorted(e, c) for e, c in zip(self.edges, x.T, strict=True)], axis=1)

    def fit(self, x, y, x_held, y_held):
        self.edges = [np.quantile(column, np.linspace(0, 1, 17)[1:-1]) for column in x.T]
        binned, held = self._bin(x), self._bin(x_held)
        self.base = float(np.log(y.mean() / (1 - y.mean())))
        score, score_held = np.full(len(y), self.base), np.full(len(y_held), self.base)
        best, bad = np.inf, 0
        for number in range(1, self.rounds + 1):
            self.begins.append(time.monotonic_ns())
            p = sigmoid(score)
            rows = self.draw.random(len(y)) < self.rows
            features = self.draw.permutation(x.shape[1])[: int(self.columns * x.shape[1])]
            tree = Tree(self.depth, 20, 1.0).fit(binned[rows], (p - y)[rows], (p * (1 - p))[rows], features)
            self.trees.append(tree)
            score += self.rate * tree.predict(binned)
            if number % 5 == 0:
                for late in self.trees[-5:]:
                    score_held += self.rate * late.predict(held)
                loss = log_loss(y_held, score_held)
                if number % 15 == 0:
                    print(f"[{number}] train {log_loss(y, score):.4f}, held out {loss:.4f}")
                best, bad = (loss, 0) if loss < best else (best, bad + 1)
                if bad >= self.patience:
                    break
        return self


def main():
    draw = np.random.default_rng(63)
    x = draw.normal(size=(2400, 12))
    signal = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + (x[:, 3] > 0.5) * x[:, 4]
    y = (signal + 0.5 * draw.normal(size=2400) > 0).astype(float)
    booster = Booster().fit(x[:1900], y[:1900], x[1900:], y[1900:])
    print(len(booster.trees), "trees")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"round {ns}\n" for ns in booster.begins)


if __name__ == "__main__":
    main()
