"""Fits a surrogate of reservoir inflow on a shared workstation: in the middle third a colleague's jobs start.

The training itself is healthy and the same from first to last. The jobs compute without a pause, four for each core.
Truth: 150 updates; most of the time is due to starvation in updates 50 to 99; the gain is the time these take beyond
the median of the others.
"""

import contextlib
import os
import statistics
import subprocess
import sys
from itertools import pairwise
from time import monotonic_ns

import torch
from torch import nn
from truth import problem, tile, write

JOB = "import random\nwhile True:\n    sum(random.random() ** 2 for _ in range(10000))"


@contextlib.contextmanager
def colleague():
    count = 4 * len(os.sched_getaffinity(0))
    jobs = [subprocess.Popen([sys.executable, "-S", "-c", JOB]) for _ in range(count)]
    try:
        yield
    finally:
        for job in jobs:
            job.kill()
        for job in jobs:
            job.wait()


class Fit:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(60, 600), nn.Tanh(), nn.Linear(600, 600), nn.Tanh(), nn.Linear(600, 1))
        self.opt = torch.optim.RMSprop(self.net.parameters(), 1e-4)
        self.rain = torch.rand(150 * 256, 60)
        self.inflow = (self.rain * torch.linspace(1, 0, 60) ** 2).sum(1, keepdim=True)
        self.laps = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
        self.cuts = [monotonic_ns()]

    def run(self, first, last):
        for i in range(first, last):
            rows = slice(256 * i, 256 * (i + 1))
            x, y = self.rain[rows], self.inflow[rows]
            marks = [self.cuts[-1], monotonic_ns()]
            loss = nn.functional.huber_loss(self.net(x), y)
            marks.append(monotonic_ns())
            loss.backward()
            marks.append(monotonic_ns())
            self.opt.step()
            self.opt.zero_grad()
            marks.append(monotonic_ns())
            for name, (a, b) in zip(self.laps, pairwise(marks)):
                self.laps[name] += b - a
            self.cuts.append(marks[-1])
        print(f"{last} updates, loss {loss.item():.4f}")


torch.manual_seed(0)
torch.set_num_threads(1)
fit = Fit()
fit.run(0, 50)
with colleague():
    fit.run(50, 100)
fit.run(100, 150)

took = [b - a for a, b in pairwise(fit.cuts)]
wasted = int(sum(took[50:100]) - 50 * statistics.median(took[:50] + took[100:]))
write(
    tile(fit.cuts),
    unit="optimizer update",
    limiting="starvation",
    phases_ns=fit.laps,
    problem=problem("other processes take the cores", "reservoir_fit.py:Fit.run", "starvation", wasted_ns=wasted),
)
