"""A Wasserstein GAN with weight clipping: five critic updates for each generator update.

Healthy and compute-bound. A step is one generator update with its five critic updates: 25 steps, 125 critic updates.
"""

import itertools
import time

import torch
from torch import nn
from truth import tile, write

N_CRITIC = 5


def mlp(*widths):
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class WGAN:
    def __init__(self):
        self.generator, self.critic = mlp(16, 256, 512, 400), mlp(400, 512, 256, 1)
        self.opt_g = torch.optim.RMSprop(self.generator.parameters(), 5e-5)
        self.opt_c = torch.optim.RMSprop(self.critic.parameters(), 5e-5)

    def critic_step(self, real):
        self.opt_c.zero_grad()
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), 16))
        loss = self.critic(fake).mean() - self.critic(real).mean()
        loss.backward()
        self.opt_c.step()
        with torch.no_grad():
            for weight in self.critic.parameters():
                weight.clamp_(-0.01, 0.01)
        return loss

    def generator_step(self, size):
        self.opt_g.zero_grad()
        loss = -self.critic(self.generator(torch.randn(size, 16))).mean()
        loss.backward()
        self.opt_g.step()
        return loss


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gan = WGAN()
    stamps = [time.monotonic_ns()]
    critics = generators = 0
    for _ in range(25):
        a = time.monotonic_ns()
        for _ in range(N_CRITIC):
            gan.critic_step(torch.randn(64, 400))
        b = time.monotonic_ns()
        gan.generator_step(64)
        c = time.monotonic_ns()
        critics, generators = critics + b - a, generators + c - b
        stamps.append(time.monotonic_ns())
    write(
        tile(stamps),
        unit="generator update",
        limiting="operators",
        levels={"critic update": 125},
        phases_ns={"critic": critics, "generator": generators},
    )


main()
