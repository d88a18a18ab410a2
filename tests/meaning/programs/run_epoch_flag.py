"""One function `run_epoch(loader, train)` serves training and validation, and both go over the same kind of loader.

Healthy and compute-bound. Truth: 4 epochs of 12 updates, and 4 validation passes of 6 batches each, which are no updates.
"""

import time
from contextlib import nullcontext

import torch
from torch import nn
from truth import write

torch.manual_seed(5)
torch.set_num_threads(1)
net = nn.GRU(32, 192, batch_first=True)
head = nn.Linear(192, 4)
params = [*net.parameters(), *head.parameters()]
opt = torch.optim.Adam(params)
steps = []
phases = {"forward": 0, "backward": 0, "optimizer": 0, "validation": 0}


def make_loader(count):
    return [(torch.randn(24, 30, 32), torch.randint(0, 4, (24,))) for _ in range(count)]


def run_epoch(loader, train):
    began = steps[-1][1] if steps else time.monotonic_ns()
    total = 0.0
    for xs, ys in loader:
        t0 = time.monotonic_ns()
        with nullcontext() if train else torch.no_grad():
            states, _ = net(xs)
            loss = nn.functional.cross_entropy(head(states[:, -1]), ys)
        t1 = time.monotonic_ns()
        if train:
            opt.zero_grad()
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            opt.step()
            t4 = time.monotonic_ns()
            phases["forward"] += t1 - t0
            phases["backward"] += t3 - t2
            phases["optimizer"] += t2 - t1 + t4 - t3
            total += loss.item()
            end = time.monotonic_ns()
            steps.append((began, end, "train"))
            began = end
        else:
            total += loss.item()
    if not train:
        end = time.monotonic_ns()
        phases["validation"] += end - began
        steps.append((began, end, "validation"))
    return total / len(loader)


train_data, val_data = make_loader(12), make_loader(6)
for epoch in range(4):
    print(epoch, run_epoch(train_data, True), run_epoch(val_data, False))
write(
    steps,
    unit="optimizer update",
    limiting="operators",
    beside=["validation"],
    levels={"epoch": 4, "validation batch": 24},
    phases_ns=phases,
)
