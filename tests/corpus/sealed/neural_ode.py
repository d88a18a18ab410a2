"""A neural ODE fitted to a spiral: the forward pass integrates with steps of adaptive size, so an update takes as many
evaluations as it needs; every 15 updates the whole spiral is predicted. The step is an update.
"""

import os
import time

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for module in self.net:
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.1)
                nn.init.zeros_(module.bias)
        self.evaluations = 0

    def forward(self, t, y):
        self.evaluations += 1
        return self.net(y**3)


class Spiral(nn.Module):
    """The true dynamics."""

    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])

    def forward(self, t, y):
        return y**3 @ self.matrix


def heun_step(field, t, y, h):
    """A step of second order, and how far it is from one of first order."""
    a = field(t, y)
    b = field(t + h, y + h * a)
    return y + 0.5 * h * (a + b), (0.5 * h * (b - a)).detach().abs().max().item()


def integrate(field, y, times, tolerance=2e-3):
    found, t, h = [y], times[0].item(), 0.05
    for goal in times[1:].tolist():
        while t < goal - 1e-9:
            h = min(h, goal - t)
            following, error = heun_step(field, t, y, h)
            if error <= tolerance or h < 1e-3:
                t, y = t + h, following
            h *= min(2.0, max(0.3, 0.9 * (tolerance / (error + 1e-12)) ** 0.5))
        found.append(y)
    return torch.stack(found)


def batch_of(truth, times, starts, length):
    at = torch.randint(0, len(times) - length, (starts,))
    return truth[at, 0], times[:length], torch.stack([truth[at + i, 0] for i in range(length)])


def main():
    torch.manual_seed(56)
    times = torch.linspace(0, 6, 120)
    with torch.no_grad():
        truth = integrate(Spiral(), torch.tensor([[2.0, 0.0]]), times, tolerance=1e-4)
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=5e-3)
    begins = []
    for update in range(1, 61):
        begins.append(time.monotonic_ns())
        start, when, goal = batch_of(truth, times, starts=20, length=8)
        field.evaluations = 0
        loss = (integrate(field, start, when) - goal).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 15 == 0:
            needed = field.evaluations
            with torch.no_grad():
                error = (integrate(field, truth[0], times[:60], tolerance=1e-2) - truth[:60]).abs().mean()
            print(f"update {update}: loss {loss.item():.4f}, {needed} evaluations, whole spiral {error:.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
