"""Model-agnostic meta-learning with `torch.func.functional_call` and `autograd.grad(create_graph=True)`.

Healthy: second-order gradients of a batch of tasks. A step is one meta-update: 25, with 4 tasks of 3 inner steps each.
Forward is the adaptation of all tasks (with their inner gradients), backward the meta-gradient.
"""

from time import monotonic_ns

import torch
from torch import nn
from torch.func import functional_call
from truth import tile, write


def sample_task(points=256):
    amplitude, shift = 0.1 + 4.9 * torch.rand(1), 3.14 * torch.rand(1)
    x = 10 * torch.rand(points, 1) - 5
    return x, amplitude * torch.sin(x + shift)


def adapt(net, params, x, y, inner_steps=3, lr=0.01):
    for _ in range(inner_steps):
        loss = nn.functional.mse_loss(functional_call(net, params, x), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - lr * g for (name, p), g in zip(params.items(), grads, strict=True)}
    return params


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    meta = torch.optim.Adam(net.parameters(), 1e-3)
    fw = bw = up = 0
    cuts = [monotonic_ns()]
    for _ in range(25):
        t0 = monotonic_ns()
        meta_loss = 0.0
        for _ in range(4):
            x, y = sample_task()
            adapted = adapt(net, dict(net.named_parameters()), x, y)
            xq, yq = sample_task()
            meta_loss = meta_loss + nn.functional.mse_loss(functional_call(net, adapted, xq), yq) / 4
        t1 = monotonic_ns()
        meta.zero_grad()
        t2 = monotonic_ns()
        meta_loss.backward()
        t3 = monotonic_ns()
        meta.step()
        t4 = monotonic_ns()
        fw, bw, up = fw + t1 - t0, bw + t3 - t2, up + t2 - t1 + t4 - t3
        cuts.append(monotonic_ns())
    print("meta loss", meta_loss.item())
    write(
        tile(cuts),
        unit="meta update",
        limiting="operators",
        levels={"task": 100, "inner step": 300},
        phases_ns={"forward": fw, "backward": bw, "optimizer": up},
    )


if __name__ == "__main__":
    main()
