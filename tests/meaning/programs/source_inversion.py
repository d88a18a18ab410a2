"""Recovers where a pollutant was released from sparse sensors: diffusion and drift are unrolled, LBFGS fits the source.

`torch.optim.LBFGS` with a strong-Wolfe line search calls the closure several times within one step. Healthy and
compute-bound. Truth: 25 calls of `optimizer.step` are the steps; evaluations of the closure are the inner level.
Forward and backward are summed over evaluations; optimizer is the rest of `step`.
"""

import time

import torch
from torch import nn
from torch.nn.functional import pad, softplus
from truth import tile, write

torch.manual_seed(12)
torch.set_num_threads(1)


class Plume(nn.Module):
    """Concentration at the sensors after each tenth of 40 time steps, for a given source."""

    def __init__(self, size, sensors):
        super().__init__()
        self.sensors = sensors
        self.log_source = nn.Parameter(torch.full((1, 1, size, size), -3.0))

    def forward(self, source=None, steps=40, d=0.15, u=0.10, v=0.06):
        c = softplus(self.log_source) if source is None else source
        seen = []
        for step in range(1, steps + 1):
            p = pad(c, (1, 1, 1, 1), mode="replicate")
            above, below, left, right = p[..., :-2, 1:-1], p[..., 2:, 1:-1], p[..., 1:-1, :-2], p[..., 1:-1, 2:]
            c = c + d * (above + below + left + right - 4 * c) + v * (above - c) + u * (left - c)
            if step % 10 == 0:
                seen.append(c.flatten()[self.sensors])
        return torch.stack(seen)


def main(size=192, outer=25):
    sensors = torch.randperm(size * size)[:600]
    model = Plume(size, sensors)
    truth = torch.zeros(1, 1, size, size)
    truth[0, 0, 40:60, 70:95] = 2.0
    truth[0, 0, 100:110, 30:40] = 3.0
    with torch.no_grad():
        measured = model(truth) + 0.01 * torch.randn(4, len(sensors))

    spent = {"forward": 0, "backward": 0}
    evaluations = 0
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe", tolerance_change=0)

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        a = time.monotonic_ns()
        loss = ((model() - measured) ** 2).sum() / 2e-4 + 2.0 * softplus(model.log_source).sum()
        b = time.monotonic_ns()
        loss.backward()
        spent["forward"] += b - a
        spent["backward"] += time.monotonic_ns() - b
        return loss

    within = 0
    cuts = [time.monotonic_ns()]
    for iteration in range(outer):
        begin = time.monotonic_ns()
        loss = optimizer.step(closure)
        within += time.monotonic_ns() - begin
        print(f"{iteration:3d} objective {loss.item():.1f}")
        cuts.append(time.monotonic_ns())

    phases = spent | {"optimizer": within - spent["forward"] - spent["backward"]}
    levels = {"closure evaluation": evaluations}
    write(tile(cuts, "step"), unit="optimizer step", limiting="operators", levels=levels, phases_ns=phases)


main()
