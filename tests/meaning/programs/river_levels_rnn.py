"""River levels are forecast by a self-written gated cell, unrolled in Python over 24 hours; validated after every epoch.

Truth: 64 updates (4 epochs of 16), and 4 validation passes beside. Healthy: hidden size 256 and batch 96 make the
products in the cell dominate, not the Python loop over time. Limited by operators.
"""

import math
import time

import torch
from torch import nn
from truth import write


class GatedCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gate = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        z = torch.sigmoid(self.gate(torch.cat([x, h], -1)))
        c = torch.tanh(self.candidate(torch.cat([x, h * z], -1)))
        return (1 - z) * h + z * c


class Forecaster(nn.Module):
    def __init__(self, gauges=12, hidden=256):
        super().__init__()
        self.cell = GatedCell(gauges, hidden)
        self.hidden = hidden
        self.readout = nn.Linear(hidden, gauges)

    def forward(self, hours):
        h = hours.new_zeros(hours.shape[0], self.hidden)
        outputs = []
        for t in range(hours.shape[1]):
            h = self.cell(hours[:, t], h)
            outputs.append(self.readout(h))
        return torch.stack(outputs, 1)


def windows(generator, count, batch=96, length=25):
    for _ in range(count):
        phase = torch.rand(batch, 1, 12, generator=generator) * 2 * math.pi
        hours = torch.arange(length).view(1, -1, 1) / 24 * 2 * math.pi
        yield torch.sin(hours + phase) + 0.1 * torch.randn(batch, length, 12, generator=generator)


class Trainer:
    def __init__(self):
        self.model = Forecaster()
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        self.criterion = nn.SmoothL1Loss()
        self.random = torch.Generator().manual_seed(5)
        self.phases = {k: 0 for k in ("data", "forward", "backward", "optimizer", "validation")}
        self.steps = []
        self.mark = None

    def close(self, kind):
        now = time.monotonic_ns()
        self.steps.append((self.mark, now, kind))
        self.mark = now

    def train_epoch(self):
        self.model.train()
        losses = []
        for series in windows(self.random, 16):
            t0 = time.monotonic_ns()
            predicted = self.model(series[:, :-1])
            loss = self.criterion(predicted, series[:, 1:])
            t1 = time.monotonic_ns()
            self.optimizer.zero_grad(set_to_none=True)
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            t4 = time.monotonic_ns()
            losses.append(loss.item())
            self.phases["data"] += t0 - self.mark
            self.phases["forward"] += t1 - t0
            self.phases["backward"] += t3 - t2
            self.phases["optimizer"] += t2 - t1 + t4 - t3
            self.close("train")
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        errors = [self.criterion(self.model(s[:, :-1]), s[:, 1:]).item() for s in windows(self.random, 4)]
        self.phases["validation"] += time.monotonic_ns() - self.mark
        self.close("validation")
        return sum(errors) / len(errors)

    def fit(self, epochs):
        self.mark = time.monotonic_ns()
        for epoch in range(epochs):
            print(f"epoch {epoch}: train {self.train_epoch():.4f}  valid {self.validate():.4f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(5)
    trainer = Trainer()
    trainer.fit(4)
    write(
        trainer.steps,
        unit="optimizer update",
        beside=["validation"],
        levels={"epoch": 4},
        limiting="operators",
        phases_ns=trainer.phases,
    )
