"""A Wasserstein GAN with gradient penalty: every iteration trains the critic five times and the generator once;
pictures are drawn every ten iterations.
"""

import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LATENT, CRITIC_STEPS, PENALTY = 16, 5, 10.0
iterations, updates = [], []


def strokes(count, side=12):
    """Pictures with one bright row or column."""
    x = 0.05 * torch.randn(count, 1, side, side)
    where, across = torch.randint(side, (count,)), torch.rand(count) < 0.5
    for picture, at, row in zip(x, where, across, strict=True):
        if row:
            picture[0, at] += 1
        else:
            picture[0, :, at] += 1
    return x


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(LATENT, 32 * 3 * 3)
        self.up = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.up(self.start(z).view(-1, 32, 3, 3))


def make_critic():
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(288, 1),
    )


def forever(loader):
    while True:
        for (x,) in loader:
            yield x


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1, 1, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (gradient.flatten(1).norm(2, dim=1) - 1).square().mean()


def train_critic(critic, generator, optimizer, real):
    with torch.no_grad():
        fake = generator(torch.randn(len(real), LATENT))
    distance = critic(real).mean() - critic(fake).mean()
    loss = PENALTY * gradient_penalty(critic, real, fake) - distance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return distance.item()


def train_generator(critic, generator, optimizer, size):
    for parameter in critic.parameters():
        parameter.requires_grad_(False)
    loss = -critic(generator(torch.randn(size, LATENT))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for parameter in critic.parameters():
        parameter.requires_grad_(True)


def main():
    torch.manual_seed(57)
    batches = forever(DataLoader(TensorDataset(strokes(256)), batch_size=16, shuffle=True, drop_last=True))
    generator, critic = Generator(), make_critic()
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
    fixed = torch.randn(16, LATENT)
    with tempfile.TemporaryDirectory() as folder:
        for iteration in range(1, 41):
            iterations.append(time.monotonic_ns())
            for _ in range(CRITIC_STEPS):
                updates.append(time.monotonic_ns())
                distance = train_critic(critic, generator, opt_c, next(batches))
            updates.append(time.monotonic_ns())
            train_generator(critic, generator, opt_g, 16)
            if iteration % 10 == 0:
                with torch.no_grad():
                    torch.save(generator(fixed), Path(folder) / f"samples-{iteration}.pt")
                print(f"[{iteration}] Wasserstein distance {distance:.3f}")
    # The paper counts generator iterations; each of the six updates sees a batch of its own, so that is a step as well.
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in iterations)
        out.writelines(f"update {ns}\n" for ns in updates)


if __name__ == "__main__":
    main()
