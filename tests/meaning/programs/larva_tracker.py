"""Follows fish larvae in a dish through a stack of frames: calibrate, find blobs in each frame, link them to tracks.

Three loops one after the other: 30 flat-field frames are averaged (with a median filter each), 220 frames are
searched by `locate` in a list comprehension, and the finds are linked frame by frame. Healthy and compute-bound in
SciPy: Gaussian filters and labels. Truth: the search dominates, so that a step is a frame of it, 220 in all, each
about as long as the other. The stack is in memory; phases are `flatten`, `blur` and `blobs` (labels, centres and
threshold).
"""

import time

import numpy as np
from scipy import ndimage
from truth import tile, write

FRAMES, SIZE, LARVAE = 220, 360, 14
clock = {"flatten": 0, "blur": 0, "blobs": 0}
cuts = []


def film(seed=12):
    """Made, as no dish is at hand: dark larvae on a bright, uneven ground."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIZE, :SIZE]
    ground = 2200 - 0.008 * ((x - 170) ** 2 + (y - 200) ** 2)
    places = rng.uniform(30, SIZE - 30, (LARVAE, 2))
    noise = rng.normal(0, 25, (SIZE + 40, SIZE + 40))
    stack = np.empty((FRAMES, SIZE, SIZE), np.uint16)
    for number, frame in enumerate(stack):
        places = np.clip(places + rng.normal(0, 1.5, places.shape), 14, SIZE - 14)
        picture = ground + noise[number % 37 :, number % 31 :][:SIZE, :SIZE]
        for py, px in places.astype(int):
            picture[py - 3 : py + 4, px - 2 : px + 3] -= 900
        frame[:] = picture
    flats = [(ground + rng.normal(0, 40, ground.shape)).astype(np.uint16) for _ in range(30)]
    return stack, flats


def flat_field(flats):
    total = np.zeros((SIZE, SIZE))
    for flat in flats:
        total += ndimage.median_filter(flat, size=3)
    return total / total.mean()


def locate(frame, flat):
    begin = cuts[-1]
    even = frame / flat
    flattened = time.monotonic_ns()
    fine = ndimage.gaussian_filter(even, 1.5)
    coarse = ndimage.gaussian_filter(even, 12.0)
    blurred = time.monotonic_ns()
    dark = coarse - fine
    mask = dark > 5 * np.std(dark[::4, ::4])
    labels, count = ndimage.label(mask)
    index = np.arange(1, count + 1)
    sizes = ndimage.sum_labels(mask, labels, index)
    centres = np.array(ndimage.center_of_mass(dark, labels, index[sizes > 8]))
    cuts.append(time.monotonic_ns())
    clock["flatten"] += flattened - begin
    clock["blur"] += blurred - flattened
    clock["blobs"] += cuts[-1] - blurred
    return centres


def link(finds, reach=12.0):
    tracks = [[place] for place in finds[0]]
    for places in finds[1:]:
        free = list(range(len(places)))
        for track in tracks:
            if free:
                distances = np.hypot(*(places[free] - track[-1]).T)
                if distances.min() < reach:
                    track.append(places[free.pop(int(distances.argmin()))])
        tracks += [[places[k]] for k in free]
    return tracks


def main():
    stack, flats = film()
    flat = flat_field(flats)
    cuts.append(time.monotonic_ns())
    finds = [locate(frame, flat) for frame in stack]
    tracks = link(finds)
    long = [np.array(track) for track in tracks if len(track) > 100]
    paths = [np.hypot(*np.diff(track, axis=0).T).sum() for track in long]
    print(f"{len(tracks)} tracks, {len(long)} of them long; mean path {np.mean(paths):.0f} pixels")
    write(tile(cuts, "frame"), unit="frame", limiting="operators", phases_ns=clock)


if __name__ == "__main__":
    main()
