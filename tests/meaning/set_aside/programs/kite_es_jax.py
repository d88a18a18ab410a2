"""Steers a kite in gusty wind by an evolution strategy: JAX flies a whole population at once, NumPy ranks and updates.

Healthy, limited by operators: the jitted flight of 72 policies (vmap over lax.scan) takes nearly all of the time.
Truth: 90 generations, of which the first stands out, as it compiles; every 30th flies the mean policy as well, which
is a part of its generation (and compiles once more at the 30th, which stands out for it).
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from truth import tile, write

SEES, HIDDEN, MOMENTS = 6, 32, 400
SIZES = ((SEES, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
COUNT = sum(a * b for a, b in SIZES)


def policy(flat, sight):
    start = 0
    for a, b in SIZES:
        sight = jnp.tanh(sight @ flat[start : start + a * b].reshape(a, b))
        start += a * b
    return sight[0]


def fly(flat, wind):
    """The mean pull of the lines, if the policy steers the kite along its sphere."""

    def moment(state, gust):
        height, side, heading, turn = state
        steer = policy(flat, jnp.stack([height, side, jnp.sin(heading), jnp.cos(heading), turn, gust - 8.0]))
        power = gust * jnp.cos(side) * jnp.cos(height)
        turn = 0.8 * turn + 0.2 * steer
        heading = heading + 0.05 * power * turn
        height = jnp.clip(height + 0.01 * power * jnp.cos(heading), 0.0, 1.5)
        side = jnp.clip(side + 0.01 * power * jnp.sin(heading), -1.5, 1.5)
        crashed = jnp.where(height < 0.05, 5.0, 0.0)
        return (height, side, heading, turn), power * jnp.abs(jnp.sin(heading)) - crashed

    _, pulls = jax.lax.scan(moment, (0.6, 0.0, 1.57, 0.0), wind)
    return pulls.mean()


class Flights:
    def __init__(self):
        self.population = jax.jit(jax.vmap(jax.vmap(fly, (None, 0)), (0, None)))
        self.single = jax.jit(jax.vmap(fly, (None, 0)))

    def rate(self, policies, winds):
        return np.asarray(self.population(policies, winds)).mean(1)


class Strategy:
    def __init__(self, pairs=36, spread=0.1, rate=0.06, seed=0):
        self.rng, self.pairs, self.spread, self.rate = np.random.default_rng(seed), pairs, spread, rate
        self.mean = self.rng.normal(size=COUNT).astype(np.float32) * 0.2
        self.velocity = np.zeros_like(self.mean)

    def ask(self):
        half = self.rng.standard_normal((self.pairs, COUNT), dtype=np.float32)
        self.noise = np.concatenate([half, -half])
        return self.mean + self.spread * self.noise

    def tell(self, ratings):
        ranks = np.argsort(np.argsort(ratings)) / (len(ratings) - 1) - 0.5
        slope = ranks.astype(np.float32) @ self.noise / (len(ratings) * self.spread)
        self.velocity = 0.8 * self.velocity + self.rate * slope
        self.mean = self.mean + self.velocity


def gusts(rng, days):
    slow = np.cumsum(rng.normal(size=(days, MOMENTS)) * 0.15, axis=1)
    return (8 + np.clip(slow, -4, 4) + rng.normal(size=(days, MOMENTS)) * 0.5).astype(np.float32)


def train(generations=90):
    strategy, flights, rng = Strategy(), Flights(), np.random.default_rng(5)
    trial = gusts(rng, 8)
    phases = dict.fromkeys(("ask", "fly", "tell"), 0)
    cuts = [time.monotonic_ns()]
    for generation in range(1, generations + 1):
        policies = strategy.ask()
        winds = gusts(rng, 4)
        t0 = time.monotonic_ns()
        ratings = flights.rate(policies, winds)
        t1 = time.monotonic_ns()
        strategy.tell(ratings)
        t2 = time.monotonic_ns()
        for name, span in zip(phases, (t0 - cuts[-1], t1 - t0, t2 - t1), strict=True):
            phases[name] += span
        if generation % 30 == 0:
            pull = float(flights.single(strategy.mean, trial).mean())
            print(f"generation {generation}: population {ratings.mean():.2f}, mean policy {pull:.2f}")
        cuts.append(time.monotonic_ns())
    return cuts, phases


if __name__ == "__main__":
    cuts, phases = train()
    write(
        tile(cuts, "generation"),
        unit="generation",
        limiting="operators",
        phases_ns=phases,
        outliers={0: "compiles the flight of the population", 29: "compiles the flight of the mean policy"},
    )
