"""A two-tower recommender with dense embedding tables; every 25th update leaves a checkpoint that is safe on disk.

Truth: 150 updates of two classes; 24, 49, ... 149 stand out, and 0, which makes the momentum buffers. `save_state` writes tens of MB, with flush and fsync, while
training waits; the gain is its measured time. The limit is operators, or io where the disk takes more than half.
"""

import os
import tempfile
import time

import torch
from torch import nn
from truth import problem, tile, write

USERS, ITEMS, DIM = 50_000, 30_000, 64


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, DIM)
        self.items = nn.Embedding(ITEMS, DIM)
        self.user_net = nn.Sequential(nn.Linear(DIM, 256), nn.ReLU(), nn.Linear(256, DIM))
        self.item_net = nn.Sequential(nn.Linear(DIM, 256), nn.ReLU(), nn.Linear(256, DIM))

    def forward(self, u, i):
        a = nn.functional.normalize(self.user_net(self.users(u)), dim=1)
        b = nn.functional.normalize(self.item_net(self.items(i)), dim=1)
        return a @ b.T / 0.1


def save_state(folder, step, model, optimizer):
    path = os.path.join(folder, "last.pt")
    with open(path + ".tmp", "wb") as f:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def train(folder, steps=150, batch=512):
    model = TwoTower()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    target = torch.arange(batch)
    t = dict.fromkeys(("data", "forward", "backward", "optimizer", "checkpoint"), 0)
    now = time.monotonic_ns
    cuts = [now()]
    for step in range(steps):
        u = torch.randint(0, USERS, (batch,))
        i = (u * 7 + torch.randint(0, 50, (batch,))) % ITEMS
        a = now()
        loss = nn.functional.cross_entropy(model(u, i), target)
        b = now()
        optimizer.zero_grad()
        c = now()
        loss.backward()
        d = now()
        optimizer.step()
        e = now()
        if (step + 1) % 25 == 0:
            s = now()
            save_state(folder, step, model, optimizer)
            t["checkpoint"] += now() - s
            print(f"step {step + 1} loss {loss.item():.3f} saved", flush=True)
        t["data"] += a - cuts[-1]
        t["forward"] += b - a
        t["backward"] += d - c
        t["optimizer"] += c - b + e - d
        cuts.append(now())
    return cuts, t


torch.set_num_threads(1)
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    cuts, t = train(folder)
    assert os.path.getsize(os.path.join(folder, "last.pt")) > 20e6
share = t["checkpoint"] / (cuts[-1] - cuts[0])
write(
    tile(cuts, lambda k: "train+checkpoint" if k % 25 == 24 else "train"),
    unit="optimizer update",
    limiting="io" if share > 0.5 else "operators",
    limiting_also=(["operators"] if share > 0.5 else ["io"]) if 0.35 < share < 0.65 else [],
    phases_ns=t,
    outliers={0: "momentum buffers are made"} | dict.fromkeys(range(24, 150, 25), "a checkpoint is written and synced"),
    problem=problem(
        "checkpoints are written and synced while training waits",
        "two_tower_recsys.py:save_state",
        "io",
        wasted_ns=t["checkpoint"],
    ),
)
