"""Gradient accumulation: four micro-batches of forward and backward before each update, as for big language models.

Healthy and compute-bound. Truth: 30 updates; 120 micro-batches are the inner level, not steps.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import tile, write

ACCUMULATE = 4


def batches(n):
    generator = torch.Generator().manual_seed(7)
    for _ in range(n):
        yield torch.randn(64, 200, generator=generator), torch.randint(0, 50, (64,), generator=generator)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(200, 1200), nn.ReLU(), nn.Linear(1200, 800), nn.ReLU(), nn.Linear(800, 50))
    optimizer = torch.optim.AdamW(model.parameters())
    data = forward = backward = optimize = 0
    before = time.monotonic_ns()
    cuts = [before]
    for i, (x, y) in enumerate(batches(30 * ACCUMULATE), start=1):
        a = time.monotonic_ns()
        loss = F.cross_entropy(model(x), y) / ACCUMULATE
        b = time.monotonic_ns()
        loss.backward()
        c = time.monotonic_ns()
        data, forward, backward = data + a - before, forward + b - a, backward + c - b
        if i % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
            optimize += time.monotonic_ns() - c
            cuts.append(time.monotonic_ns())
        before = time.monotonic_ns()
    print("loss", loss.item() * ACCUMULATE)
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="operators",
        levels={"micro-batch": 120},
        phases_ns={"data": data, "forward": forward, "backward": backward, "optimizer": optimize},
    )


if __name__ == "__main__":
    main()
