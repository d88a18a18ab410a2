"""A small convolutional network trained by a `Trainer` with callbacks (history, learning rate, progress line).

Healthy and compute-bound. Gradients are zeroed after the step. Truth: 120 updates in 3 epochs; callbacks are "other".
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import tile, write


class Callback:
    def on_fit_begin(self, trainer): ...
    def on_epoch_begin(self, trainer): ...
    def on_batch_begin(self, trainer): ...
    def on_batch_end(self, trainer): ...
    def on_epoch_end(self, trainer): ...
    def on_fit_end(self, trainer): ...


class History(Callback):
    def on_fit_begin(self, trainer):
        self.losses = []

    def on_batch_end(self, trainer):
        self.losses.append(trainer.loss.item())


class Warmup(Callback):
    def __init__(self, steps, lr):
        self.steps, self.lr = steps, lr

    def on_batch_begin(self, trainer):
        for group in trainer.optimizer.param_groups:
            group["lr"] = self.lr * min(1.0, (trainer.global_step + 1) / self.steps)


class Progress(Callback):
    def on_batch_end(self, trainer):
        done = trainer.batch_index + 1
        bar = "=" * (30 * done // trainer.num_batches)
        sys.stdout.write(f"\repoch {trainer.epoch} [{bar:30s}] {done}/{trainer.num_batches} loss {trainer.loss.item():.4f}")
        sys.stdout.flush()

    def on_epoch_end(self, trainer):
        sys.stdout.write("\n")


class Trainer:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.global_step = 0
        self.cuts = []
        self.phases = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)

    def call(self, hook):
        for callback in self.callbacks:
            getattr(callback, hook)(self)

    def train_batch(self, x, y):
        a = time.monotonic_ns()
        self.loss = F.cross_entropy(self.model(x), y)
        b = time.monotonic_ns()
        self.loss.backward()
        c = time.monotonic_ns()
        self.optimizer.step()
        self.optimizer.zero_grad()
        d = time.monotonic_ns()
        for name, ns in (("forward", b - a), ("backward", c - b), ("optimizer", d - c)):
            self.phases[name] += ns

    def fit(self, loader, epochs):
        self.num_batches = len(loader)
        self.call("on_fit_begin")
        self.cuts.append(time.monotonic_ns())
        for self.epoch in range(epochs):
            self.call("on_epoch_begin")
            for self.batch_index, (x, y) in enumerate(loader):
                self.phases["data"] += time.monotonic_ns() - self.cuts[-1]
                self.call("on_batch_begin")
                self.train_batch(x, y)
                self.global_step += 1
                self.call("on_batch_end")
                if self.batch_index == self.num_batches - 1:
                    self.call("on_epoch_end")
                self.cuts.append(time.monotonic_ns())
        self.call("on_fit_end")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    labels = torch.randint(0, 10, (40 * 64,))
    images = torch.randn(10, 1, 28, 28)[labels] + 0.7 * torch.randn(40 * 64, 1, 28, 28)
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    history = History()
    trainer = Trainer(model, torch.optim.AdamW(model.parameters()), [history, Warmup(20, 1e-3), Progress()])
    trainer.fit(loader, 3)
    assert trainer.global_step == 120 and history.losses[-1] < history.losses[0]
    write(
        tile(trainer.cuts, "train"),
        unit="optimizer update",
        limiting="operators",
        levels={"epoch": 3},
        phases_ns=trainer.phases,
    )


if __name__ == "__main__":
    main()
