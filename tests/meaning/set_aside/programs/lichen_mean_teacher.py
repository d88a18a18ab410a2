"""Tells lichens apart with few labels: a student learns from labelled photos and from a teacher's opinion of
unlabelled ones; the teacher is a moving average of the student. One script; batches come from a zip of an endless
cycle and a loader. Healthy, limited by operators (convolutions). Truth: 72 updates in 3 epochs of 24, and 3 tests of
the teacher beside them; making two noisy views is data, the teacher's call without gradients is forward, its moving
average is optimizer.
"""

import copy
import itertools
import math
from time import monotonic_ns

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import write

torch.manual_seed(14)
torch.set_num_threads(1)

SPECIES, EPOCHS = 8, 3


def photos(count):
    species = torch.randint(SPECIES, (count,))
    grid = torch.arange(32.0)
    waves = torch.sin(grid[None, :, None] * (1 + species[:, None, None]) / 6 + grid[None, None, :] / 4)
    return waves[:, None].repeat(1, 3, 1, 1) + 0.8 * torch.randn(count, 3, 32, 32), species


class LichenNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(24, 24, 3, padding=1) for _ in range(3))
        self.norms = nn.ModuleList(nn.GroupNorm(4, 24) for _ in range(3))
        self.head = nn.Linear(24, SPECIES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 2)
        for conv, norm in zip(self.blocks, self.norms, strict=True):
            x = x + F.relu(norm(conv(x)))
        return self.head(x.mean((2, 3)))


def noisy(x):
    flipped = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    return flipped + 0.2 * torch.randn_like(x)


student = LichenNet()
teacher = copy.deepcopy(student).requires_grad_(False).eval()
optimizer = torch.optim.SGD(student.parameters(), lr=0.03, momentum=0.9, nesterov=True)
labelled = DataLoader(TensorDataset(*photos(128)), batch_size=16, shuffle=True, drop_last=True)
unlabelled = DataLoader(TensorDataset(photos(24 * 32)[0]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(*photos(320)), batch_size=64)

spent = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "validation": 0}
steps, update = [], 0
begin = monotonic_ns()
for epoch in range(EPOCHS):
    for (x, species), (more,) in zip(itertools.cycle(labelled), unlabelled, strict=False):
        mine, theirs = noisy(torch.cat([x, more])), noisy(torch.cat([x, more]))
        t0 = monotonic_ns()
        with torch.no_grad():
            opinion = teacher(theirs).softmax(1)
        scores = student(mine)
        weight = 5 * math.exp(-5 * (1 - min(1.0, update / 40)) ** 2)
        loss = F.cross_entropy(scores[: len(x)], species) + weight * F.mse_loss(scores.softmax(1), opinion)
        t1 = monotonic_ns()
        for p in student.parameters():
            p.grad = None
        t2 = monotonic_ns()
        loss.backward()
        t3 = monotonic_ns()
        optimizer.step()
        decay = min(0.99, 1 - 1 / (update + 1))
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.mul_(decay).add_(fast, alpha=1 - decay)
        update += 1
        end = monotonic_ns()
        spent["data"] += t0 - begin
        spent["forward"] += t1 - t0
        spent["backward"] += t3 - t2
        spent["optimizer"] += t2 - t1 + end - t3
        steps.append((begin, end, "train"))
        begin = end

    with torch.no_grad():
        right = sum((teacher(x).argmax(1) == species).sum().item() for x, species in test)
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}, the teacher names {right / 320:.1%}")
    end = monotonic_ns()
    spent["validation"] += end - begin
    steps.append((begin, end, "validation"))
    begin = end

fields = {"levels": {"epoch": EPOCHS}, "phases_ns": spent, "beside": ["validation"]}
write(steps, unit="optimizer update", limiting="operators", **fields)
