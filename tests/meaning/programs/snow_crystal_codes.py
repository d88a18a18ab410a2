"""Learns a codebook of snow crystals: a convolutional VQ-VAE whose quantiser is a custom autograd Function.

The training stands in a generator, which gives the mean loss of each epoch to `main`; that draws a sheet of new
crystals each time. Truth: 120 updates in 4 epochs of 30, and 4 samplings beside them, which are no validation.
Healthy, limited by operators: convolutions.
"""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import tile, write

cuts, kinds = [], []
spent = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)


class Nearest(torch.autograd.Function):
    """Nearest code for each place; gradients pass straight through."""

    @staticmethod
    def forward(ctx, z, codes):
        flat = z.permute(0, 2, 3, 1).reshape(-1, codes.shape[1])
        picks = torch.cdist(flat, codes).argmin(1)
        ctx.mark_non_differentiable(picks)
        b, c, h, w = z.shape
        return codes[picks].reshape(b, h, w, c).permute(0, 3, 1, 2).contiguous(), picks

    @staticmethod
    def backward(ctx, grad, _):
        return grad, None


class CrystalCodes(nn.Module):
    def __init__(self, codes=128, width=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(2 * width, width, 3, 1, 1),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1),
        )  # fmt: skip
        self.codes = nn.Parameter(torch.randn(codes, width) / 4)

    def forward(self, x):
        z = self.encoder(x)
        q, picks = Nearest.apply(z, self.codes)
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        commit = F.mse_loss(flat, self.codes[picks].detach())
        book = F.mse_loss(self.codes[picks], flat.detach())
        return self.decoder(q), book + 0.25 * commit

    @torch.no_grad()
    def invent(self, count, side):
        picks = torch.randint(len(self.codes), (count, side, side))
        return self.decoder(self.codes[picks].permute(0, 3, 1, 2)).clamp(0, 1)


def grow_crystals(count, side=40):
    axis = torch.linspace(-1, 1, side)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    radius, angle = (x**2 + y**2).sqrt(), torch.atan2(y, x)
    pictures = []
    for _ in range(count):
        arms = torch.cos(6 * (angle - math.pi * torch.rand(())) / 2).abs() ** (1 + 4 * torch.rand(()))
        rings = 0.5 + 0.5 * torch.cos((6 + 20 * torch.rand(())) * radius)
        pictures.append((arms * rings * torch.sigmoid(20 * (0.85 - radius))).unsqueeze(0))
    return torch.stack(pictures)


def training(model, optimizer, pictures, epochs, batch=36):
    for epoch in range(epochs):
        losses = []
        for picks in torch.randperm(len(pictures)).split(batch):
            x = pictures[picks]
            t0 = time.monotonic_ns()
            drawn, extra = model(x)
            loss = F.mse_loss(drawn, x) + extra
            t1 = time.monotonic_ns()
            optimizer.zero_grad()
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            optimizer.step()
            t4 = time.monotonic_ns()
            losses.append(loss.detach())
            spent["data"] += t0 - cuts[-1]
            spent["forward"] += t1 - t0
            spent["backward"] += t3 - t2
            spent["optimizer"] += t2 - t1 + t4 - t3
            cuts.append(time.monotonic_ns())
            kinds.append("train")
        yield epoch, torch.stack(losses).mean().item()


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    pictures = grow_crystals(1080)
    model = CrystalCodes()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sheets = []
    cuts.append(time.monotonic_ns())
    for epoch, loss in training(model, optimizer, pictures, epochs=4):
        sheets.append(model.invent(64, 10).reshape(8, 8, 40, 40))
        print(f"epoch {epoch}: loss {loss:.4f}, ink {sheets[-1].mean():.3f}")
        cuts.append(time.monotonic_ns())
        kinds.append("sampling")
    write(
        tile(cuts, kinds),
        unit="optimizer update",
        beside=["sampling"],
        levels={"epoch": 4},
        limiting="operators",
        phases_ns=spent,
    )


if __name__ == "__main__":
    main()
