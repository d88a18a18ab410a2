"""A GAN draws pebbles: one update of the critic, one of the generator, and after each a Frechet distance "to see it converge".

Truth: 100 rounds of two updates, limited by operators. `frechet` (covariances, a matrix square root of 256 x 256) takes about half of
the time; once in 50 rounds would do for a curve, so that 49 of 50 of its measured time are the gain.
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from scipy import linalg
from torch import nn
from truth import problem, tile, write

torch.set_num_threads(1)
torch.manual_seed(30)


def weights_init(module):
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(32, 48 * 4 * 4)
        self.grow = nn.Sequential(
            nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.ConvTranspose2d(24, 1, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z):
        return self.grow(self.start(z).view(-1, 48, 4, 4))


class Critic(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Linear(48 * 16, 1),
        )  # fmt: skip


def pebbles(n):
    y, x = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    a, b = 0.3 + 0.5 * torch.rand(2, n, 1, 1)
    return torch.tanh(6 * (1 - (x / a) ** 2 - (y / b) ** 2)).unsqueeze(1) + 0.02 * torch.randn(n, 1, 16, 16)


PROJECTION = np.random.default_rng(30).standard_normal((256, 256)) / 16


def frechet(real, fake):
    a, b = (images.detach().flatten(1).double().numpy() @ PROJECTION for images in (real, fake))
    ca, cb = np.cov(a, rowvar=False) + 1e-3 * np.eye(256), np.cov(b, rowvar=False) + 1e-3 * np.eye(256)
    root = linalg.sqrtm(ca @ cb).real
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(ca + cb - 2 * root))


stones = pebbles(2000)
G, D = Generator(), Critic()
G.apply(weights_init)
D.apply(weights_init)
optG = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
optD = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
curve = []
data = fwd = bwd = upd = measuring = 0

cuts = [time.monotonic_ns()]
for round_ in range(100):
    real = stones[torch.randint(0, len(stones), (48,))]
    t0 = time.monotonic_ns()

    # critic
    D.zero_grad()
    t1 = time.monotonic_ns()
    fake = G(torch.randn(48, 32))
    d_real, d_fake = D(real), D(fake.detach())
    errD = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
    t2 = time.monotonic_ns()
    errD.backward()
    t3 = time.monotonic_ns()
    optD.step()

    # generator
    G.zero_grad()
    t4 = time.monotonic_ns()
    errG = F.softplus(-D(fake)).mean()
    t5 = time.monotonic_ns()
    errG.backward()
    t6 = time.monotonic_ns()
    optG.step()
    t7 = time.monotonic_ns()

    curve.append(frechet(real, fake))
    t8 = time.monotonic_ns()
    if round_ % 50 == 0:
        print(f"{round_:3d}  D {errD.item():.3f}  G {errG.item():.3f}  distance {curve[-1]:.2f}")
    data += t0 - cuts[-1]
    fwd += t2 - t1 + t5 - t4
    bwd += t3 - t2 + t6 - t5
    upd += t1 - t0 + t4 - t3 + t7 - t6
    measuring += t8 - t7
    cuts.append(time.monotonic_ns())

write(
    tile(cuts),
    unit="round of critic and generator",
    levels={"optimizer update": 200},
    limiting="operators",
    phases_ns={"data": data, "forward": fwd, "backward": bwd, "optimizer": upd},
    problem=problem(
        "a Frechet distance with a matrix square root is taken after every round",
        "pebble_gan.py:frechet",
        "operators",
        wasted_ns=measuring * 49 // 50,
    ),
)
