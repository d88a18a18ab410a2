"""Three epochs of training with a validation pass after each, through a second DataLoader and `model.eval()`.

Healthy and compute-bound. Truth: 60 updates of class train and 3 validation passes beside them, about a fifth of the time.
"""

from time import monotonic_ns

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import write

torch.manual_seed(0)
torch.set_num_threads(1)
full = TensorDataset(torch.randn(2560 + 1920, 100), torch.randint(0, 20, (2560 + 1920,)))
train_set, val_set = torch.utils.data.random_split(full, [2560, 1920])
train_loader = DataLoader(train_set, batch_size=128, shuffle=True)
val_loader = DataLoader(val_set, batch_size=128)
model = nn.Sequential(nn.Linear(100, 1400), nn.ReLU(), nn.Linear(1400, 1400), nn.ReLU(), nn.Linear(1400, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


@torch.no_grad()
def evaluate():
    model.eval()
    correct = 0
    for xb, yb in val_loader:
        correct += (model(xb).argmax(1) == yb).sum().item()
    model.train()
    return correct / len(val_set)


steps = []
data = fw = bw = up = val = 0
last = monotonic_ns()
for epoch in range(3):
    for xb, yb in train_loader:
        a = monotonic_ns()
        optimizer.zero_grad()
        b = monotonic_ns()
        loss = F.cross_entropy(model(xb), yb)
        c = monotonic_ns()
        loss.backward()
        d = monotonic_ns()
        optimizer.step()
        e = monotonic_ns()
        data, fw, bw, up = data + a - last, fw + c - b, bw + d - c, up + b - a + e - d
        steps.append((last, e, "train"))
        last = e
    accuracy = evaluate()
    print(f"epoch {epoch} accuracy {accuracy:.3f}")
    now = monotonic_ns()
    val += now - last
    steps.append((last, now, "validation"))
    last = now

write(
    steps,
    unit="optimizer update",
    limiting="operators",
    beside=["validation"],
    levels={"epoch": 3, "validation batch": 45},
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up, "validation": val},
)
