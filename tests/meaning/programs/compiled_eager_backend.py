"""`torch.compile` (with the eager backend, so that no C++ compiler is needed): the first call traces, the rest are fast.

Healthy and compute-bound but for the first step, which compiles and is an outlier. Truth: 100 updates.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[Block(192) for _ in range(4)])
compiled = torch.compile(model, backend="eager")
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
fw = bw = up = 0
cuts = [monotonic_ns()]
for _ in range(100):
    x = torch.randn(128, 192)
    a = monotonic_ns()
    loss = (compiled(x) - x.roll(1, 1)).pow(2).mean()
    b = monotonic_ns()
    loss.backward()
    c = monotonic_ns()
    opt.step()
    opt.zero_grad()
    d = monotonic_ns()
    fw, bw, up = fw + b - a, bw + c - b, up + d - c
    cuts.append(monotonic_ns())
write(
    tile(cuts),
    unit="optimizer update",
    limiting="operators",
    outliers={0: "torch.compile traces the model in the first call"},
    phases_ns={"forward": fw, "backward": bw, "optimizer": up},
)
