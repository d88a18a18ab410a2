"""Training that saves model and optimizer every 20th step, as long runs must.

Healthy: saving costs a few percent of the loop. Truth: 100 steps of two classes, 95 train and 5 train+checkpoint.
"""

import time

import torch
from torch import nn
from truth import tile, write

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 800), nn.ReLU(), nn.Linear(800, 800), nn.ReLU(), nn.Linear(800, 30))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
spent = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "checkpoint": 0}
classes = []
cuts = [time.monotonic_ns()]
for step in range(1, 101):
    x, y = torch.randn(128, 256), torch.randint(0, 30, (128,))
    a = time.monotonic_ns()
    optimizer.zero_grad()
    b = time.monotonic_ns()
    loss = loss_fn(model(x), y)
    c = time.monotonic_ns()
    loss.backward()
    d = time.monotonic_ns()
    optimizer.step()
    e = time.monotonic_ns()
    if step % 20 == 0:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"ckpt_{step}.pt")
        spent["checkpoint"] += time.monotonic_ns() - e
    spent["data"] += a - cuts[-1]
    spent["forward"] += c - b
    spent["backward"] += d - c
    spent["optimizer"] += b - a + e - d
    classes.append("train+checkpoint" if step % 20 == 0 else "train")
    cuts.append(time.monotonic_ns())
write(tile(cuts, classes), unit="optimizer update", limiting="operators", phases_ns=spent)
