"""Transfer learning by a small trainer: a frozen backbone gives features without gradients, a head on them is trained.

Images are flipped and jittered anew in every batch, so features cannot be kept from epoch to epoch. Healthy and
compute-bound. Truth: 120 updates in 3 epochs; the backbone runs under `torch.no_grad` and belongs to the forward.
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import tile, write


def backbone():
    layers, width = [], 3
    for out in (24, 48, 96):
        layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())


class FineTuner:
    def __init__(self, classes):
        self.backbone = backbone().eval().requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(384, 1024), nn.ReLU(), nn.Dropout(0.2), nn.Linear(1024, classes))
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-3)
        self.times = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}

    def augment(self, x):
        if torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x * (0.9 + 0.2 * torch.rand(len(x), 1, 1, 1))

    def fit(self, loader, epochs):
        cuts, times = [time.monotonic_ns()], self.times
        for epoch in range(epochs):
            for x, y in loader:
                x = self.augment(x)
                a = time.monotonic_ns()
                with torch.no_grad():
                    features = self.backbone(x)
                loss = self.loss(self.head(features), y)
                b = time.monotonic_ns()
                self.optimizer.zero_grad(set_to_none=True)
                c = time.monotonic_ns()
                loss.backward()
                d = time.monotonic_ns()
                self.optimizer.step()
                e = time.monotonic_ns()
                times["data"] += a - cuts[-1]
                times["forward"] += b - a
                times["backward"] += d - c
                times["optimizer"] += c - b + e - d
                cuts.append(e)
            print(f"epoch {epoch} loss {loss.item():.3f}")
        return cuts


torch.manual_seed(4)
torch.set_num_threads(1)
flowers = TensorDataset(torch.rand(1280, 3, 48, 48), torch.randint(0, 17, (1280,)))
tuner = FineTuner(17)
cuts = tuner.fit(DataLoader(flowers, batch_size=32, shuffle=True, drop_last=True), 3)
write(tile(cuts), unit="optimizer update", limiting="operators", levels={"epoch": 3}, phases_ns=tuner.times)
