"""Power spectra of a long recording: chunks go to a `multiprocessing.Pool`, the main process adds up what comes back.

The main loop does little but wait for workers, which are busy computing (FFT in NumPy). No planted problem. Truth: a step
is a chunk come back; 160 of them, in whatever order; `data` is the measured wait for the next one. The first stands out, as workers start cold.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import multiprocessing as mp
import time

import numpy as np
from truth import tile, write

WINDOW, CHUNK = 4096, 1 << 17


def process_chunk(seed):
    rng = np.random.default_rng(seed)
    t = np.arange(CHUNK)
    signal = rng.normal(size=CHUNK) + 0.2 * np.sin(0.3 * t)
    frames = np.lib.stride_tricks.sliding_window_view(signal, WINDOW)[:: WINDOW // 4]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(WINDOW), axis=1)) ** 2
    return seed, spectrum.mean(0), np.median(spectrum, axis=0)


def main(chunks=160):
    total = np.zeros(WINDOW // 2 + 1)
    floor = np.full(WINDOW // 2 + 1, np.inf)
    seen = set()
    waiting = 0
    with mp.get_context("fork").Pool(2) as pool:
        cuts = [time.monotonic_ns()]
        for seed, mean, median in pool.imap_unordered(process_chunk, range(chunks)):
            waiting += time.monotonic_ns() - cuts[-1]
            total += mean
            np.minimum(floor, median, out=floor)
            seen.add(seed)
            cuts.append(time.monotonic_ns())
    print("peak at", total.argmax(), f"waiting {waiting / (cuts[-1] - cuts[0]):.0%}")
    assert len(seen) == chunks and waiting > 0.9 * (cuts[-1] - cuts[0])
    write(
        tile(cuts, "chunk"),
        unit="chunk",
        limiting="data",
        limiting_also=["operators", "starvation", "synchronisation"],
        phases_ns={"data": waiting},
        outliers={0: "the workers are just started"},
    )


if __name__ == "__main__":
    main()
