"""A GAN on points of a ring: two networks, two optimizers, one update of each for every batch."""

import math
import os
import time

import torch
from torch import nn

torch.manual_seed(3)
BATCH, NOISE = 32, 8


def real_batch():
    angle = torch.rand(BATCH) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(BATCH, 2)


generator = nn.Sequential(nn.Linear(NOISE, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(
    nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

batches, updates = [], []
for iteration in range(80):
    batches.append(time.monotonic_ns())
    updates.append(batches[-1])
    real = real_batch()
    fake = generator(torch.randn(BATCH, NOISE))
    # the discriminator
    discriminator.zero_grad()
    loss_d = bce(discriminator(real), ones) + bce(discriminator(fake.detach()), zeros)
    loss_d.backward()
    opt_d.step()
    # the generator
    updates.append(time.monotonic_ns())
    generator.zero_grad()
    loss_g = bce(discriminator(fake), ones)
    loss_g.backward()
    opt_g.step()
    if iteration % 20 == 0:
        print(f"{iteration}: D {loss_d.item():.3f} G {loss_g.item():.3f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"batch {ns}\n" for ns in batches)
    out.writelines(f"update {ns}\n" for ns in updates)
