"""LayerDrop: each of eight layers is skipped with a probability of 30 %, so hardly two steps run the same operators."""

import os
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(16)
        for _ in range(60 * 8):
            x = torch.randn(24, generator=generator)
            yield x, x.cumsum(0)


class Stack(nn.Module):
    def __init__(self, depth=8, drop=0.3):
        super().__init__()
        self.drop = drop
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 24), nn.ReLU()) for _ in range(depth))
        self.out = nn.Linear(24, 24)

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.drop:
                continue
            x = x + layer(x)
        return self.out(x)


random.seed(16)
torch.manual_seed(16)
model = Stack()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
begins = []
for step, (x, y) in enumerate(DataLoader(Stream(), batch_size=8)):
    begins.append(time.monotonic_ns())
    loss = (model(x) - y).abs().mean()
    model.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 7 == 0:
        print(f"{step:3d} {loss.item():.3f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
