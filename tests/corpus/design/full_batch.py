"""No loader: physics-informed fitting of an ordinary differential equation on all points at once."""

import os
import time

import torch
from torch import nn

torch.manual_seed(19)
network = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
points = torch.linspace(0, 2, 64).unsqueeze(1).requires_grad_(True)
origin = torch.zeros(1, 1, requires_grad=True)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


begins = []
step = 0
while step < 60:
    begins.append(time.monotonic_ns())
    optimizer.zero_grad()
    u = network(points)
    du = derivative(u, points)
    ddu = derivative(du, points)
    start = network(origin)
    loss = (ddu + 0.2 * du + 4 * u).square().mean() + (start - 1).square().mean()
    loss = loss + derivative(start, origin).square().mean()
    loss.backward()
    optimizer.step()
    step += 1
print(f"loss {loss.item():.4f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
