"""The training loop of every tutorial: `zero_grad`, forward, loss, backward, `step`; all data in memory.

Healthy and compute-bound: matrix products of a wide MLP take nearly all of the time. Truth: 150 updates in 3 epochs.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write

torch.manual_seed(0)
torch.set_num_threads(1)

x_train = torch.randn(50 * 64, 256)
y_train = torch.randint(0, 10, (50 * 64,))
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

data = forward = backward = update = 0
cuts = [monotonic_ns()]
for epoch in range(3):
    order = torch.randperm(len(x_train))
    for i in range(0, len(x_train), 64):
        chosen = order[i : i + 64]
        x, y = x_train[chosen], y_train[chosen]
        t0 = monotonic_ns()
        optimizer.zero_grad()
        t1 = monotonic_ns()
        loss = criterion(model(x), y)
        t2 = monotonic_ns()
        loss.backward()
        t3 = monotonic_ns()
        optimizer.step()
        t4 = monotonic_ns()
        data += t0 - cuts[-1]
        forward += t2 - t1
        backward += t3 - t2
        update += t1 - t0 + t4 - t3
        cuts.append(monotonic_ns())
    print(f"epoch {epoch}: loss {loss.item():.4f}")

write(
    tile(cuts),
    unit="optimizer update",
    limiting="operators",
    levels={"epoch": 3},
    phases_ns={"data": data, "forward": forward, "backward": backward, "optimizer": update},
)
