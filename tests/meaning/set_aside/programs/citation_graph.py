"""A graph network in plain PyTorch labels papers of a citation graph: messages are gathered and summed by `index_add`.

The whole graph is one batch, so an epoch is one update; a callback hears of each. Healthy and compute-bound.
Truth: 60 updates of two layers of messages each.
"""

import time

import torch
from torch import nn
from truth import tile, write


class MeanNeighbours(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.other = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, h, source, target, degree):
        messages = self.other(h)
        total = torch.zeros_like(messages).index_add(0, target, messages[source])
        return self.own(h) + total / degree


class PaperNet(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first, self.second = MeanNeighbours(features, hidden), MeanNeighbours(hidden, hidden)
        self.label = nn.Linear(hidden, classes)

    def forward(self, x, edges):
        degree = torch.bincount(edges[1], minlength=len(x)).clamp(min=1).unsqueeze(1)
        h = self.first(x, *edges, degree).relu()
        return self.label(self.second(h, *edges, degree).relu())


def citation_graph(papers=3000, links=50_000, classes=7, features=256):
    y = torch.randint(classes, (papers,))
    source = torch.randint(papers, (links,))
    target = torch.randint(papers, (links,))
    alike = (y[source] == y[target]) | (torch.rand(links) < 0.3)  # papers cite papers of their own class
    source, target = source[alike], target[alike]
    x = torch.randn(papers, features) + 0.3 * torch.randn(classes, features)[y]
    return x, torch.stack([torch.cat([source, target]), torch.cat([target, source])]), y, torch.rand(papers) < 0.3


def fit(model, optimizer, graph, epochs, on_epoch):
    x, edges, y, train = graph
    for epoch in range(epochs):
        a = time.monotonic_ns()
        optimizer.zero_grad()
        b = time.monotonic_ns()
        out = model(x, edges)
        loss = nn.functional.cross_entropy(out[train], y[train])
        c = time.monotonic_ns()
        loss.backward()
        d = time.monotonic_ns()
        optimizer.step()
        e = time.monotonic_ns()
        on_epoch(epoch, loss.item(), {"forward": c - b, "backward": d - c, "optimizer": b - a + e - d})


torch.manual_seed(9)
torch.set_num_threads(1)
sums = dict.fromkeys(("forward", "backward", "optimizer"), 0)


def report(epoch, loss, spent):
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} loss {loss:.4f}")
    for name, ns in spent.items():
        sums[name] += ns
    cuts.append(time.monotonic_ns())


graph, model = citation_graph(), PaperNet(256, 128, 7)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
cuts = [time.monotonic_ns()]
fit(model, optimizer, graph, 60, report)
write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=sums)
