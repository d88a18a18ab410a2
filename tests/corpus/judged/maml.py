"""MAML: every meta-step adapts a copy of the weights to four tasks by two inner gradient steps, then updates once."""

import math
import os
import time

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(31)


def task():
    amplitude, phase = 0.1 + 4.9 * torch.rand(1), math.pi * torch.rand(1)

    def sample(k):
        x = 10 * torch.rand(k, 1) - 5
        return x, amplitude * torch.sin(x + phase)

    return sample


def adapt(model, weights, x, y, steps=2, rate=0.01):
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(model, weights, x), y)
        gradients = torch.autograd.grad(loss, weights.values(), create_graph=True)
        weights = {name: w - rate * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
    return weights


def main():
    model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    meta = torch.optim.Adam(model.parameters(), lr=1e-3)
    begins = []
    for iteration in range(40):
        begins.append(time.monotonic_ns())
        meta.zero_grad()
        total = 0.0
        for _ in range(4):
            sample = task()
            adapted = adapt(model, dict(model.named_parameters()), *sample(10))
            x, y = sample(10)
            loss = nn.functional.mse_loss(functional_call(model, adapted, x), y) / 4
            loss.backward()
            total += loss.item()
        meta.step()
        if iteration % 10 == 0:
            print(f"{iteration}: {total:.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
