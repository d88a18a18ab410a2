"""A small denoising diffusion model; after each of three epochs it draws samples by 40 reverse steps without gradients.

Healthy and compute-bound. Truth: 60 updates of class train and 3 samplings beside them, which are no validation either.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import write

T = 40


class Denoiser(nn.Module):
    def __init__(self, dim=64, width=700):
        super().__init__()
        self.time = nn.Embedding(T, width)
        self.inp, self.mid, self.out = nn.Linear(dim, width), nn.Linear(width, width), nn.Linear(width, dim)

    def forward(self, x, t):
        h = torch.nn.functional.silu(self.inp(x) + self.time(t))
        return self.out(torch.nn.functional.silu(self.mid(h)))


class Diffusion:
    def __init__(self):
        self.betas = torch.linspace(1e-4, 0.2, T)
        self.alphas = torch.cumprod(1 - self.betas, 0)
        self.net = Denoiser()

    def loss(self, x0):
        t = torch.randint(0, T, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.alphas[t].unsqueeze(1)
        return (self.net(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).pow(2).mean()

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 64)
        for t in reversed(range(T)):
            eps = self.net(x, torch.full((n,), t))
            x = (x - self.betas[t] / (1 - self.alphas[t]).sqrt() * eps) / (1 - self.betas[t]).sqrt()
        return x


torch.manual_seed(0)
torch.set_num_threads(1)
ddpm = Diffusion()
opt = torch.optim.Adam(ddpm.net.parameters(), 1e-3)
dataset = torch.randn(20 * 256, 64)
steps = []
fw = bw = up = sampling = 0
last = monotonic_ns()
for epoch in range(3):
    for batch in dataset.split(256):
        a = monotonic_ns()
        loss = ddpm.loss(batch)
        b = monotonic_ns()
        opt.zero_grad()
        c = monotonic_ns()
        loss.backward()
        d = monotonic_ns()
        opt.step()
        e = monotonic_ns()
        fw, bw, up = fw + b - a, bw + d - c, up + c - b + e - d
        steps.append((last, e, "train"))
        last = e
    samples = ddpm.sample(64)
    print(epoch, loss.item(), samples.std().item())
    end = monotonic_ns()
    sampling += end - last
    steps.append((last, end, "sampling"))
    last = end
write(
    steps,
    unit="optimizer update",
    limiting="operators",
    beside=["sampling"],
    levels={"epoch": 3, "reverse step": 3 * T},
    phases_ns={"forward": fw, "backward": bw, "optimizer": up, "sampling": sampling},
)
