"""Depth of glaciers from four-band tiles: a small U-shaped CNN; batches are indexed from one tensor and augmented with operators.

Truth: 108 updates (3 epochs of 36), 3 validation passes beside. Healthy: convolutions take nearly all of the time, flips,
turns and noise about a tenth. Limited by operators.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import write

torch.set_num_threads(1)
torch.manual_seed(3)

BATCH = 24


class DepthNet(nn.Module):
    def __init__(self, width=14):
        super().__init__()
        self.down1 = nn.Conv2d(4, width, 3, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.middle(F.relu(self.down2(a))))
        return self.out(torch.cat([a, self.up(b)], 1)).squeeze(1)


def augment(tiles, depth):
    if torch.rand(()) < 0.5:
        tiles, depth = tiles.flip(-1), depth.flip(-1)
    turns = int(torch.randint(0, 4, ()))
    tiles, depth = tiles.rot90(turns, (-2, -1)), depth.rot90(turns, (-2, -1))
    gain = 1 + 0.1 * torch.randn(len(tiles), 4, 1, 1)
    return tiles * gain + 0.02 * torch.randn_like(tiles), depth


tiles = torch.rand(912, 4, 36, 36)
depth = (tiles * torch.tensor([0.5, -0.2, 0.9, 0.1]).view(1, 4, 1, 1)).sum(1)
train, valid = torch.arange(864), torch.arange(864, 912)

net = DepthNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
data = forward = backward = update = validation = 0
steps = []
mark = time.monotonic_ns()
for epoch in range(3):
    net.train()
    total = 0.0
    for picks in train[torch.randperm(len(train))].split(BATCH):
        x, y = augment(tiles[picks], depth[picks])
        t0 = time.monotonic_ns()
        optimizer.zero_grad()
        t1 = time.monotonic_ns()
        loss = F.l1_loss(net(x), y)
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        optimizer.step()
        t4 = time.monotonic_ns()
        total += loss.item()
        data += t0 - mark
        forward += t2 - t1
        backward += t3 - t2
        update += t1 - t0 + t4 - t3
        now = time.monotonic_ns()
        steps.append((mark, now, "train"))
        mark = now

    net.eval()
    with torch.no_grad():
        error = F.l1_loss(net(tiles[valid]), depth[valid]).item()
    print(f"epoch {epoch}: train {total / 36:.4f}, valid {error:.4f}")
    now = time.monotonic_ns()
    validation += now - mark
    steps.append((mark, now, "validation"))
    mark = now

write(
    steps,
    unit="optimizer update",
    beside=["validation"],
    levels={"epoch": 3},
    limiting="operators",
    phases_ns={"data": data, "forward": forward, "backward": backward, "optimizer": update, "validation": validation},
)
