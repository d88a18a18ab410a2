"""Pictures in batches of eight: a pool of threads denoises, equalises and shrinks them, the main thread makes a contact
sheet of each batch and writes it.
"""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIDES = (64, 96, 128)
batches, images = [], []


@dataclass
class Result:
    name: str
    small: np.ndarray
    contrast: float


def photograph(side):
    draw = np.random.default_rng(side)
    y, x = np.mgrid[:side, :side] / side
    image = 0.5 + 0.3 * np.sin(8 * x) * np.cos(5 * y) + 0.1 * draw.normal(size=(side, side))
    return (255 * image.clip(0, 1)).astype(np.uint8)


def fill(folder, count):
    """A folder of pictures; one of them is none."""
    originals = [photograph(side) for side in SIDES]
    for number in range(count):
        np.save(folder / f"p{number:04d}.npy", np.roll(originals[number % len(SIDES)], number, axis=1))
    np.save(folder / "p0077.npy", np.zeros((4, 4, 3)))


def median3(image):
    padded = np.pad(image, 1, mode="edge")
    height, width = image.shape
    around = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return np.median(np.stack(around), axis=0).astype(np.uint8)


def equalise(image):
    counts = np.bincount(image.ravel(), minlength=256)
    share = counts.cumsum() / image.size
    return (255 * share).astype(np.uint8)[image]


def shrink(image, side=16):
    factor = image.shape[0] // side
    cut = image[: side * factor, : side * factor]
    return cut.reshape(side, factor, side, factor).mean(axis=(1, 3))


def sharpness(image):
    wide = image.astype(np.int32)
    return float(np.abs(np.diff(wide, axis=0)).mean() + np.abs(np.diff(wide, axis=1)).mean())


def handle(path):
    images.append(time.monotonic_ns())
    image = np.load(path)
    if image.ndim != 2:
        raise ValueError(f"{path.name} has {image.ndim} dimensions")
    image = equalise(median3(image))
    return Result(path.stem, shrink(image), sharpness(image))


def contact_sheet(results, columns=4, side=16):
    sheet = np.zeros((side * -(-len(results) // columns), side * columns), dtype=np.uint8)
    for at, result in enumerate(results):
        row, column = divmod(at, columns)
        sheet[row * side : (row + 1) * side, column * side : (column + 1) * side] = result.small
    return sheet


def in_batches(rows, size):
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def main():
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(max_workers=2) as pool:
        folder = Path(name)
        fill(folder, 320)
        failed, sharpest = 0, 0.0
        for number, paths in enumerate(in_batches(sorted(folder.glob("p*.npy")), 8)):
            batches.append(time.monotonic_ns())
            results = []
            for future in [pool.submit(handle, path) for path in paths]:
                try:
                    results.append(future.result())
                except ValueError as error:
                    failed += 1
                    print("skipped:", error)
            np.savez_compressed(folder / f"sheet-{number:03d}.npz", sheet=contact_sheet(results))
            sharpest = max(sharpest, *(result.contrast for result in results))
            if number % 10 == 9:
                print(f"{number + 1} sheets, {failed} failed, sharpest {sharpest:.1f}")
    # The main thread's loop is over batches; the pool's threads work picture by picture.
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"batch {ns}\n" for ns in batches)
        out.writelines(f"image {ns}\n" for ns in sorted(images))


if __name__ == "__main__":
    main()
