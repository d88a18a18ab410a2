"""Fits a sine with LBFGS: `optimizer.step(closure)` calls forward and backward many times inside one update.

Healthy and compute-bound. A step is one `optimizer.step(closure)`; closure evaluations are the inner level (max_iter 10).
Forward and backward are summed over evaluations; optimizer is the rest of `step`, the two-loop recursion.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write

torch.manual_seed(0)
torch.set_num_threads(1)
t = torch.linspace(0, 12, 3000).unsqueeze(1)
target = torch.sin(t) + 0.1 * torch.sin(5 * t)
net = nn.Sequential(nn.Linear(1, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
optimizer = torch.optim.LBFGS(
    net.parameters(), lr=0.5, max_iter=10, history_size=10, tolerance_grad=0, tolerance_change=0
)
seen = {"forward": 0, "backward": 0, "evaluations": 0}


def closure():
    optimizer.zero_grad()
    a = monotonic_ns()
    loss = (net(t) - target).pow(2).mean()
    b = monotonic_ns()
    loss.backward()
    c = monotonic_ns()
    seen["forward"] += b - a
    seen["backward"] += c - b
    seen["evaluations"] += 1
    return loss


cuts = [monotonic_ns()]
inside = 0
for it in range(20):
    start = monotonic_ns()
    loss = optimizer.step(closure)
    inside += monotonic_ns() - start
    if it % 5 == 0:
        print(it, loss.item())
    cuts.append(monotonic_ns())

write(
    tile(cuts),
    unit="optimizer update",
    limiting="operators",
    levels={"closure evaluation": seen["evaluations"]},
    phases_ns={
        "forward": seen["forward"],
        "backward": seen["backward"],
        "optimizer": inside - seen["forward"] - seen["backward"],
    },
)
