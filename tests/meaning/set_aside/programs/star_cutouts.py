"""Fetches star cutouts from an archive (a wait of 14 ms each) through a `multiprocessing.Pool`, and measures brightness.

Truth: 180 cutouts. The pool has one process, so that the main process waits for the next cutout most of the time, though
fetching is waiting for a far end; with four processes, measured afterwards, the loop would be much shorter.
The main process waits for data; one may say that it is io, or synchronisation with the worker.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import multiprocessing
import time

import numpy as np
from truth import problem, tile, write


def fetch(number):
    time.sleep(0.014)  # the archive's answer
    rng = np.random.default_rng(number)
    image = rng.poisson(20, (96, 96)).astype(np.float32)
    image[40:56, 40:56] += 50 + number % 30
    return number, image


def photometry(image, radius=12):
    y, x = np.indices(image.shape) - 47.5
    r = np.hypot(x, y)
    sky = np.median(image[(r > 20) & (r < 40)])
    growth = [float((image[r < k] - sky).sum()) for k in range(2, radius + 1)]
    return growth[-1]


def run(processes, count):
    fluxes, waiting = {}, 0
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        results = pool.imap(fetch, range(count))
        cuts = [time.monotonic_ns()]
        for _ in range(count):
            number, image = next(results)
            waiting += time.monotonic_ns() - cuts[-1]
            fluxes[number] = photometry(image)
            cuts.append(time.monotonic_ns())
    return fluxes, waiting, cuts


def rerun(processes, count):
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        began = time.monotonic_ns()
        fluxes = {number: photometry(image) for number, image in pool.imap(fetch, range(count))}
        return fluxes, time.monotonic_ns() - began


if __name__ == "__main__":
    fluxes, waiting, cuts = run(1, 180)
    again, better = rerun(4, 180)
    assert fluxes == again
    print("brightest:", max(fluxes, key=fluxes.get), f"{max(fluxes.values()):.0f}")
    write(
        tile(cuts, "cutout"),
        unit="cutout",
        limiting="data",
        limiting_also=["io", "synchronisation"],
        phases_ns={"data": waiting},
        problem=problem(
            "one process fetches, though fetching is waiting", "star_cutouts.py:run", "data",
            wasted_ns=cuts[-1] - cuts[0] - better,
        ),
    )  # fmt: skip
