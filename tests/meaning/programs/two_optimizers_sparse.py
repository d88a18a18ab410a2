"""A recommender with two optimizers that step together: SparseAdam for embeddings, Adam for the dense tower.

Healthy and compute-bound. Truth: 60 updates, each of them calls two optimizers.
"""

import time

import torch
from torch import nn
from truth import tile, write

torch.manual_seed(0)
torch.set_num_threads(1)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(5000, 64, sparse=True)
        self.items = nn.Embedding(8000, 64, sparse=True)
        self.tower = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, u, i):
        return self.tower(torch.cat([self.users(u), self.items(i)], 1)).squeeze(1)


net = Recommender()
sparse_opt = torch.optim.SparseAdam([*net.users.parameters(), *net.items.parameters()], lr=1e-3)
dense_opt = torch.optim.Adam(net.tower.parameters(), lr=1e-3)
phase = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
cuts = [time.monotonic_ns()]
for _ in range(60):
    u, i, r = torch.randint(0, 5000, (256,)), torch.randint(0, 8000, (256,)), torch.rand(256)
    a = time.monotonic_ns()
    loss = nn.functional.mse_loss(net(u, i), r)
    b = time.monotonic_ns()
    for o in (sparse_opt, dense_opt):
        o.zero_grad()
    c = time.monotonic_ns()
    loss.backward()
    d = time.monotonic_ns()
    for o in (sparse_opt, dense_opt):
        o.step()
    e = time.monotonic_ns()
    phase["data"] += a - cuts[-1]
    phase["forward"] += b - a
    phase["backward"] += d - c
    phase["optimizer"] += c - b + e - d
    cuts.append(time.monotonic_ns())
write(tile(cuts), unit="optimizer update", limiting="operators", levels={"optimizer call": 120}, phases_ns=phase)
