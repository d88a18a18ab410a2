"""A JAX multilayer perceptron learns to tell noisy spiral arms apart, with a hand-written momentum SGD in one jit call.

Healthy and compute-bound in XLA. Truth: 250 updates of one class; update 0 stands out, as it contains the compilation;
batches are picked by a NumPy index on the host and cost little. No forward or backward phases, all is in one call.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time

import jax
import jax.numpy as jnp
import numpy as np
from truth import tile, write

ARMS, WIDTH, BATCH, STEPS = 6, 768, 256, 250


def make_spirals(n, rng):
    label = rng.integers(0, ARMS, n)
    radius = rng.uniform(0.1, 1.0, n)
    angle = 4 * radius + 2 * np.pi * label / ARMS + rng.normal(0, 0.1, n)
    xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    freq = rng.normal(0, 3, (2, 64))
    return np.concatenate([np.cos(xy @ freq), np.sin(xy @ freq)], 1).astype(np.float32), label.astype(np.int32)


def init(key, sizes):
    params = []
    for i, o in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (i, o)) * jnp.sqrt(2 / i), "b": jnp.zeros(o)})
    return params


def loss_fn(params, x, y):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    logits = x @ params[-1]["w"] + params[-1]["b"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))


@jax.jit
def update(params, velocity, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree_util.tree_map(lambda p, v: p - 0.01 * v, params, velocity)
    return params, velocity, loss


rng = np.random.default_rng(7)
xs, ys = make_spirals(20000, rng)
params = init(jax.random.PRNGKey(0), [128, WIDTH, WIDTH, ARMS])
velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
history = []
data = 0
cuts = [time.monotonic_ns()]
for step in range(STEPS):
    pick = rng.integers(0, len(xs), BATCH)
    x, y = xs[pick], ys[pick]
    data += time.monotonic_ns() - cuts[-1]
    params, velocity, loss = update(params, velocity, x, y)
    history.append(float(loss))
    cuts.append(time.monotonic_ns())

print(f"loss {history[0]:.3f} -> {history[-1]:.3f}")
assert history[-1] < history[0]
write(
    tile(cuts, "update"),
    unit="update",
    limiting="operators",
    phases_ns={"data": data},
    outliers={0: "the update is compiled"},
)
