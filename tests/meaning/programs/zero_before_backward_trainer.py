"""A hand-made Trainer class that clears gradients between loss and backward, as much research code does.

Healthy and compute-bound, 120 updates. The forward pass stands before `zero_grad` and still belongs to the same step.
"""

from time import monotonic_ns as now

import torch
from torch import nn
from truth import tile, write


class Trainer:
    def __init__(self, net, opt, loss_fn):
        self.net, self.opt, self.loss_fn = net, opt, loss_fn
        self.spent = {"forward": 0, "backward": 0, "optimizer": 0}
        self.cuts = []

    def fit_batch(self, inputs, targets):
        a = now()
        loss = self.loss_fn(self.net(inputs), targets)
        b = now()
        self.opt.zero_grad()
        c = now()
        loss.backward()
        d = now()
        self.opt.step()
        e = now()
        self.spent["forward"] += b - a
        self.spent["optimizer"] += (c - b) + (e - d)
        self.spent["backward"] += d - c
        return loss.detach()

    def fit(self, batches):
        history = []
        self.cuts.append(now())
        for inputs, targets in batches:
            history.append(self.fit_batch(inputs, targets))
            self.cuts.append(now())
        return torch.stack(history).mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 1024), nn.GELU(),
                        nn.Linear(1024, 1))  # fmt: skip
    trainer = Trainer(net, torch.optim.RMSprop(net.parameters(), 1e-4), nn.MSELoss())
    batches = [(torch.randn(96, 128), torch.randn(96, 1)) for _ in range(120)]
    print("mean loss", float(trainer.fit(batches)))
    write(tile(trainer.cuts), unit="optimizer update", limiting="operators", phases_ns=trainer.spent)


main()
