"""Trains a multi-horizon forecaster and logs a smoothed value of each of its loss terms after every step.

The trainer appends loss tensors to lists, adds them to a running total without detaching, and smooths each list anew
from its beginning for the progress line: steps get longer and longer.
Truth: 400 updates, limited by Python, which goes over ever longer lists; the gain is the measured time of smoothing.
"""

import time

import torch
from torch import nn
from truth import problem, tile, write

TERMS = ("hour", "day", "week")


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(96, 384), nn.SiLU(), nn.Linear(384, 384), nn.SiLU())
        self.heads = nn.ModuleDict({name: nn.Linear(384, 8) for name in TERMS})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


class Meter:
    def __init__(self):
        self.history, self.total = {name: [] for name in TERMS}, 0.0

    def update(self, losses):
        for name, value in losses.items():
            self.history[name].append(value)
            self.total += value

    def smoothed(self, beta=0.98):
        for name, history in self.history.items():
            average = history[0]
            for value in history[1:]:
                average = beta * average + (1 - beta) * value
            yield name, average.item()


torch.manual_seed(0)
torch.set_num_threads(1)
model, meter = Forecaster(), Meter()
optimizer = torch.optim.Adam(model.parameters())
series = torch.randn(64 * 400 + 104).cumsum(0) / 50
data = fw = bw = up = log = 0
cuts = [time.monotonic_ns()]
for step in range(400):
    windows = series[64 * step :][:167].unfold(0, 104, 1)
    x, y = windows[:, :96], windows[:, 96:]
    t0 = time.monotonic_ns()
    losses = {name: nn.functional.l1_loss(p, y) for name, p in model(x).items()}
    loss = sum(losses.values())
    t1 = time.monotonic_ns()
    optimizer.zero_grad()
    t2 = time.monotonic_ns()
    loss.backward()
    t3 = time.monotonic_ns()
    optimizer.step()
    t4 = time.monotonic_ns()
    meter.update(losses)
    line = " ".join(f"{name} {value:.3f}" for name, value in meter.smoothed())
    if step % 50 == 0:
        print(f"{step}: {line} (sum {meter.total.item():.1f})")
    t5 = time.monotonic_ns()
    data, fw, bw, log = data + t0 - cuts[-1], fw + t1 - t0, bw + t3 - t2, log + t5 - t4
    up += t2 - t1 + t4 - t3
    cuts.append(t5)
write(
    tile(cuts),
    unit="optimizer update",
    limiting="python",
    limiting_also=["operators"],
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
    problem=problem("kept losses are smoothed anew", "forecaster_terms.py:Meter.smoothed", "python", wasted_ns=log),
)
