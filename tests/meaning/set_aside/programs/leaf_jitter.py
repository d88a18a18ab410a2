"""Tells leaves apart; images and species come from two generators, which `zip` joins and `map` augments.

Planted: `jitter` changes brightness and contrast of each pixel in Python, list by list, which takes longer than the
small CNN's update. Truth: 32 updates, limited by data (or Python), in `jitter`; the gain is measured: the time of
data beyond that of the same batches jittered by tensor operators, after training.
"""

import random
import time

import torch
from torch import nn
from truth import problem, tile, write

SIDE, BATCH, UPDATES, SPECIES = 40, 48, 32, 12

rng = random.Random(6)


def photos(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(UPDATES):
        yield torch.rand(BATCH, 3, SIDE, SIDE, generator=generator)


def species(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(UPDATES):
        yield torch.randint(SPECIES, (BATCH,), generator=generator)


def jitter(pair):
    images, names = pair
    jittered = []
    for image in images.tolist():
        brightness, contrast = rng.uniform(-0.2, 0.2), rng.uniform(0.7, 1.3)
        changed = []
        for channel in image:
            for row in channel:
                changed.append([min(1.0, max(0.0, (p - 0.5) * contrast + 0.5 + brightness)) for p in row])
        jittered.append(changed)
    return torch.tensor(jittered).view_as(images), names


def jitter_tensors(pair):
    images, names = pair
    brightness = 0.4 * torch.rand(len(images), 1, 1, 1) - 0.2
    contrast = 0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)
    return ((images - 0.5) * contrast + 0.5 + brightness).clamp(0, 1), names


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    cnn = nn.Sequential(nn.Conv2d(3, 24, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 32, 3), nn.ReLU(), nn.Flatten())
    model = nn.Sequential(cnn, nn.LazyLinear(SPECIES))
    model(torch.zeros(1, 3, SIDE, SIDE))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    took = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
    cuts = [time.monotonic_ns()]
    for images, names in map(jitter, zip(photos(1), species(2))):
        times = [cuts[-1], time.monotonic_ns()]
        loss = nn.functional.cross_entropy(model(images), names)
        times.append(time.monotonic_ns())
        loss.backward()
        times.append(time.monotonic_ns())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.monotonic_ns())
        for name, begin, end in zip(took, times, times[1:]):
            took[name] += end - begin
        cuts.append(times[-1])
    print(f"last loss {loss.item():.3f}")

    began = time.monotonic_ns()
    for _ in map(jitter_tensors, zip(photos(1), species(2))):
        pass
    wasted = took["data"] - (time.monotonic_ns() - began)
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        limiting_also=["python"],
        phases_ns=took,
        problem=problem("pixels are jittered in Python", "leaf_jitter.py:jitter", "data", wasted_ns=wasted),
    )


if __name__ == "__main__":
    main()
