"""Training of a diffusion model: random time steps, noise prediction, an exponential average of the weights."""

import copy
import os
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

STEPS = 100


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(STEPS, 16)
        self.down = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(16, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1)

    def forward(self, x, t):
        d = functional.silu(self.down(x) + self.embed(t)[:, :, None, None])
        m = functional.silu(self.middle(d))
        return self.up(torch.cat([d, m], dim=1))


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model), decay

    @torch.no_grad()
    def update(self, model):
        for kept, new in zip(self.model.parameters(), model.parameters(), strict=True):
            kept.lerp_(new, 1 - self.decay)


def train(model, loader, average):
    betas = torch.linspace(1e-4, 0.02, STEPS)
    signal = (1 - betas).cumprod(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    begins = []
    for epoch in range(3):
        for (x,) in loader:
            begins.append(time.monotonic_ns())
            t = torch.randint(0, STEPS, (len(x),))
            noise = torch.randn_like(x)
            a = signal[t].view(-1, 1, 1, 1)
            noisy = a.sqrt() * x + (1 - a).sqrt() * noise
            loss = functional.mse_loss(model(noisy, t), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        print(f"epoch {epoch}: {loss.item():.4f}")
    return begins


if __name__ == "__main__":
    torch.manual_seed(33)
    images = TensorDataset(torch.randn(200, 1, 12, 12).cumsum(2).tanh())
    network = Denoiser()
    begins = train(network, DataLoader(images, batch_size=10, shuffle=True), Average(network, 0.99))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)
