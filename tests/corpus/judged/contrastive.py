"""Contrastive learning: two noisy views of a batch go through one encoder; a moving average of it is kept."""

import copy
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)


class Pairs(Dataset):
    def __len__(self):
        return 700

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        base = torch.randn(3, 8, 8, generator=generator)
        return base + 0.1 * torch.randn(3, 8, 8), base.flip(-1) + 0.1 * torch.randn(3, 8, 8)


def encoder():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(128, 16))


def contrast(a, b):
    a, b = nn.functional.normalize(a), nn.functional.normalize(b)
    return nn.functional.cross_entropy(a @ b.T / 0.2, torch.arange(len(a)))


@torch.no_grad()
def follow(slow, fast):
    for p, q in zip(slow.parameters(), fast.parameters(), strict=True):
        p.lerp_(q, 0.05)


begins = []
fast = encoder()
slow = copy.deepcopy(fast)
optimizer = torch.optim.AdamW(fast.parameters())
for epoch in range(2):
    for left, right in DataLoader(Pairs(), batch_size=14, drop_last=True):
        begins.append(time.monotonic_ns())
        with torch.no_grad():
            target = slow(right)
        loss = contrast(fast(left), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        follow(slow, fast)
    print(epoch, loss.item())

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
