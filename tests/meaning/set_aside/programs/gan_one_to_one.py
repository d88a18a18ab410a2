"""A GAN in the style of the DCGAN example: for each batch one update of the discriminator and one of the generator.

Healthy and compute-bound. A step is a batch with both updates: 40 steps, 80 updates of two optimizers.
"""

from time import monotonic_ns

import torch
from torch import nn
from truth import tile, write

torch.manual_seed(999)
torch.set_num_threads(1)
nz, ngf, batch_size = 32, 256, 64

netG = nn.Sequential(
    nn.Linear(nz, ngf), nn.ReLU(), nn.Linear(ngf, 2 * ngf), nn.ReLU(), nn.Linear(2 * ngf, 784), nn.Tanh()
)
netD = nn.Sequential(
    nn.Linear(784, 2 * ngf), nn.LeakyReLU(0.2), nn.Linear(2 * ngf, ngf), nn.LeakyReLU(0.2), nn.Linear(ngf, 1)
)
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
real_images = torch.rand(40 * batch_size, 784) * 2 - 1
real_label, fake_label = torch.ones(batch_size, 1), torch.zeros(batch_size, 1)

fw = bw = up = 0
cuts = [monotonic_ns()]
for i in range(40):
    real = real_images[i * batch_size : (i + 1) * batch_size]
    # (1) Update D: maximize log(D(x)) + log(1 - D(G(z)))
    c0 = monotonic_ns()
    netD.zero_grad()
    c1 = monotonic_ns()
    errD_real = criterion(netD(real), real_label)
    c2 = monotonic_ns()
    errD_real.backward()
    c3 = monotonic_ns()
    fake = netG(torch.randn(batch_size, nz))
    errD_fake = criterion(netD(fake.detach()), fake_label)
    c4 = monotonic_ns()
    errD_fake.backward()
    c5 = monotonic_ns()
    optimizerD.step()
    # (2) Update G: maximize log(D(G(z)))
    netG.zero_grad()
    c6 = monotonic_ns()
    errG = criterion(netD(fake), real_label)
    c7 = monotonic_ns()
    errG.backward()
    c8 = monotonic_ns()
    optimizerG.step()
    c9 = monotonic_ns()
    fw += c2 - c1 + c4 - c3 + c7 - c6
    bw += c3 - c2 + c5 - c4 + c8 - c7
    up += c1 - c0 + c6 - c5 + c9 - c8
    if i % 10 == 0:
        print(f"[{i}/40] Loss_D {(errD_real + errD_fake).item():.4f} Loss_G {errG.item():.4f}")
    cuts.append(monotonic_ns())

write(
    tile(cuts),
    unit="batch (one update of each network)",
    limiting="operators",
    levels={"discriminator update": 40, "generator update": 40},
    phases_ns={"forward": fw, "backward": bw, "optimizer": up},
)
