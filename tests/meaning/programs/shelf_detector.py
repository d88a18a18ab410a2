"""Counts goods on photographs of shelves: a small detector scores batches of four from a DataLoader, then boxes that
overlap better ones are dropped.

Planted: `suppress` compares boxes one by one in Python, which takes most of a batch. Truth: 40 batches of 4
photographs, no training; limited by Python, in `suppress` (or `overlap`, which it calls); the gain is measured
against the same by torch on a matrix of overlaps, after the loop.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write

STRIDE, SIDE = 8, 160


class Photographs(Dataset):
    def __init__(self, count):
        self.count = count
        self.shelf = torch.rand(3, SIDE, 2 * SIDE, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        shift = index * 7 % SIDE
        return self.shelf[:, :, shift : shift + SIDE] + 0.001 * index, f"shelf{index:03d}.jpg"


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 24, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(48, 96, 3, 2, 1),
            nn.ReLU(),
        )
        self.head = nn.Conv2d(96, 5, 1)
        ys, xs = torch.meshgrid(torch.arange(SIDE // STRIDE), torch.arange(SIDE // STRIDE), indexing="ij")
        self.register_buffer("centres", (torch.stack([xs, ys]).flatten(1).T + 0.5) * STRIDE)

    def forward(self, images):
        raw = self.head(self.body(images)).flatten(2).transpose(1, 2)
        centres = self.centres + STRIDE * torch.tanh(4 * raw[..., :2])
        halves = 7 + 3 * torch.tanh(4 * raw[..., 2:4])
        return torch.cat([centres - halves, centres + halves], dim=-1), raw[..., 4].sigmoid()


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def suppress(boxes, scores, limit=0.5):
    boxes = boxes.tolist()
    kept = []
    for index in scores.argsort(descending=True).tolist():
        if all(overlap(boxes[index], boxes[other]) <= limit for other in kept):
            kept.append(index)
    return kept


def suppress_by_matrix(boxes, scores, limit=0.5):
    area = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    both = (torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - low).clamp(min=0).prod(dim=2)
    worse = both / (area[:, None] + area[None] - both) > limit
    dropped = torch.zeros(len(boxes), dtype=torch.bool)
    kept = []
    for index in scores.argsort(descending=True).tolist():
        if not dropped[index]:
            kept.append(index)
            dropped |= worse[index]
    return kept


@torch.no_grad()
def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    model = Detector().eval()
    goods = {}
    phases = {"data": 0, "forward": 0, "suppression": 0}
    cuts = [time.monotonic_ns()]
    for images, names in DataLoader(Photographs(160), batch_size=4):
        t0 = time.monotonic_ns()
        boxes, scores = model(images)
        t1 = time.monotonic_ns()
        for name, b, s in zip(names, boxes, scores):
            goods[name] = len(suppress(b, s))
        t2 = time.monotonic_ns()
        phases["data"] += t0 - cuts[-1]
        phases["forward"] += t1 - t0
        phases["suppression"] += t2 - t1
        cuts.append(time.monotonic_ns())
    print(f"{sum(goods.values())} goods on {len(goods)} photographs")
    t = time.monotonic_ns()
    for b, s in zip(boxes, scores):
        suppress_by_matrix(b, s)
    better = (time.monotonic_ns() - t) * (len(cuts) - 1)
    write(
        tile(cuts, "batch"),
        unit="batch",
        limiting="python",
        phases_ns=phases,
        problem=problem(
            "overlapping boxes are found pair by pair in Python",
            "shelf_detector.py:suppress",
            "python",
            wasted_ns=phases["suppression"] - better,
        ),
    )


if __name__ == "__main__":
    main()
