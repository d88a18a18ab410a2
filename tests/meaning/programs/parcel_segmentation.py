"""Segments aerial tiles: seven batches of recent scenes from a flat file, then one of an old scene kept as bz2.

Two workers read ahead, but decompressing a scene takes far longer than the few updates that are queued.
Truth: 72 updates, limited by data; step 0 starts the workers, 7, 15, 23, ... stand out; the gain is the wait in these.
"""

import bz2
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import problem, tile, write

def prepare(folder):
    rng = np.random.default_rng(3)
    np.save(folder / "recent.npy", rng.integers(0, 255, (1008, 4, 32, 32), dtype=np.uint8))
    scene = rng.integers(0, 40, (1200, 4, 32, 32), dtype=np.uint8)
    (folder / "scene.bz2").write_bytes(bz2.compress(scene.tobytes()))


class Tiles(Dataset):
    def __init__(self, folder, batches):
        self.folder, self.batches = folder, batches
        self.recent = np.load(folder / "recent.npy", mmap_mode="r")

    def __len__(self):
        return self.batches

    def __getitem__(self, i):
        block, k = divmod(i, 8)
        if k == 7:
            raw = bz2.decompress((self.folder / "scene.bz2").read_bytes())
            x = np.frombuffer(raw, np.uint8).reshape(-1, 4, 32, 32)[block * 16 :][:16]
        else:
            x = self.recent[(block * 7 + k) * 16 :][:16]
        x = torch.from_numpy(x.astype(np.float32) / 255)
        return x[:, :3], (x[:, 3] > 0.1).float()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        net = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 1, 3, padding=1))
        opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
        sums, late = [0, 0, 0, 0], 0
        batches = iter(DataLoader(Tiles(folder, 72), batch_size=None, num_workers=2))
        cuts = [time.monotonic_ns()]
        for step in range(72):
            x, mask = next(batches)
            t1 = time.monotonic_ns()
            loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), mask)
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            opt.step()
            opt.zero_grad()
            t4 = time.monotonic_ns()
            sums = [s + t for s, t in zip(sums, (t1 - cuts[-1], t2 - t1, t3 - t2, t4 - t3))]
            late += t1 - cuts[-1] if step % 8 == 7 else 0
            cuts.append(t4)
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        phases_ns=dict(zip(("data", "forward", "backward", "optimizer"), sums)),
        problem=problem("whole scenes for a batch", "parcel_segmentation.py:Tiles.__getitem__", "data", wasted_ns=late),
        outliers={0: "workers start"} | {i: "a scene is decompressed" for i in range(7, 72, 8)},
    )


if __name__ == "__main__":
    main()
