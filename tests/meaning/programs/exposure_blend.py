"""Exposure fusion: three shots of each scene, dark to bright, become one picture by blending Laplacian pyramids.

The whole program is `dict(map(fuse, brackets(...)))`: a generator makes the shots of a scene, `fuse` weighs them and
`blend` calls itself for half the size until the pictures are small. Healthy, limited by operators: Gaussian filters of
SciPy and NumPy's arithmetic. Truth: 120 scenes, each a step that ends where `fuse` is done; making the shots is
`data`. Every 30th scene leaves a thumbnail sheet, which is little.
"""

from time import monotonic_ns

import numpy as np
from scipy import ndimage
from truth import tile, write

SIZE, SCENES, LEVELS = 256, 120, 5
STOPS = (0.35, 1.0, 2.8)
times = {"data": 0, "weights": 0, "blend": 0}
cuts = []
thumbnails = []


def landscapes(rng, how_many=8):
    for _ in range(how_many):
        ground = ndimage.gaussian_filter(rng.random((SIZE, SIZE)), 9, mode="wrap")
        ground = (ground - ground.min()) / np.ptp(ground)
        yield ground + 0.08 * rng.random((SIZE, SIZE))


def brackets(how_many, rng):
    views = list(landscapes(rng))
    cuts.append(monotonic_ns())
    for number in range(how_many):
        view = np.roll(views[number % len(views)], number, axis=1)
        noise = rng.normal(0.0, 0.01, (len(STOPS), SIZE, SIZE))
        shots = [np.clip(stop * view + grain, 0.0, 1.0) for stop, grain in zip(STOPS, noise)]
        times["data"] += monotonic_ns() - cuts[-1]
        yield f"scene-{number:03d}", shots


def weights(shots):
    """How well each shot is exposed and how much contrast it has, place by place."""
    raw = []
    for shot in shots:
        contrast = np.abs(ndimage.laplace(shot))
        exposed = np.exp(-((shot - 0.5) ** 2) / 0.08)
        raw.append(contrast * exposed + 1e-6)
    total = np.sum(raw, axis=0)
    return [weight / total for weight in raw]


def halve(picture):
    return ndimage.gaussian_filter(picture, 1.0, mode="reflect")[::2, ::2]


def double(picture):
    return ndimage.uniform_filter(picture.repeat(2, axis=0).repeat(2, axis=1), 3, mode="reflect")


def blend(shots, masks, level):
    if level == 0:
        return sum(mask * shot for mask, shot in zip(masks, shots))
    small = [halve(shot) for shot in shots]
    detail = sum(mask * (shot - double(half)) for mask, shot, half in zip(masks, shots, small))
    return detail + double(blend(small, [halve(mask) for mask in masks], level - 1))


def fuse(bracket):
    name, shots = bracket
    t0 = monotonic_ns()
    masks = weights(shots)
    t1 = monotonic_ns()
    picture = np.clip(blend(shots, masks, LEVELS), 0.0, 1.0)
    t2 = monotonic_ns()
    times["weights"] += t1 - t0
    times["blend"] += t2 - t1
    if len(cuts) % 30 == 0:
        thumbnails.append(picture[::8, ::8].copy())
        print(f"{name}: mean {picture.mean():.3f}, {len(thumbnails)} thumbnails")
    cuts.append(monotonic_ns())
    return name, picture.astype(np.float32)


if __name__ == "__main__":
    gallery = dict(map(fuse, brackets(SCENES, np.random.default_rng(9))))
    flattest = min(gallery, key=lambda name: gallery[name].std())
    print(len(gallery), "pictures, the flattest is", flattest)
    write(tile(cuts, "scene"), unit="scene", limiting="operators", phases_ns=times)
