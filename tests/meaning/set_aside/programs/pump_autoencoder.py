"""Finds anomalies of a pump with an autoencoder, trained by a small Trainer class in its author's own order.

`fetch` clears the gradients before it draws the next windows, `compute_loss` does the forward pass, `learn` goes
backward and updates; the loop is a `while` over a number of updates, and windows start over when they are used up.
Healthy and compute-bound: wide linear layers. Truth: 400 updates; a progress line every 50.
"""

import time

import torch
from torch import nn
from truth import tile, write


class Autoencoder(nn.Module):
    def __init__(self, width=256, hidden=1024, code=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Trainer:
    def __init__(self, model, signal, updates, batch=128):
        self.model = model
        self.windows = signal.unfold(0, 256, 16)
        self.updates = updates
        self.batch = batch
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
        self.order = []
        self.done = 0
        self.phases = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)

    def timed(self, phase, since):
        now = time.monotonic_ns()
        self.phases[phase] += now - since
        return now

    def fetch(self):
        t = time.monotonic_ns()
        self.optimizer.zero_grad(set_to_none=True)
        t = self.timed("optimizer", t)
        if len(self.order) < self.batch:
            self.order = torch.randperm(len(self.windows)).tolist()
        chosen, self.order = self.order[: self.batch], self.order[self.batch :]
        windows = self.windows[chosen]
        self.timed("data", t)
        return windows

    def compute_loss(self, windows):
        t = time.monotonic_ns()
        noisy = windows + 0.05 * torch.randn_like(windows)
        loss = ((self.model(noisy) - windows) ** 2).mean()
        self.timed("forward", t)
        return loss

    def learn(self, loss):
        t = time.monotonic_ns()
        loss.backward()
        t = self.timed("backward", t)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.timed("optimizer", t)

    def fit(self):
        cuts = [time.monotonic_ns()]
        mean = None
        while self.done < self.updates:
            loss = self.compute_loss(self.fetch())
            self.learn(loss)
            self.done += 1
            mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
            if self.done % 50 == 0:
                print(f"{self.done:4d}/{self.updates} loss {mean:.4f}")
            cuts.append(time.monotonic_ns())
        return cuts


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    time_axis = torch.arange(60_000) / 40
    signal = torch.sin(time_axis) + 0.4 * torch.sin(3.7 * time_axis) + 0.1 * torch.randn(len(time_axis))
    trainer = Trainer(Autoencoder(), signal, updates=400)
    cuts = trainer.fit()
    write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=trainer.phases)


if __name__ == "__main__":
    main()
