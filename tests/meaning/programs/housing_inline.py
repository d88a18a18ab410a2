"""Tabular regression written in one piece: batches are sliced from tensors by hand, no DataLoader anywhere.

After every 50 updates the validation rows are scored in slices under `torch.no_grad`, right in the loop. Healthy and
compute-bound. Truth: 250 updates of class train and 5 validations beside them.
"""

import time

import torch
import torch.nn.functional as F
from truth import write

torch.manual_seed(7)
torch.set_num_threads(1)

rows, columns, batch = 12_000, 40, 192
x = torch.randn(rows, columns)
y = (x[:, :5] ** 2).sum(1, keepdim=True) + torch.sin(3 * x[:, 5:6]) + 0.1 * torch.randn(rows, 1)
x_train, y_train, x_val, y_val = x[:10_000], y[:10_000], x[10_000:], y[10_000:]

model = torch.nn.Sequential(
    torch.nn.Linear(columns, 1024),
    torch.nn.GELU(),
    torch.nn.Linear(1024, 1024),
    torch.nn.GELU(),
    torch.nn.Linear(1024, 1),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
order, place = torch.randperm(len(x_train)), 0
best = float("inf")
steps = []
data = forward = backward = update = validation = 0
last = time.monotonic_ns()

for step in range(1, 251):
    if place + batch > len(order):
        order, place = torch.randperm(len(x_train)), 0
    rows_now = order[place : place + batch]
    xb, yb = x_train[rows_now], y_train[rows_now]
    place += batch
    t1 = time.monotonic_ns()
    loss = F.smooth_l1_loss(model(xb), yb)
    t2 = time.monotonic_ns()
    optimizer.zero_grad()
    t3 = time.monotonic_ns()
    loss.backward()
    t4 = time.monotonic_ns()
    optimizer.step()
    t5 = time.monotonic_ns()
    data += t1 - last
    forward += t2 - t1
    backward += t4 - t3
    update += t3 - t2 + t5 - t4
    steps.append((last, t5, "train"))
    last = t5

    if step % 50 == 0:
        total = 0.0
        with torch.no_grad():
            for i in range(0, len(x_val), 500):
                total += F.mse_loss(model(x_val[i : i + 500]), y_val[i : i + 500], reduction="sum").item()
        best = min(best, total / len(x_val))
        print(f"step {step}: validation error {total / len(x_val):.4f}, best {best:.4f}")
        now = time.monotonic_ns()
        validation += now - last
        steps.append((last, now, "validation"))
        last = now

write(
    steps,
    unit="optimizer update",
    limiting="operators",
    beside=["validation"],
    levels={"validation batch": 20},
    phases_ns=dict(data=data, forward=forward, backward=backward, optimizer=update, validation=validation),
)
