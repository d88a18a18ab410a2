"""Measures how much of a micrograph is covered by cells: blur, background, Otsu's threshold and edges for each image.

Images are made instead of read, as no microscope is at hand. Healthy, compute-bound in NumPy. Truth: 170 images, one
to a step; making the image is its data phase.
"""

import time

import numpy as np
from truth import tile, write

IMAGES, SIDE = 170, 512


def acquire(number):
    rng = np.random.default_rng(number)
    image = rng.normal(40, 6, (SIDE, SIDE))
    for y, x, size in zip(rng.integers(20, SIDE - 20, 40), rng.integers(20, SIDE - 20, 40), rng.integers(6, 18, 40)):
        image[y - size : y + size, x - size : x + size] += 80
    return image


def gaussian_blur(image, sigma):
    reach = int(3 * sigma)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    for axis in (0, 1):
        padded = np.pad(image, [(reach, reach) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
        blurred = np.zeros_like(image)
        for shift, weight in enumerate(weights):
            part = padded[shift : shift + SIDE] if axis == 0 else padded[:, shift : shift + SIDE]
            blurred += weight * part
        image = blurred
    return image


def otsu(image):
    counts, edges = np.histogram(image, bins=256)
    middles = (edges[:-1] + edges[1:]) / 2
    below = counts.cumsum()
    above = below[-1] - below
    mass = (counts * middles).cumsum()
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (mass / below - (mass[-1] - mass) / above) ** 2
    return middles[np.nanargmax(between)]


def edge_length(mask):
    return int((mask[1:] != mask[:-1]).sum() + (mask[:, 1:] != mask[:, :-1]).sum())


def main():
    rows = []
    acquiring = 0
    cuts = [time.monotonic_ns()]
    for number in range(IMAGES):
        image = acquire(number)
        acquiring += time.monotonic_ns() - cuts[-1]
        smooth = gaussian_blur(image, 1.5)
        flat = smooth - gaussian_blur(smooth, 8)
        mask = flat > otsu(flat)
        rows.append((number, mask.mean(), edge_length(mask)))
        cuts.append(time.monotonic_ns())
    covered = np.array([row[1] for row in rows])
    print(f"{len(rows)} images, covered {covered.mean():.3f} +- {covered.std():.3f}")
    write(tile(cuts, "image"), unit="image", limiting="operators", phases_ns={"data": acquiring})


if __name__ == "__main__":
    main()
