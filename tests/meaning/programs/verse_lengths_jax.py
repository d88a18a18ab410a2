"""A recurrent language model of verses in JAX; batches are padded to their own longest verse.

Planted: nearly every batch has another length, and the jitted `update` is compiled anew for each length not seen
before. Truth: 180 updates; those that compile stand out and take most of the time, limited by operators (XLA's
compiler; tracing is Python, so one may say python). Padding all to one length would compile once: what the compiling
updates but the first take more than others is the gain. Batches are a part of data, gradients and update one call.
"""

import functools
import time
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np
from truth import problem, tile, write

SIGNS, WIDTH, BATCH = 48, 128, 16


def init(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"embed": (SIGNS, WIDTH), "gate": (2 * WIDTH, WIDTH), "new": (2 * WIDTH, WIDTH), "out": (WIDTH, SIGNS)}
    return {name: jnp.asarray(rng.normal(size=shape) / shape[0] ** 0.5, jnp.float32) for name, shape in shapes.items()}


def log_likelihood(params, signs, mask):
    def cell(hidden, inputs):
        both = jnp.concatenate([hidden, inputs], axis=1)
        gate = jax.nn.sigmoid(both @ params["gate"])
        hidden = (1 - gate) * hidden + gate * jnp.tanh(both @ params["new"])
        return hidden, hidden

    inputs = params["embed"][signs[:, :-1]].swapaxes(0, 1)
    _, hidden = jax.lax.scan(cell, jnp.zeros((BATCH, WIDTH)), inputs)
    chances = jax.nn.log_softmax(hidden @ params["out"]).swapaxes(0, 1)
    return (jnp.take_along_axis(chances, signs[:, 1:, None], axis=2)[..., 0] * mask[:, 1:]).sum() / mask[:, 1:].sum()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def update(params, momentum, signs, mask):
    loss, slopes = jax.value_and_grad(lambda p: -log_likelihood(p, signs, mask))(params)
    norm = jnp.sqrt(sum((slope**2).sum() for slope in jax.tree.leaves(slopes)))
    momentum = jax.tree.map(lambda m, s: 0.9 * m + s / jnp.maximum(1.0, norm), momentum, slopes)
    return jax.tree.map(lambda p, m: p - 0.05 * m, params, momentum), momentum, loss


def write_verses(count, rng):
    """Verses of a Markov chain; none is quite as long as the next."""
    follows = rng.integers(1, SIGNS, (SIGNS, 3))
    verses = []
    for length in rng.gamma(30.0, 0.4, count).astype(int) + 12:
        verse = [1]
        for choice in rng.integers(0, 3, length):
            verse.append(int(follows[verse[-1], choice]))
        verses.append(np.array(verse, dtype=np.int32))
    return verses


def pad(verses):
    longest = max(map(len, verses))
    signs = np.zeros((len(verses), longest), dtype=np.int32)
    for row, verse in zip(signs, verses, strict=True):
        row[: len(verse)] = verse
    return signs, (signs > 0).astype(np.float32)


def shuffled(verses, epochs, rng):
    for _ in range(epochs):
        order = rng.permutation(len(verses))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            yield [verses[i] for i in order[start : start + BATCH]]


def main():
    rng = np.random.default_rng(8)
    verses = write_verses(960, rng)
    params = init()
    momentum = jax.tree.map(jnp.zeros_like, params)
    seen, fresh, losses, data = set(), {}, [], 0
    cuts = [time.monotonic_ns()]
    for step, (signs, mask) in enumerate(map(pad, shuffled(verses, 3, rng))):
        data += time.monotonic_ns() - cuts[-1]
        params, momentum, loss = update(params, momentum, signs, mask)
        losses.append(float(loss))
        cuts.append(time.monotonic_ns())
        if signs.shape[1] not in seen:
            seen.add(signs.shape[1])
            fresh[step] = f"compiles for length {signs.shape[1]}"
    print(f"{len(losses)} updates, {len(seen)} lengths, loss {losses[0]:.2f} -> {losses[-1]:.2f}")

    spans = np.diff(cuts)
    usual = median(span for step, span in enumerate(spans) if step not in fresh)
    wasted = int(sum(spans[step] - usual for step in list(fresh)[1:]))
    found = problem("compiled anew for every length", "verse_lengths_jax.py:main", "operators", wasted_ns=wasted)
    write(
        tile(cuts),
        unit="optimizer update",
        levels={"epoch": 3},
        limiting="operators",
        limiting_also=["python"],
        phases_ns={"data": data},
        problem=found,
        outliers=fresh,
    )


if __name__ == "__main__":
    main()
