"""Names plants on herbarium sheets: a residual CNN goes through a memory-mapped array of pictures and writes a CSV file.

Truth: 90 batches, healthy, limited by operators: the network. Taking a batch out of the file and scaling it is little, so is writing.
"""

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from truth import tile, write


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return torch.relu(x + self.body(x))


def network(species):
    return nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2), nn.ReLU(), Block(24),
        nn.Conv2d(24, 48, 3, stride=2, padding=1), nn.ReLU(), Block(48), Block(48),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, species),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sheets", type=int, default=1080)
    parser.add_argument("--batch", type=int, default=12)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "sheets.npy"), np.random.default_rng(1).integers(0, 256, (args.sheets, 3, 64, 64), np.uint8))
        sheets = np.load(Path(folder, "sheets.npy"), mmap_mode="r")
        model = network(200).eval()
        mean = torch.tensor([0.48, 0.45, 0.40]).view(3, 1, 1)

        data = forward = writing = 0
        with open(Path(folder, "names.csv"), "w", newline="") as file, torch.inference_mode():
            out = csv.writer(file)
            out.writerow(["sheet", "first", "second", "third", "certainty"])
            cuts = [time.monotonic_ns()]
            for begin in range(0, len(sheets), args.batch):
                pictures = torch.from_numpy(np.array(sheets[begin : begin + args.batch])).float().div_(255).sub_(mean)
                t0 = time.monotonic_ns()
                probabilities = model(pictures).softmax(1)
                t1 = time.monotonic_ns()
                values, species = probabilities.topk(3)
                for i, (names, sure) in enumerate(zip(species.tolist(), values[:, 0].tolist(), strict=True)):
                    out.writerow([begin + i, *names, f"{sure:.4f}"])
                t2 = time.monotonic_ns()
                data += t0 - cuts[-1]
                forward += t1 - t0
                writing += t2 - t1
                cuts.append(time.monotonic_ns())
    print(f"{args.sheets} sheets, {writing / 1e6:.0f} ms for writing")
    write(
        tile(cuts, "batch"),
        unit="batch",
        limiting="operators",
        phases_ns={"data": data, "forward": forward},
    )


if __name__ == "__main__":
    main()
