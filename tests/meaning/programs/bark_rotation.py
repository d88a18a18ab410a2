"""Pictures of bark are rotated one after the other with SciPy, in the training loop, before they go through a small CNN.

Truth: 150 updates (5 epochs of 30), limited by data: the spline rotations in `augment`. Rotating the whole batch with grid_sample
does the same job; its time is measured after the loop on a few batches, and the difference is the gain.
"""

import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import problem, tile, write

torch.set_num_threads(1)
torch.manual_seed(21)
rng = np.random.default_rng(21)

pictures = torch.rand(720, 1, 64, 64)
species = torch.randint(0, 6, (720,))
loader = DataLoader(TensorDataset(pictures, species), batch_size=24, shuffle=True, drop_last=True)


def augment(images):
    turned = []
    for image in images.numpy():
        angle = rng.uniform(-25, 25)
        turned.append(ndimage.rotate(image[0], angle, reshape=False, order=3, mode="reflect"))
    return torch.from_numpy(np.stack(turned)[:, None])


def augment_batch(images):
    """What it should be; only measured."""
    a = (torch.rand(len(images)) - 0.5) * 50 / 180 * math.pi
    zero = torch.zeros_like(a)
    theta = torch.stack([torch.stack([a.cos(), -a.sin(), zero], 1), torch.stack([a.sin(), a.cos(), zero], 1)], 1)
    grid = F.affine_grid(theta, images.shape, align_corners=False)
    return F.grid_sample(images, grid, mode="bicubic", padding_mode="reflection", align_corners=False)


model = nn.Sequential(
    nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 6)
)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

turning = data = fwd = bwd = upd = 0
cuts = [time.monotonic_ns()]
for epoch in range(5):
    running = 0.0
    for images, labels in loader:
        t = time.monotonic_ns()
        images = augment(images)
        t0 = time.monotonic_ns()
        turning += t0 - t
        opt.zero_grad()
        t1 = time.monotonic_ns()
        loss = F.cross_entropy(model(images), labels)
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        opt.step()
        t4 = time.monotonic_ns()
        running += loss.item()
        data += t0 - cuts[-1]
        fwd += t2 - t1
        bwd += t3 - t2
        upd += t1 - t0 + t4 - t3
        cuts.append(time.monotonic_ns())
    print(f"epoch {epoch}: {running / len(loader):.3f}")

quick = []
for k in range(6):
    t = time.monotonic_ns()
    augment_batch(pictures[24 * k : 24 * k + 24])
    quick.append(time.monotonic_ns() - t)

write(
    tile(cuts),
    unit="optimizer update",
    levels={"epoch": 5},
    limiting="data",
    limiting_also=["operators"],
    phases_ns={"data": data, "forward": fwd, "backward": bwd, "optimizer": upd},
    problem=problem(
        "pictures are rotated one by one with cubic splines in the training loop",
        "bark_rotation.py:augment",
        "data",
        wasted_ns=turning - sorted(quick)[len(quick) // 2] * 150,
    ),
)
