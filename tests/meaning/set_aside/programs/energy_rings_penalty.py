"""An energy function is trained to tell rings from noise, with a gradient penalty on its input (double backward).

Truth: 150 updates, healthy, limited by operators. Weights are saved to memory every 50th update; that is small. Both
the penalty's autograd.grad and loss.backward() count as backward.
"""

import io
import time
from contextlib import contextmanager

import torch
from torch import nn
from truth import tile, write

torch.set_num_threads(1)
torch.manual_seed(2)

phases = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "checkpoint": 0}


@contextmanager
def timed(name):
    begin = time.monotonic_ns()
    try:
        yield
    finally:
        phases[name] += time.monotonic_ns() - begin


def rings(n, dim=32):
    v = torch.randn(n, dim)
    return v / v.norm(dim=1, keepdim=True) * torch.randint(1, 4, (n, 1)) + 0.05 * torch.randn(n, dim)


energy = nn.Sequential(
    nn.Linear(32, 320), nn.Softplus(), nn.Linear(320, 320), nn.Softplus(), nn.Linear(320, 320), nn.Softplus(), nn.Linear(320, 1)
)
adam = torch.optim.Adam(energy.parameters(), lr=2e-4, betas=(0.5, 0.99))
saved = []

cuts = [time.monotonic_ns()]
for it in range(1, 151):
    with timed("data"):
        real = rings(160).requires_grad_()
        fake = torch.randn(160, 32) * 2
    with timed("forward"):
        on_real, on_fake = energy(real), energy(fake)
        loss = nn.functional.softplus(on_real).mean() + nn.functional.softplus(-on_fake).mean()
    with timed("backward"):
        (slope,) = torch.autograd.grad(on_real.sum(), real, create_graph=True)
    with timed("forward"):
        loss = loss + 5.0 * slope.square().sum(1).mean()
    with timed("optimizer"):
        adam.zero_grad()
    with timed("backward"):
        loss.backward()
    with timed("optimizer"):
        adam.step()
    if it % 50 == 0:
        with timed("checkpoint"):
            torch.save(energy.state_dict(), buffer := io.BytesIO())
            saved.append(buffer.tell())
        print(f"{it:4d}  loss {loss.item():.3f}")
    cuts.append(time.monotonic_ns())

write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=phases)
