"""Land-cover classification of satellite tiles; a DataLoader of two workers renders and augments each tile.

Truth: 75 updates in 3 epochs of 25, all of one class. `Tiles.__getitem__` (median filter, rotation, contrast in NumPy)
takes several ms a tile, so that the loop waits for its workers most of the time. Data is the limit; the gain is the measured
wait, as prepared tiles would be at hand. The first update of an epoch waits longer, as the workers start then; else waits
come in pairs, a long and a short one, as two workers are done at about the same time.
"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write


class Tiles(Dataset):
    def __init__(self, n=400, size=72):
        rng = np.random.default_rng(4)
        self.raw = rng.integers(0, 255, (n, 3, size, size), dtype=np.uint8)
        self.label = rng.integers(0, 8, n)
        for i, k in enumerate(self.label):
            self.raw[i, k % 3] //= np.uint8(1 + k // 3)

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, i):
        img = self.raw[i].astype(np.float32) / 255
        windows = np.lib.stride_tricks.sliding_window_view(img, (3, 3), axis=(1, 2))
        img = np.median(windows.reshape(*windows.shape[:3], 9), axis=-1)
        img = np.rot90(img, k=i % 4, axes=(1, 2))
        ranks = np.argsort(np.argsort(img, axis=None)).reshape(img.shape) / img.size
        img = 0.5 * img + 0.5 * ranks
        return torch.from_numpy(np.ascontiguousarray(img, dtype=np.float32)), int(self.label[i])


def build():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 8),
    )  # fmt: skip


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Tiles(), batch_size=16, shuffle=True, num_workers=2)
    model = build()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    criterion = nn.CrossEntropyLoss()
    data = fw = bw = up = 0
    cuts = [time.monotonic_ns()]
    for epoch in range(3):
        running = 0.0
        for images, labels in loader:
            a = time.monotonic_ns()
            opt.zero_grad()
            b = time.monotonic_ns()
            loss = criterion(model(images), labels)
            c = time.monotonic_ns()
            loss.backward()
            d = time.monotonic_ns()
            opt.step()
            e = time.monotonic_ns()
            running += loss.item()
            data, fw, bw, up = data + a - cuts[-1], fw + c - b, bw + d - c, up + b - a + e - d
            cuts.append(time.monotonic_ns())
        print(f"epoch {epoch} loss {running / len(loader):.3f}")
    assert len(cuts) == 76
    write(
        tile(cuts, "train"),
        unit="optimizer update",
        limiting="data",
        levels={"epoch": 3},
        phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
        outliers=dict.fromkeys((0, 25, 50), "the workers start and make their first batch"),
        problem=problem(
            "tiles are filtered and augmented slower than the model takes them",
            "satellite_tiles.py:Tiles.__getitem__",
            "data",
            wasted_ns=data,
        ),
    )


if __name__ == "__main__":
    main()
