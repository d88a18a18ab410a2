"""A compiled model: the first two steps wait for the compiler, all others run one fused function each way."""

import os
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 16))
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
begins = []
for step in range(60):
    begins.append(time.monotonic_ns())
    x = torch.randn(32, 16)
    loss = (compiled(x) - x.roll(1, dims=1)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 20 == 0:
        print(step, loss.item())

with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
