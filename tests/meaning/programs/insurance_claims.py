"""Frequency of insurance claims: a Poisson regression on rows that NumPy draws in proportion to their exposure.

Truth: 400 updates, limited by data: `draw_batch` makes probabilities of all 300,000 rows anew for each batch, and choice sums
them up again. The sums could be kept; what drawing from kept sums takes is measured after the loop, the difference is the gain.
NumPy does it natively: one may say operators.
"""

import time

import numpy as np
import torch
from torch import nn
from truth import problem, tile, write

ROWS, COLUMNS, BATCH, UPDATES = 300_000, 24, 512, 400


def make_table(rng):
    table = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    exposure = rng.gamma(2.0, 0.5, ROWS)
    claims = rng.poisson(np.exp(0.3 * table[:, 0] - 0.2 * table[:, 1] - 1.0) * exposure).astype(np.float32)
    return table, exposure, claims


def draw_batch(rng, table, exposure, claims):
    weights = np.sqrt(np.clip(exposure, 0.05, 3.0))
    rows = rng.choice(len(table), size=BATCH, p=weights / weights.sum())
    return torch.from_numpy(table[rows]), torch.from_numpy(claims[rows])


def draw_from_sums(rng, sums, table, claims):
    """What it should be; only measured."""
    rows = np.searchsorted(sums, rng.random(BATCH) * sums[-1])
    return torch.from_numpy(table[rows]), torch.from_numpy(claims[rows])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    rng = np.random.default_rng(8)
    table, exposure, claims = make_table(rng)

    model = nn.Sequential(nn.Linear(COLUMNS, 160), nn.GELU(), nn.Linear(160, 160), nn.GELU(), nn.Linear(160, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.PoissonNLLLoss(log_input=True)
    drawn = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
    drawing = 0

    cuts = [time.monotonic_ns()]
    for step in range(1, UPDATES + 1):
        begin = time.monotonic_ns()
        features, counts = draw_batch(rng, table, exposure, claims)
        t0 = time.monotonic_ns()
        loss = criterion(model(features).squeeze(1), counts)
        t1 = time.monotonic_ns()
        optimizer.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        optimizer.step()
        t4 = time.monotonic_ns()
        if step % 100 == 0:
            print(f"{step:4d}  {loss.item():.4f}")
        drawing += t0 - begin
        drawn["data"] += t0 - cuts[-1]
        drawn["forward"] += t1 - t0
        drawn["backward"] += t3 - t2
        drawn["optimizer"] += t2 - t1 + t4 - t3
        cuts.append(time.monotonic_ns())

    sums = np.cumsum(np.sqrt(np.clip(exposure, 0.05, 3.0)))
    begin = time.monotonic_ns()
    for _ in range(50):
        draw_from_sums(rng, sums, table, claims)
    quick = (time.monotonic_ns() - begin) // 50

    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        limiting_also=["operators"],
        phases_ns=drawn,
        problem=problem(
            "probabilities of all rows are made and summed up anew for each batch",
            "insurance_claims.py:draw_batch",
            "data",
            wasted_ns=drawing - quick * UPDATES,
        ),
    )


if __name__ == "__main__":
    main()
