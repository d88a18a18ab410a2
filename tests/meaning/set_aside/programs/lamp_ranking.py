"""Learns which lamps look alike from jittered features, hardest first; now and then the order of hardness is made anew.

Truth: 260 updates, limited by operators. After every 80th update `HardFirst.rebuild` sorts 400,000 lamps with a key function in Python, a
stall of three steps in the run. The same order by NumPy is measured after the loop; the difference is the gain.
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write

LAMPS = 400_000


class HardFirst:
    def __init__(self, lamps, generator):
        self.hardness = [1.0] * lamps
        self.seen = [0] * lamps
        self.order = list(range(lamps))
        self.generator = generator
        self.took = {}

    def pick(self, count):
        places = (torch.rand(count, generator=self.generator) ** 2 * len(self.order)).long()
        return torch.tensor([self.order[i] for i in places.tolist()])

    def note(self, picks, errors):
        for lamp, error in zip(picks.tolist(), errors.tolist(), strict=True):
            self.hardness[lamp] = 0.5 * self.hardness[lamp] + 0.5 * error
            self.seen[lamp] += 1

    def rebuild(self):
        self.order = sorted(range(len(self.order)), key=lambda lamp: (-self.hardness[lamp], self.seen[lamp]))


def jitter(x):
    keep = (torch.rand_like(x) > 0.1).float()
    return (x + 0.1 * torch.randn_like(x)) * keep * (1 + 0.05 * torch.randn(len(x), 1))


def train(updates=260, every=80, batch=192):
    generator = torch.Generator().manual_seed(11)
    lamps = torch.randn(LAMPS, 40, generator=generator)
    miner = HardFirst(LAMPS, generator)
    tower = nn.Sequential(nn.Linear(40, 320), nn.ReLU(), nn.Linear(320, 320), nn.ReLU(), nn.Linear(320, 320), nn.ReLU(), nn.Linear(320, 64))
    optimizer = torch.optim.AdamW(tower.parameters(), lr=1e-3)
    data = forward = backward = update = 0
    cuts = [time.monotonic_ns()]
    for step in range(updates):
        picks = miner.pick(batch)
        original = lamps[picks]
        left, right = jitter(original), jitter(original)
        t0 = time.monotonic_ns()
        a, b = F.normalize(tower(left), dim=1), F.normalize(tower(right), dim=1)
        errors = F.cross_entropy(a @ b.T / 0.1, torch.arange(batch), reduction="none")
        loss = errors.mean()
        t1 = time.monotonic_ns()
        optimizer.zero_grad(set_to_none=True)
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        optimizer.step()
        t4 = time.monotonic_ns()
        miner.note(picks, errors.detach())
        if step % every == every - 1:
            begin = time.monotonic_ns()
            miner.rebuild()
            miner.took[step] = time.monotonic_ns() - begin
            print(f"{step + 1}: {loss.item():.3f}")
        data += t0 - cuts[-1]
        forward += t1 - t0
        backward += t3 - t2
        update += t2 - t1 + t4 - t3
        cuts.append(time.monotonic_ns())
    return miner, cuts, {"data": data, "forward": forward, "backward": backward, "optimizer": update}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(11)
    miner, cuts, phases = train()

    begin = time.monotonic_ns()
    quick = np.lexsort((np.array(miner.seen), -np.array(miner.hardness))).tolist()
    took = time.monotonic_ns() - begin
    miner.rebuild()
    assert quick == miner.order
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="operators",
        phases_ns=phases,
        outliers={step: "the order of hardness is made anew" for step in miner.took},
        problem=problem(
            "now and then all lamps are sorted with a key function in Python",
            "lamp_ranking.py:HardFirst.rebuild",
            "python",
            wasted_ns=sum(miner.took.values()) - took * len(miner.took),
        ),
    )
