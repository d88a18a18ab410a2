"""A residual network learns the flow of a two-body problem with JAX: one jitted update, the loss read every step.

Truth: 400 updates, healthy, limited by operators (XLA's code); the first update compiles and stands out.
Batches are made with NumPy, which is data; gradients and update are one compiled call, so only data is a phase.
"""

import os
import time
from functools import partial

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
from truth import tile, write


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (a, b)) * jnp.sqrt(2.0 / a), "b": jnp.zeros(b)}
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def apply(params, state):
    h = state
    for layer in params[:-1]:
        h = jnp.tanh(h @ layer["w"] + layer["b"])
    return state + 0.1 * (h @ params[-1]["w"] + params[-1]["b"])


def loss_fn(params, now, then):
    return jnp.mean((apply(params, now) - then) ** 2)


@partial(jax.jit, donate_argnums=0)
def update(params, now, then, rate):
    loss, grads = jax.value_and_grad(loss_fn)(params, now, then)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


def orbits(rng, n, dt=0.05):
    q = rng.standard_normal((n, 2)).astype(np.float32)
    p = rng.standard_normal((n, 2)).astype(np.float32)
    force = -q / (np.sum(q * q, axis=1, keepdims=True) + 0.1) ** 1.5
    return np.hstack([q, p]), np.hstack([q + dt * p, p + dt * force])


def main():
    rng = np.random.default_rng(8)
    params = init(jax.random.key(8), [4, 320, 320, 320, 4])
    history, data = [], 0
    cuts = [time.monotonic_ns()]
    for step in range(400):
        now, then = orbits(rng, 512)
        data += time.monotonic_ns() - cuts[-1]
        params, loss = update(params, now, then, 0.01)
        history.append(float(loss))
        if step % 100 == 0:
            print(step, f"{history[-1]:.5f}")
        cuts.append(time.monotonic_ns())
    assert history[-1] < history[0]
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="operators",
        phases_ns={"data": data},
        outliers={0: "compilation"},
    )


main()
