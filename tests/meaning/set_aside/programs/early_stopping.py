"""Many epochs of only five updates each, with a validation batch after every epoch and patience for early stopping.

Healthy and compute-bound. Truth: the loop ends by itself after 20 epochs (the schedule of losses is fixed): 100 updates.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import write


class Stopper:
    def __init__(self, patience):
        self.best, self.bad, self.patience = float("inf"), 0, patience

    def stop(self, loss):
        if loss < self.best:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(5 * 96, 300), torch.randn(5 * 96, 1)
xv, yv = torch.randn(96, 300), torch.randn(96, 1)
net = nn.Sequential(nn.Linear(300, 1000), nn.ELU(), nn.Linear(1000, 1000), nn.ELU(), nn.Linear(1000, 1))
opt = torch.optim.Adam(net.parameters())
stopper = Stopper(patience=5)
steps, parts = [], {"forward": 0, "backward": 0, "optimizer": 0, "validation": 0}
mark = monotonic_ns()
epochs = 0
while True:
    for xb, yb in zip(x.split(96), y.split(96), strict=True):
        t0 = monotonic_ns()
        loss = nn.functional.mse_loss(net(xb), yb)
        t1 = monotonic_ns()
        opt.zero_grad()
        t2 = monotonic_ns()
        loss.backward()
        t3 = monotonic_ns()
        opt.step()
        t4 = monotonic_ns()
        parts["forward"] += t1 - t0
        parts["backward"] += t3 - t2
        parts["optimizer"] += t2 - t1 + t4 - t3
        steps.append((mark, t4, "train"))
        mark = t4
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(net(xv), yv).item()
    epochs += 1
    scheduled = max(0.0, 15 - epochs) + 0.0 * val_loss  # what the paper's data would give
    end = monotonic_ns()
    steps.append((mark, end, "validation"))
    parts["validation"] += end - mark
    mark = end
    if stopper.stop(scheduled):
        break
print("stopped after", epochs)
write(
    steps,
    unit="optimizer update",
    limiting="operators",
    beside=["validation"],
    levels={"epoch": epochs},
    phases_ns=parts,
)
