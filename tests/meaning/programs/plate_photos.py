"""Denoise a folder of photographs: read, decode (zlib, then sum up the rows), filter with NumPy, write out.

Healthy. Truth: 200 images, of which the filter is most; decoding is the next, reading and writing are small.
"""

import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
from truth import tile, write

SHAPE = (640, 960)


def make_photos(folder, n):
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0 : SHAPE[0], 0 : SHAPE[1]]
    base = 120 + 60 * np.sin(x / 20) * np.cos(y / 30) + rng.normal(scale=6, size=SHAPE)
    base = base.clip(0, 255).astype(np.uint8)
    for i in range(n):
        image = np.roll(base, 7 * i, 1)
        rows = np.diff(image, axis=0, prepend=np.zeros((1, SHAPE[1]), np.uint8))
        (folder / f"img{i:04d}.raw.z").write_bytes(zlib.compress(rows.tobytes(), 1))


def decode(blob):
    rows = np.frombuffer(zlib.decompress(blob), np.uint8).reshape(SHAPE)
    return np.add.accumulate(rows, axis=0, dtype=np.uint8)


def median3(image):
    """Median of 3 in x, then in y."""
    for axis in (1, 0):
        a, b = np.roll(image, 1, axis), np.roll(image, -1, axis)
        image = np.maximum(np.minimum(image, np.maximum(a, b)), np.minimum(a, b))
    return image


def sharpen(image):
    wide = np.pad(image.astype(np.float32), 2, mode="edge")
    blur = sum(w * wide[:, k : k + image.shape[1]] for k, w in enumerate((1, 4, 6, 4, 1)))
    blur = sum(w * blur[k : k + image.shape[0]] for k, w in enumerate((1, 4, 6, 4, 1))) / 256
    return (1.6 * image - 0.6 * blur).clip(0, 255).astype(np.uint8)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as tmp:
        src, dst = Path(tmp, "in"), Path(tmp, "out")
        src.mkdir(), dst.mkdir()
        make_photos(src, count)
        now = time.monotonic_ns
        read = dec = fil = out = 0
        cuts = [now()]
        for path in sorted(src.glob("*.z")):
            blob = path.read_bytes()
            a = now()
            image = decode(blob)
            b = now()
            clean = sharpen(median3(image))
            c = now()
            (dst / path.name.replace(".raw.z", ".pgm")).write_bytes(b"P5 %d %d 255\n" % SHAPE[::-1] + clean.tobytes())
            d = now()
            read, dec, fil, out = read + a - cuts[-1], dec + b - a, fil + c - b, out + d - c
            cuts.append(now())
        made = len(list(dst.iterdir()))
    print(f"read {read / 1e9:.2f} decode {dec / 1e9:.2f} filter {fil / 1e9:.2f} write {out / 1e9:.2f} s")
    assert made == count and fil > dec
    write(
        tile(cuts, "image"),
        unit="image",
        limiting="operators",
        phases_ns={"read": read, "decode": dec, "filter": fil, "write": out},
    )


main()
