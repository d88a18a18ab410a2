"""Gradient descent written by hand, without torch.optim: autograd.grad and a loop over the parameters."""

import itertools
import os
import time

import torch


def initial(sizes):
    return [
        tensor.requires_grad_()
        for a, b in itertools.pairwise(sizes)
        for tensor in (torch.randn(a, b) / a**0.5, torch.zeros(b))
    ]


def predict(parameters, x):
    for i in range(0, len(parameters), 2):
        x = x @ parameters[i] + parameters[i + 1]
        if i + 2 < len(parameters):
            x = torch.tanh(x)
    return x


def main():
    torch.manual_seed(14)
    x = torch.linspace(-3, 3, 256).unsqueeze(1)
    y = torch.sin(2 * x) + 0.05 * torch.randn_like(x)
    parameters = initial([1, 32, 32, 1])
    velocity = [torch.zeros_like(p) for p in parameters]
    begins = []
    for step in range(120):
        begins.append(time.monotonic_ns())
        rows = torch.randint(0, 256, (32,))
        loss = ((predict(parameters, x[rows]) - y[rows]) ** 2).mean()
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, gradients, strict=True):
                v.mul_(0.9).add_(g)
                p.sub_(0.02 * v)
        if step % 25 == 0:
            print(f"step {step}: {loss.item():.4f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
