"""Self-supervised style training with gradient clipping and an exponential moving average of the weights.

Healthy and compute-bound, 80 updates; clipping and the moving average count as optimizer.
"""

import copy
from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write


class EMA:
    def __init__(self, model, decay=0.999):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters(), strict=True):
            s.lerp_(p, 1 - self.decay)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 512))
ema = EMA(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-4)
times = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
cuts = [monotonic_ns()]
for step in range(80):
    x = torch.randn(256, 512)
    noisy = x + 0.1 * torch.randn_like(x)
    t0 = monotonic_ns()
    loss = nn.functional.smooth_l1_loss(model(noisy), x)
    t1 = monotonic_ns()
    optimizer.zero_grad()
    t2 = monotonic_ns()
    loss.backward()
    t3 = monotonic_ns()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    ema.update(model)
    t4 = monotonic_ns()
    times["data"] += t0 - cuts[-1]
    times["forward"] += t1 - t0
    times["backward"] += t3 - t2
    times["optimizer"] += t2 - t1 + t4 - t3
    cuts.append(monotonic_ns())
write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=times)
