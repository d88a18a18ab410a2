"""SimCLR-like training: the encoder is called on two augmented views of each batch, then one loss and one backward.

Healthy and compute-bound. Truth: 50 updates, each with two calls of the encoder; augmentation counts as data.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import tile, write


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(400, 1000), nn.ReLU(), nn.Linear(1000, 600), nn.ReLU())
        self.projector = nn.Linear(600, 64)

    def forward(self, x):
        return F.normalize(self.projector(self.encoder(x)), dim=1)


def augment(x):
    return x * (torch.rand_like(x) > 0.1) + 0.05 * torch.randn_like(x)


def nt_xent(z1, z2, temperature=0.5):
    z = torch.cat([z1, z2])
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(-1e9)
    n = len(z1)
    return F.cross_entropy(sim, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = SimCLR()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    images = torch.randn(50, 160, 400)
    ns = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
    cuts = [time.monotonic_ns()]
    for batch in images:
        view1, view2 = augment(batch), augment(batch)
        t0 = time.monotonic_ns()
        loss = nt_xent(model(view1), model(view2))
        t1 = time.monotonic_ns()
        optimizer.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        optimizer.step()
        t4 = time.monotonic_ns()
        ns["data"] += t0 - cuts[-1]
        ns["forward"] += t1 - t0
        ns["backward"] += t3 - t2
        ns["optimizer"] += t2 - t1 + t4 - t3
        cuts.append(time.monotonic_ns())
    write(tile(cuts), unit="optimizer update", limiting="operators", levels={"encoder call": 100}, phases_ns=ns)
