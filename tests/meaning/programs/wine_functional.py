"""A wine-quality regression written without nn.Module: a dict of tensors, a functional forward, autograd.grad.

Truth: 300 updates (3 epochs of 100), healthy, limited by operators (matrix products). Batches come from a generator
that indexes tensors with a permutation. autograd.grad is backward, the momentum update by hand is optimizer.
"""

import time

import torch
import torch.nn.functional as F
from truth import tile, write

torch.set_num_threads(1)
torch.manual_seed(11)

WIDTH, FEATURES, BATCH, EPOCHS = 384, 64, 192, 3


def init(*sizes):
    params = {}
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        params[f"w{i}"] = torch.randn(a, b).mul_((2 / a) ** 0.5).requires_grad_()
        params[f"b{i}"] = torch.zeros(b, requires_grad=True)
    return params


def forward(params, x):
    depth = len(params) // 2
    for i in range(depth):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        if i < depth - 1:
            x = F.silu(x)
    return x.squeeze(-1)


def minibatches(x, y, size):
    order = torch.randperm(len(x))
    for start in range(0, len(x), size):
        pick = order[start : start + size]
        yield x[pick], y[pick]


x = torch.randn(BATCH * 100, FEATURES)
y = (x[:, :5].sum(1) + torch.sin(x[:, 5])) / 2
params = init(FEATURES, WIDTH, WIDTH, WIDTH, 1)
velocity = {k: torch.zeros_like(v) for k, v in params.items()}

spent = dict(data=0, forward=0, backward=0, optimizer=0)
cuts = [time.monotonic_ns()]
for epoch in range(EPOCHS):
    total = 0.0
    for xb, yb in minibatches(x, y, BATCH):
        t0 = time.monotonic_ns()
        loss = F.mse_loss(forward(params, xb), yb)
        t1 = time.monotonic_ns()
        grads = torch.autograd.grad(loss, list(params.values()))
        t2 = time.monotonic_ns()
        with torch.no_grad():
            for (k, p), g in zip(params.items(), grads):
                velocity[k].mul_(0.9).add_(g)
                p.sub_(0.002 * velocity[k])
        t3 = time.monotonic_ns()
        total += loss.item()
        spent["data"] += t0 - cuts[-1]
        spent["forward"] += t1 - t0
        spent["backward"] += t2 - t1
        spent["optimizer"] += t3 - t2
        cuts.append(time.monotonic_ns())
    print(f"epoch {epoch}: mse {total / 100:.4f}")

write(
    tile(cuts),
    unit="optimizer update",
    levels={"epoch": EPOCHS},
    limiting="operators",
    phases_ns=spent,
)
