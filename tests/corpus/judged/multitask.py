"""Several tasks share a trunk; each step draws one of three tasks at random, with heads and losses of their own."""

import os
import random
import time

import torch
from torch import nn

random.seed(39)
torch.manual_seed(39)
trunk = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
heads = nn.ModuleDict({"class": nn.Linear(32, 4), "value": nn.Linear(32, 1), "same": nn.Bilinear(32, 32, 1)})
trunk_optimizer = torch.optim.Adam(trunk.parameters(), lr=1e-3)
heads_optimizer = torch.optim.SGD(heads.parameters(), lr=1e-2)


def classify(x):
    return nn.functional.cross_entropy(heads["class"](trunk(x)), x[:, :4].argmax(1))


def regress(x):
    return nn.functional.smooth_l1_loss(heads["value"](trunk(x)).squeeze(1), x.sum(1))


def compare(x):
    other = x.flip(0)
    score = heads["same"](trunk(x), trunk(other)).squeeze(1)
    return nn.functional.binary_cross_entropy_with_logits(score, (x[:, 0] * other[:, 0] > 0).float())


begins = []
for step in range(80):
    begins.append(time.monotonic_ns())
    task = random.choice([classify, regress, compare])
    loss = task(torch.randn(16, 12))
    trunk_optimizer.zero_grad()
    heads_optimizer.zero_grad()
    loss.backward()
    trunk_optimizer.step()
    heads_optimizer.step()
    if step % 16 == 0:
        print(step, task.__name__, f"{loss.item():.3f}")

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
