"""Looks for a learning rate before a network is trained that finds cracks in photographs of brick walls: the rate
grows by a constant factor from update to update, and the smoothed loss tells where it is best. Healthy, limited by
operators (convolutions, most of them backwards). Truth: 100 optimizer updates, all of them of the sweep (the loop
that measures the photos before it and the one that paints a few masks after it are short and train nothing); cropping
a batch is data.
"""

import copy
import itertools
import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import tile, write

SIDE, CROP = 160, 48


def photograph(count, generator):
    """Walls with mortar every few rows, a random crack, and the mask of the crack."""
    walls = 0.5 + 0.1 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    walls[:, :, ::12] += 0.3
    masks = torch.zeros(count, 1, SIDE, SIDE)
    for mask in masks:
        path = torch.randint(-1, 2, (SIDE,), generator=generator).cumsum(0) + SIDE // 2
        mask[0, torch.arange(SIDE), path.clamp(1, SIDE - 2)] = 1
    masks = F.max_pool2d(masks, 3, 1, 1)
    return walls - 0.35 * masks, masks


class CrackNet(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.GELU(), nn.Conv2d(width, width, 3, padding=1))
        self.deep = nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GELU(), nn.Conv2d(2 * width, width, 3, 1, 1))
        self.head = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x):
        fine = F.gelu(self.down(x))
        coarse = F.interpolate(self.deep(fine), scale_factor=2.0, mode="nearest")
        return self.head(torch.cat([fine, coarse], 1))


def crops(walls, masks, size, generator):
    while True:
        which = torch.randint(len(walls), (size,), generator=generator).tolist()
        tops = torch.randint(SIDE - CROP, (size, 2), generator=generator).tolist()
        windows = [(k, slice(a, a + CROP), slice(b, b + CROP)) for k, (a, b) in zip(which, tops, strict=True)]
        yield tuple(torch.stack([whole[k, :, r, c] for k, r, c in windows]) for whole in (walls, masks))


class RateFinder:
    def __init__(self, model, optimizer, low=1e-5, high=0.2, count=100, smooth=0.9):
        self.model, self.optimizer, self.smooth = model, optimizer, smooth
        self.rates = [low * (high / low) ** (k / (count - 1)) for k in range(count)]
        self.curve, self.spent = [], {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}

    def learn(self, photo, mask):
        t0 = time.monotonic_ns()
        loss = F.binary_cross_entropy_with_logits(self.model(photo), mask)
        t1 = time.monotonic_ns()
        self.optimizer.zero_grad(set_to_none=True)
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        self.optimizer.step()
        self.spent["forward"] += t1 - t0
        self.spent["backward"] += t3 - t2
        self.spent["optimizer"] += t2 - t1 + time.monotonic_ns() - t3
        return loss.item()

    def sweep(self, batches):
        before = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))
        mean, cuts = 0.0, [time.monotonic_ns()]
        for number, (rate, batch) in enumerate(zip(self.rates, batches, strict=False), 1):
            self.spent["data"] += time.monotonic_ns() - cuts[-1]
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            mean = self.smooth * mean + (1 - self.smooth) * self.learn(*batch)
            self.curve.append(mean / (1 - self.smooth**number))
            cuts.append(time.monotonic_ns())
        self.model.load_state_dict(before[0])
        self.optimizer.load_state_dict(before[1])
        return cuts

    def best(self):
        slopes = [b - a for a, b in itertools.pairwise(self.curve)]
        return self.rates[slopes.index(min(slopes))]


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(4)
    walls, masks = photograph(60, generator)
    for wall in walls:
        wall.sub_(wall.mean((1, 2), keepdim=True)).div_(wall.std((1, 2), keepdim=True))
    model = CrackNet()
    finder = RateFinder(model, torch.optim.AdamW(model.parameters()))
    cuts = finder.sweep(crops(walls, masks, 12, generator))
    print(f"learning rate {finder.best():.2g}, losses {finder.curve[0]:.3f} to {min(finder.curve):.3f}")
    with torch.no_grad():
        for wall in walls[:3]:
            print(f"untrained: {(model(wall[None]) > 0).float().mean():.3f} of the wall is crack")
    write(tile(cuts), unit="optimizer update", limiting="operators", phases_ns=finder.spent)


if __name__ == "__main__":
    main()
