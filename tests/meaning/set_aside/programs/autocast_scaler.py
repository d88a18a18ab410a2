"""Mixed precision as recipes write it: autocast to bfloat16 and a GradScaler (which is disabled on a CPU).

Healthy and compute-bound, 60 updates. `scaler.scale(loss)` counts as backward, `unscale_`, `step`, `update` as optimizer.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write


def build():
    return nn.Sequential(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 100))


def train(net, optimizer, scaler, iterations):
    loss_fn = nn.CrossEntropyLoss()
    fw = bw = up = da = 0
    cuts = [monotonic_ns()]
    for _ in range(iterations):
        inputs, labels = torch.randn(256, 256), torch.randint(0, 100, (256,))
        t0 = monotonic_ns()
        optimizer.zero_grad(set_to_none=True)
        t1 = monotonic_ns()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_fn(net(inputs), labels)
        t2 = monotonic_ns()
        scaler.scale(loss).backward()
        t3 = monotonic_ns()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        t4 = monotonic_ns()
        da, fw, bw, up = da + t0 - cuts[-1], fw + t2 - t1, bw + t3 - t2, up + t4 - t3 + t1 - t0
        cuts.append(monotonic_ns())
    print("loss", loss.item())
    return cuts, {"data": da, "forward": fw, "backward": bw, "optimizer": up}


torch.manual_seed(0)
torch.set_num_threads(1)
net = build()
cuts, phases = train(net, torch.optim.SGD(net.parameters(), 0.1), torch.amp.GradScaler("cpu", enabled=False), 60)
write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=phases)
