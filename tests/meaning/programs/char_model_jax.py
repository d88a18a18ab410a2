"""Next-character model in JAX on a made-up chronicle; the one-hot windows of a batch are made on the host each step.

Truth: 400 updates; update 0 stands out, as it contains the compilation. The windows are made by nested Python loops over
characters in `make_batch`, which takes most of each step; an index into a prepared array costs next to nothing, so that
the gain is the measured time of making batches. Data is the limit, and one may call it Python.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import random
import time

import jax
import jax.numpy as jnp
import numpy as np
from truth import problem, tile, write

WINDOW = 48
BATCH = 96
STEPS = 400


class Chronicle:
    def __init__(self, seed=3):
        self.rng = random.Random(seed)
        words = "the king rode north and winter came upon valley river stone bridge old men sang of war".split()
        self.text = " ".join(self.rng.choice(words) for _ in range(30000))
        self.alphabet = sorted(set(self.text))
        self.index = {c: i for i, c in enumerate(self.alphabet)}

    def make_batch(self):
        rows, targets = [], []
        for _ in range(BATCH):
            start = self.rng.randrange(len(self.text) - WINDOW - 1)
            row = []
            for ch in self.text[start : start + WINDOW]:
                code = self.index[ch]
                row.extend([1.0 if k == code else 0.0 for k in range(len(self.alphabet))])
            rows.append(row)
            targets.append(self.index[self.text[start + WINDOW]])
        return np.asarray(rows, dtype=np.float32), np.asarray(targets, dtype=np.int32)


def forward(params, x):
    w1, b1, w2, b2 = params
    return jnp.tanh(x @ w1 + b1) @ w2 + b2


def loss_fn(params, x, y):
    logp = jax.nn.log_softmax(forward(params, x))
    return -logp[jnp.arange(x.shape[0]), y].mean()


@jax.jit
def sgd(params, x, y):
    value, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return [p - 0.2 * g for p, g in zip(params, grads)], value


def main():
    corpus = Chronicle()
    n = len(corpus.alphabet)
    k1, k2 = jax.random.split(jax.random.PRNGKey(1))
    params = [
        jax.random.normal(k1, (WINDOW * n, 128)) * 0.05,
        jnp.zeros(128),
        jax.random.normal(k2, (128, n)) * 0.05,
        jnp.zeros(n),
    ]
    data = 0
    losses = []
    cuts = [time.monotonic_ns()]
    for i in range(STEPS):
        x, y = corpus.make_batch()
        data += time.monotonic_ns() - cuts[-1]
        params, value = sgd(params, x, y)
        losses.append(value.item())
        if i % 100 == 0:
            print(i, round(losses[-1], 3))
        cuts.append(time.monotonic_ns())
    assert losses[-1] < losses[0]
    write(
        tile(cuts, "update"),
        unit="update",
        limiting="data",
        limiting_also=["python"],
        phases_ns={"data": data},
        outliers={0: "the update is compiled"},
        problem=problem(
            "one-hot windows are made by Python loops on the host in every step",
            "char_model_jax.py:Chronicle.make_batch",
            "data",
            wasted_ns=data,
        ),
    )


main()
