"""Every 50th step `log_metrics` writes to a slow disk (a file and 60 ms of waiting).

Truth: 200 updates of two classes; steps 49, 99, 149, 199 stand out; the gain is the measured time of these calls.
"""

import time

import torch
from torch import nn
from truth import problem, tile, write

spent = 0


def log_metrics(step, loss):
    with open("metrics.log", "a") as f:
        f.write(f"{step} {loss}\n")
    time.sleep(0.06)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(128, 600), nn.ReLU(), nn.Linear(600, 600), nn.ReLU(), nn.Linear(600, 1))
opt = torch.optim.SGD(model.parameters(), 0.01)
cuts = [time.monotonic_ns()]
for step in range(200):
    opt.zero_grad()
    loss = model(torch.randn(64, 128)).pow(2).mean()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        t = time.monotonic_ns()
        log_metrics(step, loss.item())
        spent += time.monotonic_ns() - t
    cuts.append(time.monotonic_ns())
write(
    tile(cuts, lambda i: "train+log" if i % 50 == 49 else "train"),
    unit="optimizer update",
    limiting="operators",
    outliers=dict.fromkeys((49, 99, 149, 199), "log_metrics writes to a slow disk"),
    problem=problem("logging stalls every 50th step", "log_metrics_stall.py:log_metrics", "io", wasted_ns=spent),
)
