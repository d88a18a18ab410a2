"""Predicts the next price of a share from windows of ticks, with a wide MLP and many short updates.

A `Market` keeps all ticks in memory; its generator method `windows` shuffles the starts anew in each epoch and gathers
a batch of windows by indexing, which is cheap. Healthy and compute-bound: matrix products. Truth: 5 epochs of 300
updates, 1500 in all, of a few ms each; the mean loss is printed after each epoch.
"""

from time import monotonic_ns as now

import torch
from torch import nn, optim
from truth import tile, write


class Market:
    def __init__(self, ticks, length=64, batch=256):
        self.prices = torch.randn(ticks).cumsum(0) / 100
        self.length, self.batch = length, batch
        self.offsets = torch.arange(length + 1)

    def windows(self, generator):
        starts = torch.randperm(len(self.prices) - self.length, generator=generator)
        for first in range(0, len(starts) - self.batch + 1, self.batch):
            rows = self.prices[starts[first : first + self.batch, None] + self.offsets]
            rows = rows - rows[:, self.length - 1 :][:, :1]
            yield rows[:, :-1], rows[:, -1:]


torch.manual_seed(9)
torch.set_num_threads(1)
market = Market(ticks=300 * 256 + 64)
generator = torch.Generator().manual_seed(1)
net = nn.Sequential(nn.Linear(64, 384), nn.GELU(), nn.Linear(384, 256), nn.GELU(), nn.Linear(256, 1))
opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
loss_of = nn.SmoothL1Loss()
data = forward = backward = update = 0

cuts = [now()]
for epoch in range(5):
    losses = torch.zeros(())
    for x, y in market.windows(generator):
        t = now()
        data += t - cuts[-1]

        opt.zero_grad()
        t, before = now(), t
        update += t - before

        loss = loss_of(net(x), y)
        t, before = now(), t
        forward += t - before

        loss.backward()
        t, before = now(), t
        backward += t - before

        opt.step()
        update += now() - t

        losses += loss.detach()
        cuts.append(now())
    print("epoch", epoch, "loss", float(losses) / 300)

phases = {"data": data, "forward": forward, "backward": backward, "optimizer": update}
write(tile(cuts), unit="optimizer update", limiting="operators", levels={"epoch": 5}, phases_ns=phases)
