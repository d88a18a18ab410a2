"""Plain regression in one long epoch of 900 short steps with a progress line every 100.

Healthy. Steps are short (under 3 ms), so the interpreter's share is visible, but operators still dominate.
"""

from time import monotonic_ns

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import tile, write

torch.manual_seed(42)
torch.set_num_threads(1)
features, targets = torch.randn(900 * 32, 64), torch.randn(900 * 32, 1)


def training_loop(model, dl, opt):
    ticks = [monotonic_ns()]
    d = f = b = o = 0
    for n, (xb, yb) in enumerate(dl):
        t0 = monotonic_ns()
        pred = model(xb)
        loss = nn.functional.mse_loss(pred, yb)
        t1 = monotonic_ns()
        loss.backward()
        t2 = monotonic_ns()
        opt.step()
        opt.zero_grad()
        t3 = monotonic_ns()
        d, f, b, o = d + t0 - ticks[-1], f + t1 - t0, b + t2 - t1, o + t3 - t2
        if n % 100 == 0:
            print(f"step {n:4d} loss {loss.item():.4f}")
        ticks.append(monotonic_ns())
    return ticks, {"data": d, "forward": f, "backward": b, "optimizer": o}


model = nn.Sequential(nn.Linear(64, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 1))
loader = DataLoader(TensorDataset(features, targets), batch_size=32)
cuts, phases = training_loop(model, loader, torch.optim.SGD(model.parameters(), 1e-2))
write(tile(cuts), unit="optimizer update", limiting="operators", levels={"epoch": 1}, phases_ns=phases)
