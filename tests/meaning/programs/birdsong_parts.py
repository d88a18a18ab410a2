"""Takes birdsong apart: 96 recordings become spectrograms on disk, then a factorisation is fitted to all of them.

Two loops one after the other: `prepare` for each file (a fifth of the time or less), then 800 multiplicative updates of
a non-negative matrix factorisation, with the error printed every 100. Healthy, compute-bound in NumPy.
Truth: the fit dominates, so a step is one of its 800 iterations; the 96 files come before the first step.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from truth import tile, write

FILES, ITERATIONS, PARTS = 96, 800, 24
RATE, WINDOW, HOP, OVERSAMPLED = 16000, 510, 256, 8


def record(folder):
    rng = np.random.default_rng(3)
    for number in range(FILES):
        t = np.arange(RATE) / RATE
        song = np.sin(2 * np.pi * (2000 + 300 * (number % 7) + 500 * np.sin(2 * np.pi * 5 * t)) * t)
        song *= np.sin(2 * np.pi * (number % 5 + 1) * t) > 0
        np.save(folder / f"{number:03d}.npy", song + 0.05 * rng.standard_normal(RATE))


def prepare(path):
    wave = np.load(path)
    frames = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[:: HOP // OVERSAMPLED] * np.hanning(WINDOW)
    fine = np.abs(np.fft.rfft(frames, axis=1))
    whole = len(fine) // OVERSAMPLED
    spectrum = np.median(fine[: whole * OVERSAMPLED].reshape(whole, OVERSAMPLED, -1), axis=1).T
    np.save(path.with_suffix(".spec.npy"), np.log1p(spectrum))
    return spectrum.shape[1]


def fit(spectra, iterations):
    rng = np.random.default_rng(0)
    w = rng.uniform(0.1, 1, (spectra.shape[0], PARTS))
    h = rng.uniform(0.1, 1, (PARTS, spectra.shape[1]))
    cuts = [time.monotonic_ns()]
    for iteration in range(1, iterations + 1):
        h *= (w.T @ spectra) / (w.T @ w @ h + 1e-9)
        w *= (spectra @ h.T) / (w @ (h @ h.T) + 1e-9)
        if iteration % 100 == 0:
            error = np.linalg.norm(spectra - w @ h) / np.linalg.norm(spectra)
            print(f"iteration {iteration}: relative error {error:.4f}")
        cuts.append(time.monotonic_ns())
    return w, h, cuts


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        record(folder)
        frames = 0
        for path in sorted(folder.glob("[0-9][0-9][0-9].npy")):
            frames += prepare(path)
        print(f"{frames} frames of {FILES} files")
        spectra = np.concatenate([np.load(path) for path in sorted(folder.glob("*.spec.npy"))], axis=1)
    w, _, cuts = fit(spectra, ITERATIONS)
    print("strongest bins", w.argmax(axis=0)[:6])
    write(tile(cuts, "iteration"), unit="fit iteration", limiting="operators")


if __name__ == "__main__":
    main()
