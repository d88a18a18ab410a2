"""Counts bees at a hive's entrance: a small CNN is trained on random crops of one long video, for a number of updates.

Crops come from an infinite generator, `crops`, of which the loop takes the next; flips and noise are tensor operators.
Healthy and compute-bound: convolutions. Truth: 200 updates, a line every 50; making a crop is the data phase.
"""

import time

import torch
from torch import nn
from truth import tile, write

BATCH, CROP = 32, 48


def film(frames=120, height=96, width=128):
    video = 0.3 * torch.rand(frames, 1, height, width)
    bees = (torch.rand(frames, 1, height, width) < 0.002).float()
    return video + nn.functional.max_pool2d(bees, 5, stride=1, padding=2), bees


def crops(video, bees):
    frames, _, height, width = video.shape
    while True:
        n = torch.randint(frames, (BATCH,))
        top = int(torch.randint(height - CROP, ()))
        left = int(torch.randint(width - CROP, ()))
        x = video[n, :, top : top + CROP, left : left + CROP]
        y = bees[n, :, top : top + CROP, left : left + CROP].sum((1, 2, 3))
        if torch.rand(()) < 0.5:
            x = x.flip(3)
        yield x + 0.05 * torch.randn_like(x), y


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 12 * 12, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    batches = crops(*film())
    spent = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
    cuts = [time.monotonic_ns()]
    for update in range(1, 201):
        x, y = next(batches)
        t1 = time.monotonic_ns()
        loss = nn.functional.mse_loss(net(x).squeeze(1), y)
        t2 = time.monotonic_ns()
        optimizer.zero_grad()
        t3 = time.monotonic_ns()
        loss.backward()
        t4 = time.monotonic_ns()
        optimizer.step()
        t5 = time.monotonic_ns()
        spent["data"] += t1 - cuts[-1]
        spent["forward"] += t2 - t1
        spent["backward"] += t4 - t3
        spent["optimizer"] += t3 - t2 + t5 - t4
        if update % 50 == 0:
            print(f"update {update}: squared error {loss.item():.2f}")
        cuts.append(time.monotonic_ns())
    write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=spent)


if __name__ == "__main__":
    main()
