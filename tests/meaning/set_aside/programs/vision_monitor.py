"""Trains an MLP-mixer-like net whose layers watch themselves: means, extremes and a histogram, kept in Python.

Every layer calls `.item()` for rows of its input and counts rounded activations in a dictionary, as debugging code
that was left in does it.
Truth: 120 updates, limited by Python; the gain is the measured time of the bookkeeping, which runs inside the forward.
"""

from collections import Counter, defaultdict
from time import monotonic_ns

import torch
from torch import nn
from truth import problem, tile, write

spent = 0


class Statistics:
    def __init__(self):
        self.moments, self.counts = defaultdict(list), defaultdict(Counter)

    def note(self, name, h):
        global spent
        began = monotonic_ns()
        rows = [(row.mean().item(), row.min().item(), row.max().item()) for row in h.detach()[:32]]
        self.moments[name].append([sum(column) / len(rows) for column in zip(*rows)])
        for value in h.detach()[:32].flatten().tolist():
            self.counts[name][round(value, 1)] += 1
        spent += monotonic_ns() - began


class Layer(nn.Module):
    def __init__(self, name, width, statistics):
        super().__init__()
        self.name, self.statistics = name, statistics
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        self.statistics.note(self.name, x)
        return x + torch.relu(self.linear(self.norm(x)))


class Net(nn.Module):
    def __init__(self, width=192, depth=8):
        super().__init__()
        self.statistics = Statistics()
        self.inlet, self.outlet = nn.Linear(256, width), nn.Linear(width, 10)
        self.layers = nn.Sequential(*[Layer(f"layer{i}", width, self.statistics) for i in range(depth)])

    def forward(self, x):
        return self.outlet(self.layers(self.inlet(x)))


torch.manual_seed(0)
torch.set_num_threads(1)
images, labels = torch.rand(120 * 128, 256), torch.randint(10, (120 * 128,))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.02)
fw = bw = up = data = 0
cuts = [monotonic_ns()]
for x, y in zip(images.split(128), labels.split(128)):
    t0 = monotonic_ns()
    data += t0 - cuts[-1]
    loss = nn.functional.cross_entropy(net(x), y)
    t1 = monotonic_ns()
    net.zero_grad()
    t2 = monotonic_ns()
    loss.backward()
    t3 = monotonic_ns()
    opt.step()
    cuts.append(monotonic_ns())
    fw, bw, up = fw + t1 - t0, bw + t3 - t2, up + t2 - t1 + cuts[-1] - t3
print({name: round(values[-1][0], 3) for name, values in net.statistics.moments.items()})
write(
    tile(cuts),
    unit="optimizer update",
    limiting="python",
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
    problem=problem("statistics of every layer", "vision_monitor.py:Statistics.note", "python", wasted_ns=spent),
)
