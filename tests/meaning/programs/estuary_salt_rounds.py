"""Salt in an estuary: a physics-informed network in JAX learns u(x, t) of an advection-diffusion equation, in rounds
with an ever smaller learning rate. Planted: `make_update` makes and jits a new function for each round, with the rate
baked in, so that XLA compiles the same second derivatives four times. Truth: 240 updates in 4 rounds; the first of
each round compiles and stands out; limited by operators (XLA's compiler is native; tracing is Python, so one may say
python). The rate could be an argument: the gain is what the first updates of all rounds but the first take more than
the usual one.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from truth import problem, tile, write

RIVER, MIXING = 0.6, 0.02
ROUNDS, UPDATES = 4, 60


def network(key, widths=(2, 64, 64, 1)):
    keys = jax.random.split(key, len(widths) - 1)
    pairs = zip(keys, widths[:-1], widths[1:], strict=True)
    return [(jax.random.normal(k, (a, b)) / jnp.sqrt(a), jnp.zeros(b)) for k, a, b in pairs]


def salt(params, x, t):
    h = jnp.stack([x, t])
    for weight, bias in params[:-1]:
        h = jnp.tanh(h @ weight + bias)
    weight, bias = params[-1]
    return (h @ weight + bias)[0]


def residual(params, x, t):
    u_t = jax.grad(salt, 2)(params, x, t)
    u_x = jax.grad(salt, 1)(params, x, t)
    u_xx = jax.grad(jax.grad(salt, 1), 1)(params, x, t)
    return u_t - RIVER * u_x - MIXING * u_xx


def loss(params, inside, start, mouth):
    flow = jax.vmap(residual, (None, 0, 0))(params, inside[:, 0], inside[:, 1])
    first = jax.vmap(salt, (None, 0, None))(params, start, 0.0) - jnp.exp(-6 * start)
    tide = jax.vmap(salt, (None, None, 0))(params, 0.0, mouth) - (1 + 0.2 * jnp.sin(6 * mouth))
    return jnp.mean(flow**2) + 5 * jnp.mean(first**2) + 5 * jnp.mean(tide**2)


def make_update(rate, beta1=0.9, beta2=0.99):
    @jax.jit
    def update(params, mean, square, points):
        value, slope = jax.value_and_grad(loss)(params, *points)
        mean = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, mean, slope)
        square = jax.tree.map(lambda s, g: beta2 * s + (1 - beta2) * g * g, square, slope)
        params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-7), params, mean, square)
        return params, mean, square, value

    return update


class Points:
    def __init__(self, seed, inside=1200, edge=200):
        self.dice, self.inside, self.edge = np.random.default_rng(seed), inside, edge

    def draw(self):
        size = (self.inside, 2), self.edge, self.edge
        return tuple(jnp.asarray(self.dice.random(shape, dtype=np.float32)) for shape in size)


def main():
    points, params = Points(31), network(jax.random.key(31))
    mean = jax.tree.map(jnp.zeros_like, params)
    square = jax.tree.map(jnp.zeros_like, params)
    points.draw()
    spent, cuts = {"data": 0, "update": 0}, [time.monotonic_ns()]
    for number in range(ROUNDS):
        rate = 3e-3 * 0.5**number
        update = make_update(rate)
        for _ in range(UPDATES):
            batch = points.draw()
            drawn = time.monotonic_ns()
            params, mean, square, value = update(params, mean, square, batch)
            value = float(value)
            spent["data"] += drawn - cuts[-1]
            cuts.append(time.monotonic_ns())
            spent["update"] += cuts[-1] - drawn
        print(f"round {number}, rate {rate:.1e}: loss {value:.4f}")
    profile = [float(salt(params, x, 1.0)) for x in (0.0, 0.25, 0.5, 1.0)]
    print("salt at high tide:", *(f"{u:.2f}" for u in profile))

    lengths = [b - a for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    usual = statistics.median(lengths)
    firsts = range(0, ROUNDS * UPDATES, UPDATES)
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="operators",
        limiting_also=["python"],
        levels={"round": ROUNDS},
        phases_ns=spent,
        problem=problem(
            "each round jits a new update with its learning rate baked in, which is compiled again",
            "estuary_salt_rounds.py:make_update",
            "operators",
            wasted_ns=int(sum(lengths[k] - usual for k in firsts if k)),
        ),
        outliers={k: "compiles the update" for k in firsts},
    )


if __name__ == "__main__":
    main()
