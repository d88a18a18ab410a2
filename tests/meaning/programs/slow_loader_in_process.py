"""A dataset whose items wait 2 ms each for remote storage, read in the training process.

Truth: 40 updates of 16 items, limited by data; the whole wait is the gain, because reading could overlap.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write


class Remote(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.full((64,), float(i % 7)), i % 10


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
opt = torch.optim.SGD(model.parameters(), 0.01)
data = fw = bw = up = 0
cuts = [time.monotonic_ns()]
for x, y in DataLoader(Remote(), 16):
    a = time.monotonic_ns()
    opt.zero_grad()
    b = time.monotonic_ns()
    loss = nn.functional.cross_entropy(model(x), y)
    c = time.monotonic_ns()
    loss.backward()
    d = time.monotonic_ns()
    opt.step()
    e = time.monotonic_ns()
    data, fw, bw, up = data + a - cuts[-1], fw + c - b, bw + d - c, up + b - a + e - d
    cuts.append(e)
write(
    tile(cuts),
    unit="optimizer update",
    limiting="data",
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
    problem=problem(
        "items wait for storage one by one", "slow_loader_in_process.py:Remote.__getitem__", "data", wasted_ns=data
    ),
)
