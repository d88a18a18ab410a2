"""Trains a keyword spotter on short clips that a DataLoader with two workers fetches from a bucket.

Every clip costs its worker 6 ms of waiting for the bucket, so a batch of 16 takes 100 ms, two workers deliver one
every 50 ms, and the update needs about a fifth of that.
Truth: 70 updates, limited by data; what the loop waits after the first batch is the gain: more workers would hide it.
"""

import time
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write


class SpeechCommands(Dataset):
    def __init__(self, n, blobs):
        self.n, self.blobs = n, blobs

    def __len__(self):
        return self.n

    def fetch(self, key):
        time.sleep(0.006)  # the bucket's round trip
        return self.blobs[key % len(self.blobs)]

    def __getitem__(self, i):
        wave = np.frombuffer(zlib.decompress(self.fetch(i)), dtype=np.int16)
        return torch.from_numpy(wave.astype(np.float32) / 32768).view(1, -1), i % 12


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    clips = [(rng.normal(0, 900, 4000) // 64 * 64).astype(np.int16) for _ in range(20)]
    data = SpeechCommands(1120, [zlib.compress(c.tobytes()) for c in clips])
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2)
    net = nn.Sequential(
        nn.Conv1d(1, 24, 80, stride=16), nn.BatchNorm1d(24), nn.ReLU(),
        nn.Conv1d(24, 48, 3), nn.BatchNorm1d(48), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 12),
    )  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    waits, fw, bw, up = [], 0, 0, 0
    cuts = [time.monotonic_ns()]
    for i, (x, y) in enumerate(loader):
        a = time.monotonic_ns()
        loss = F.cross_entropy(net(x), y)
        b = time.monotonic_ns()
        opt.zero_grad()
        c = time.monotonic_ns()
        loss.backward()
        d = time.monotonic_ns()
        opt.step()
        e = time.monotonic_ns()
        if i % 20 == 0:
            print(f"step {i} loss {loss.item():.3f}")
        waits.append(a - cuts[-1])
        fw, bw, up = fw + b - a, bw + d - c, up + c - b + e - d
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        levels={"epoch": 1},
        phases_ns={"data": sum(waits), "forward": fw, "backward": bw, "optimizer": up},
        problem=problem(
            "too few workers", "keyword_spotting.py:SpeechCommands.__getitem__", "data", wasted_ns=sum(waits[1:])
        ),
        outliers={0: "workers start and fetch the first batch"},
    )


if __name__ == "__main__":
    main()
