"""A denoising autoencoder on synthetic spectra; training and validation go through the same `run_epoch` with a flag.

Healthy and compute-bound. Truth: 150 updates of class train in 5 epochs, and 5 validation passes of 12 batches beside them.
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import write

steps = []
phases = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "validation": 0}


def spectra(n, width=512):
    grid = torch.linspace(0, 1, width)
    centre = torch.rand(n, 4, 1)
    breadth = 0.01 + 0.05 * torch.rand(n, 4, 1)
    return torch.exp(-(((grid - centre) / breadth) ** 2)).sum(1)


class DAE(nn.Module):
    def __init__(self, width=512, hidden=1024, code=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run_epoch(model, loader, optimizer, train, last):
    ns = time.monotonic_ns
    model.train(train)
    total = 0.0
    began = last
    with torch.set_grad_enabled(train):
        for (clean,) in loader:
            a = ns()
            noisy = clean + 0.1 * torch.randn_like(clean)
            b = ns()
            loss = nn.functional.mse_loss(model(noisy), clean)
            c = ns()
            if train:
                optimizer.zero_grad()
                d = ns()
                loss.backward()
                e = ns()
                optimizer.step()
                f = ns()
                phases["data"] += a - last
                phases["forward"] += c - b
                phases["backward"] += e - d
                phases["optimizer"] += d - c + f - e
            total += loss.item()
            if train:
                now = ns()
                steps.append((last, now, "train"))
                last = now
    if not train:
        last = ns()
        phases["validation"] += last - began
        steps.append((began, last, "validation"))
    return total / len(loader), last


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=128)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_loader = DataLoader(TensorDataset(spectra(30 * 128)), args.batch_size, shuffle=True, num_workers=0)
    val_loader = DataLoader(TensorDataset(spectra(12 * 128)), args.batch_size, num_workers=0)
    model = DAE()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    last = time.monotonic_ns()
    seen = []
    for epoch in range(args.epochs):
        train_loss, last = run_epoch(model, train_loader, optimizer, True, last)
        val_loss, last = run_epoch(model, val_loader, optimizer, False, last)
        seen.append(val_loss)
        print(f"[{epoch}] train {train_loss:.4f} val {val_loss:.4f}")
    assert seen[-1] < seen[0] and len(steps) == 155
    write(
        steps,
        unit="optimizer update",
        limiting="operators",
        beside=["validation"],
        levels={"epoch": args.epochs, "validation batch": 12 * args.epochs},
        phases_ns=phases,
    )


if __name__ == "__main__":
    main()
