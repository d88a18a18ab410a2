"""A GAN on points of a ring in 32 dimensions: gradient penalty for the critic, moving average of the generator.

Healthy and compute-bound. Truth: 120 iterations, each with one update of the critic and one of the generator (240 calls of
`step`). The penalty's `autograd.grad` is backward; the moving average is optimizer.
"""

import copy
from time import monotonic_ns as now

import torch
from torch import nn
from truth import tile, write

torch.set_num_threads(1)
torch.manual_seed(5)
ITERS, BATCH, DIM, Z = 120, 128, 32, 16


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, o))


G, D = mlp(Z, 384, DIM), mlp(DIM, 384, 1)
G_ema = copy.deepcopy(G).requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.9))
spread = torch.randn(2, DIM)


def sample_real():
    angle = 2 * torch.pi * torch.rand(BATCH, 1)
    return torch.cat([angle.cos(), angle.sin()], 1) @ spread + 0.05 * torch.randn(BATCH, DIM)


@torch.no_grad()
def update_average(decay=0.995):
    for p, q in zip(G_ema.parameters(), G.parameters()):
        p.mul_(decay).add_(q, alpha=1 - decay)


data = fw = bw = up = 0
cuts = [now()]
for it in range(ITERS):
    real = sample_real()
    t0 = now()

    # critic
    with torch.no_grad():
        fake = G(torch.randn(BATCH, Z))
    mix = torch.lerp(fake, real, torch.rand(BATCH, 1)).requires_grad_()
    score = D(mix)
    t1 = now()
    (grad,) = torch.autograd.grad(score.sum(), mix, create_graph=True)
    t2 = now()
    penalty = ((grad.norm(dim=1) - 1) ** 2).mean()
    loss_d = D(fake).mean() - D(real).mean() + 10 * penalty
    t3 = now()
    opt_d.zero_grad()
    t4 = now()
    loss_d.backward()
    t5 = now()
    opt_d.step()
    t6 = now()

    # generator
    loss_g = -D(G(torch.randn(BATCH, Z))).mean()
    t7 = now()
    opt_g.zero_grad()
    t8 = now()
    loss_g.backward()
    t9 = now()
    opt_g.step()
    update_average()
    t10 = now()

    data += t0 - cuts[-1]
    fw += (t1 - t0) + (t3 - t2) + (t7 - t6)
    bw += (t2 - t1) + (t5 - t4) + (t9 - t8)
    up += (t4 - t3) + (t6 - t5) + (t8 - t7) + (t10 - t9)
    if it % 40 == 0:
        print(f"[{it}/{ITERS}] loss_d {loss_d.item():.3f} loss_g {loss_g.item():.3f}")
    cuts.append(now())

assert all(torch.isfinite(p).all() for p in G_ema.parameters())
write(
    tile(cuts, "train"),
    unit="iteration: one update of the critic and one of the generator",
    limiting="operators",
    phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
)
