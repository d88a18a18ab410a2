"""Trains a residual MLP on sensor windows; two persistent workers cut and normalise the windows, over three epochs.

Healthy and compute-bound: a batch costs a worker a few milliseconds and the update ten times as long.
Truth: 75 updates in 3 epochs, limited by operators; the very first batch waits for the workers to start.
"""

from time import monotonic_ns

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import tile, write


class Windows(Dataset):
    def __init__(self, signal, length=129):
        self.signal, self.length = signal, length

    def __len__(self):
        return 3200

    def __getitem__(self, i):
        window = self.signal[i * 20 : i * 20 + self.length]
        window = ((window - window.mean()) / (window.std() + 1e-6)).astype(np.float32)
        return window[:-1], window[-1]


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.a, self.b = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(torch.nn.functional.gelu(self.a(self.norm(x))))


class Clock:
    def __init__(self):
        self.cuts, self.sums = [monotonic_ns()], {}
        self.last = self.cuts[0]

    def lap(self, name):
        now = monotonic_ns()
        self.sums[name] = self.sums.get(name, 0) + now - self.last
        self.last = now


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    signal = np.cumsum(np.random.default_rng(1).normal(size=65000))
    loader = DataLoader(Windows(signal), batch_size=128, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(128, 512), *[Block(512) for _ in range(4)], nn.Linear(512, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    clock = Clock()
    for epoch in range(3):
        for x, y in loader:
            clock.lap("data")
            opt.zero_grad()
            clock.lap("optimizer")
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            clock.lap("forward")
            loss.backward()
            clock.lap("backward")
            opt.step()
            clock.lap("optimizer")
            clock.cuts.append(clock.last)
        print(f"epoch {epoch}: {loss.item():.4f}")
    more = {"levels": {"epoch": 3}, "phases_ns": clock.sums, "outliers": {0: "workers start"}}
    write(tile(clock.cuts), unit="optimizer update", limiting="operators", **more)


if __name__ == "__main__":
    main()
