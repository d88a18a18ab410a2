"""Reads runes with a convolutional network in plain NumPy: layers with forward and backward, momentum by hand.

Truth: 300 updates (6 epochs of 50), and 6 tests beside them. Healthy, limited by operators: products of matrices and
the copies that windows need; the layers' Python is little. Batches are cut out of an array that is shuffled once per
epoch by an index.
"""

import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from truth import tile, write

SIDE, RUNES = 25, 16


def normal(rng, before, after):
    return (rng.normal(size=(before, after)) / before**0.5).astype(np.float32)


class Convolution:
    def __init__(self, rng, before, after, size=5):
        self.size = size
        self.weight, self.bias = normal(rng, before * size * size, after), np.zeros(after, np.float32)

    def forward(self, x):
        self.shape = x.shape
        windows = sliding_window_view(x, (self.size, self.size), axis=(1, 2))[:, ::2, ::2]
        self.columns = windows.reshape(*windows.shape[:3], -1)
        return self.columns @ self.weight + self.bias

    def backward(self, slope):
        flat = slope.reshape(-1, slope.shape[-1])
        self.slopes = self.columns.reshape(len(flat), -1).T @ flat, flat.sum(0)
        spread = (flat @ self.weight.T).reshape(*slope.shape[:3], self.shape[3], self.size, self.size)
        total = np.zeros(self.shape, np.float32)
        _, height, width, _ = (2 * side for side in slope.shape)
        for dy in range(self.size):
            for dx in range(self.size):
                total[:, dy : dy + height : 2, dx : dx + width : 2] += spread[..., dy, dx]
        return total


class Rectifier:
    def forward(self, x):
        self.on = x > 0
        return x * self.on

    def backward(self, slope):
        return slope * self.on


class Dense:
    def __init__(self, rng, before, after):
        self.weight, self.bias = normal(rng, before, after), np.zeros(after, np.float32)

    def forward(self, x):
        self.shape, self.x = x.shape, x.reshape(len(x), -1)
        return self.x @ self.weight + self.bias

    def backward(self, slope):
        self.slopes = self.x.T @ slope, slope.sum(0)
        return (slope @ self.weight.T).reshape(self.shape)


class Network:
    def __init__(self, layers, rate=0.02):
        self.layers, self.rate = layers, rate
        self.speed = {id(layer): [0.0, 0.0] for layer in layers}
        self.cuts, self.kinds = [], []
        self.spent = dict.fromkeys(("data", "forward", "backward", "optimizer", "validation"), 0)

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, slope):
        for layer in reversed(self.layers):
            slope = layer.backward(slope)

    def descend(self):
        for layer in self.layers:
            if hasattr(layer, "slopes"):
                speed = [0.9 * v - self.rate * s for v, s in zip(self.speed[id(layer)], layer.slopes, strict=True)]
                layer.weight += speed[0]
                layer.bias += speed[1]
                self.speed[id(layer)] = speed

    def cut(self, kind):
        self.cuts.append(time.monotonic_ns())
        self.kinds.append(kind)

    def fit(self, x, y, test_x, test_y, epochs, rng, batch=48):
        self.cuts.append(time.monotonic_ns())
        for epoch in range(epochs):
            order, total = rng.permutation(len(x)), 0.0
            for start in range(0, len(x), batch):
                picks = order[start : start + batch]
                images, runes = x[picks], y[picks]
                t0 = time.monotonic_ns()
                scores = self.forward(images)
                scores -= scores.max(1, keepdims=True)
                chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
                total -= np.log(chances[np.arange(len(runes)), runes] + 1e-9).mean()
                t1 = time.monotonic_ns()
                chances[np.arange(len(runes)), runes] -= 1
                self.backward(chances / len(runes))
                t2 = time.monotonic_ns()
                self.descend()
                self.cut("train")
                spans = (t0 - self.cuts[-2], t1 - t0, t2 - t1, self.cuts[-1] - t2)
                for name, span in zip(self.spent, spans, strict=False):
                    self.spent[name] += span
            right = np.mean([self.forward(test_x[i::4]).argmax(1) == test_y[i::4] for i in range(4)])
            print(f"epoch {epoch}: loss {total * batch / len(x):.3f}, {right:.1%} right")
            self.cut("validation")
            self.spent["validation"] += self.cuts[-1] - self.cuts[-2]


def carve(rng, shapes, count):
    """Runes, moved a little, on rough stone."""
    runes = rng.integers(0, RUNES, count)
    stones = rng.normal(0, 0.3, (count, SIDE, SIDE, 1)).astype(np.float32)
    for stone, rune, (y, x) in zip(stones, runes, rng.integers(0, 9, (count, 2)), strict=True):
        stone[y : y + 16, x : x + 16, 0] += shapes[rune]
    return stones, runes


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    shapes = np.kron(rng.integers(0, 2, (RUNES, 4, 4)), np.ones((4, 4), np.float32))
    (x, y), test = carve(rng, shapes, 2400), carve(rng, shapes, 256)
    layers = [Convolution(rng, 1, 64), Rectifier(), Convolution(rng, 64, 96), Rectifier()]
    network = Network([*layers, Dense(rng, 96 * 16, 192), Rectifier(), Dense(rng, 192, RUNES)])
    network.fit(x, y, *test, 6, rng)
    fields = {"beside": ["validation"], "levels": {"epoch": 6}, "limiting": "operators", "phases_ns": network.spent}
    write(tile(network.cuts, network.kinds), unit="optimizer update", **fields)
