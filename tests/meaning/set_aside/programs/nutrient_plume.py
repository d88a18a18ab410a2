"""A plume of nutrients in a bay with tides: implicit time steps, solved by conjugate gradients without a matrix.

Mixing is strong when the tide runs and weak at slack water, so that a step takes from a few to more than a hundred
iterations. Everything is whole-array NumPy. Healthy. Truth: 110 time steps; iterations are the inner level (their number
follows from the numbers only); limited by operators. `solve` is the time of all iterations of a step.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import math
import time

import numpy as np
from truth import tile, write

N, STEPS, DT, TOLERANCE = 144, 110, 0.5, 1e-6


def mixing(step):
    tide = abs(math.sin(2 * math.pi * step / 37))
    return 0.2 + 20 * tide**2


def apply(field, depth, strength):
    """(1 - dt div(depth grad)) of a field that nothing leaves."""
    out = field.copy()
    flow = 0.5 * (depth[1:] + depth[:-1]) * (field[1:] - field[:-1])
    out[1:] += DT * strength * flow
    out[:-1] -= DT * strength * flow
    flow = 0.5 * (depth[:, 1:] + depth[:, :-1]) * (field[:, 1:] - field[:, :-1])
    out[:, 1:] += DT * strength * flow
    out[:, :-1] -= DT * strength * flow
    return out


def conjugate_gradients(right, guess, depth, strength):
    x = guess.copy()
    residual = right - apply(x, depth, strength)
    direction = residual.copy()
    norm = float(np.vdot(residual, residual))
    limit = TOLERANCE**2 * float(np.vdot(right, right))
    count = 0
    while norm > limit:
        image = apply(direction, depth, strength)
        alpha = norm / float(np.vdot(direction, image))
        x += alpha * direction
        residual -= alpha * image
        before, norm = norm, float(np.vdot(residual, residual))
        direction *= norm / before
        direction += residual
        count += 1
    return x, count


def river(step):
    source = np.zeros((N, N))
    source[N // 2 - 4 : N // 2 + 4, :6] = 1 + 0.5 * math.cos(step / 5)
    return source


def main():
    y, x = np.mgrid[0:N, 0:N] / N
    depth = 0.3 + x * (1.2 + np.sin(6 * y)) ** 2
    plume = np.zeros((N, N))
    iterations = solving = 0
    cuts = [time.monotonic_ns()]
    for step in range(STEPS):
        right = plume + DT * river(step) - DT * 0.01 * plume**2
        began = time.monotonic_ns()
        plume, count = conjugate_gradients(right, plume, depth, mixing(step))
        solving += time.monotonic_ns() - began
        iterations += count
        if step % 20 == 0:
            print(f"step {step}: {count} iterations, most {plume.max():.3f}, total {plume.sum():.1f}", flush=True)
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "step"),
        unit="time step",
        limiting="operators",
        levels={"iteration": iterations},
        phases_ns={"solve": solving},
    )


if __name__ == "__main__":
    main()
