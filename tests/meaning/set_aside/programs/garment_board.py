"""Classifies garments with a small CNN; every 10th step goes to a board, every 25th saves a checkpoint.

The board gets the mean step time, the loss, and histograms of all weights and gradients. Planted: `Board.histogram`
counts values one by one in Python, so every 10th step stalls. Truth: 250 updates of four classes: 220 plain, 20 with
the board, 5 with a checkpoint, 5 with both. Most time still goes to operators; the gain is the measured time of
`Board.histogram`. Steps 9, 19, 29, ... stand out; checkpoints are small and healthy.
"""

import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import problem, tile, write

UPDATES, LOG_EVERY, SAVE_EVERY = 250, 10, 25


class Board:
    def __init__(self):
        self.scalars, self.histograms = [], []
        self.spent = 0

    def scalar(self, name, value, step):
        self.scalars.append((step, name, value))

    def histogram(self, name, values, step, bins=64):
        began = time.monotonic_ns()
        values = values.flatten().tolist()
        low, high = min(values), max(values)
        scale = (bins - 1) / (high - low + 1e-12)
        counts = [0] * bins
        for value in values:
            counts[int((value - low) * scale)] += 1
        self.histograms.append((step, name, low, high, counts))
        self.spent += time.monotonic_ns() - began


def log(board, model, loss, durations, step):
    board.scalar("step ms", statistics.mean(durations[-LOG_EVERY:]) / 1e6, step)
    board.scalar("loss", loss, step)
    for name, parameter in model.named_parameters():
        board.histogram(name, parameter.detach(), step)
        board.histogram(f"{name}.grad", parameter.grad, step)


def kind(index):
    logs, saves = (index + 1) % LOG_EVERY == 0, (index + 1) % SAVE_EVERY == 0
    return "train" + logs * "+board" + saves * "+checkpoint"


torch.manual_seed(2)
torch.set_num_threads(1)
folder = Path(tempfile.mkdtemp())
loader = DataLoader(TensorDataset(torch.randn(1600, 1, 28, 28), torch.randint(0, 10, (1600,))), 32, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(24, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 7 * 7, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
board = Board()
phases = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "checkpoint": 0}
durations = []
cuts = [time.monotonic_ns()]
step = 0
while step < UPDATES:
    for images, labels in loader:
        t0 = time.monotonic_ns()
        opt.zero_grad()
        t1 = time.monotonic_ns()
        loss = nn.functional.cross_entropy(model(images), labels)
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        opt.step()
        t4 = time.monotonic_ns()
        for name, ns in (("data", t0 - cuts[-1]), ("forward", t2 - t1), ("backward", t3 - t2)):
            phases[name] += ns
        phases["optimizer"] += t1 - t0 + t4 - t3
        durations.append(t4 - cuts[-1])
        step += 1
        if step % LOG_EVERY == 0:
            log(board, model, loss.item(), durations, step)
        if step % SAVE_EVERY == 0:
            t5 = time.monotonic_ns()
            torch.save({"step": step, "model": model.state_dict(), "optimizer": opt.state_dict()}, folder / "last.pt")
            phases["checkpoint"] += time.monotonic_ns() - t5
        cuts.append(time.monotonic_ns())
print(f"loss {board.scalars[-1][2]:.3f}, {len(board.histograms)} histograms")
write(
    tile(cuts, kind),
    unit="optimizer update",
    limiting="operators",
    phases_ns=phases,
    problem=problem(
        "histograms of weights and gradients are counted value by value in Python",
        "garment_board.py:Board.histogram",
        "python",
        wasted_ns=board.spent,
    ),
    outliers={index: "histograms in Python" for index in range(LOG_EVERY - 1, UPDATES, LOG_EVERY)},
)
